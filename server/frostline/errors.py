"""What can go wrong with the world, in one tree.

    FrostlineError
    ├── UsageError            the person asked for something that cannot be: exit 2
    │   ├── BadPlace          a file, line or range that is not there
    │   └── BadSetting        a setting with a value that has no meaning
    ├── WorkerLost            the worker process is gone; asking again starts a new one
    ├── WorkerRefused         the worker answered, and could not do it
    │   └── ModelUnusable     weights missing, torn, of an unknown kind, or too large
    └── WireError             bytes on the socket that are not ours

A refusal at the commit barrier is no error: it is a value (`core/barrier.py`). A bug is not caught
where it happens. Each message is one sentence that says what to do.
"""


class FrostlineError(Exception):
    """Base of all; its text is the sentence that a user reads."""


class UsageError(FrostlineError):
    """The request itself cannot be carried out."""


class BadPlace(UsageError):
    """A file, line or range that is not there."""


class BadSetting(UsageError):
    """A setting whose value has no meaning."""


class WorkerLost(FrostlineError):
    """The worker process ended or cannot be reached."""


class WorkerRefused(FrostlineError):
    """The worker is there and could not do what was asked."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class ModelUnusable(WorkerRefused):
    """The model's files are missing, torn or of a kind that cannot be run."""

    def __init__(self, message: str) -> None:
        super().__init__("model", message)


class WireError(FrostlineError):
    """What arrived is not a message of this protocol."""
