"""The hub that models are pulled from, through huggingface_hub.

Its downloads are files of their own that go on where they broke off, also in another process (the
library's own keep nothing of a broken one): its session and its login fetch them, by names that it
publishes. What goes wrong with the world is one sentence.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from frostline.errors import ModelUnusable
from frostline.models.store import File, Progress, Pulled

# How often a line that broke is taken up again with nothing come meanwhile, how long after, and how long a
# line may be silent.
TRIES, WAIT_S, SILENT_S = 5, 1.0, 30.0
BUSY = (408, 429, 500, 502, 503, 504)
_NAME = re.compile(r"[\w][\w.-]*/[\w][\w.-]*")


def named(name: str) -> str:
    """Return `name` if a model on the hub can be called so.

    Raises:
        ModelUnusable: it cannot.
    """
    if not _NAME.fullmatch(name) or ".." in name:
        raise ModelUnusable(f"{name!r} is no model's name on the hub; one looks like OWNER/NAME")
    return name


class HuggingFace:
    """The hub at HF_ENDPOINT, huggingface.co without one; with the login that huggingface_hub has."""

    def describe(self, name: str, revision: str | None) -> Pulled:
        """Return what the model called `name` is at `revision`, pinned to its commit.

        Raises:
            ModelUnusable: it is not there, not open to this user, or the hub cannot be reached.
        """
        import huggingface_hub

        with _said(name, revision):
            info = huggingface_hub.HfApi().model_info(
                named(name), revision=revision, files_metadata=True, timeout=30
            )
        files = tuple(
            File(
                one.rfilename,
                one.size or 0,
                one.lfs.sha256 if one.lfs else "",
                "" if one.lfs else one.blob_id or "",
            )
            for one in info.siblings or ()
        )
        licence = getattr(info.card_data, "license", None) if info.card_data else None
        if not info.sha:
            raise ModelUnusable(f"the hub does not say which commit {name} is at; try again later")
        return Pulled(name, info.sha, str(licence or ""), files)

    def fetch(self, model: Pulled, file: File, path: Path, progress: Progress) -> None:
        """Write a file to `path`, on from what stands there.

        Raises:
            ModelUnusable: it broke off; what came so far stays.
        """
        import huggingface_hub

        url = huggingface_hub.hf_hub_url(model.name, file.name, revision=model.revision)
        path.touch()
        left = TRIES
        with _said(model.name, model.revision):
            while (start := path.stat().st_size) < file.size and left:
                try:
                    _go_on(url, path, start, progress)
                except Exception as error:
                    if left == 1 or not _may_pass(error):
                        raise
                    time.sleep(WAIT_S)
                left = TRIES if path.stat().st_size > start else left - 1


def _go_on(url: str, path: Path, start: int, progress: Progress) -> None:
    """Write what is at `url` from its byte `start` on to the end of the file at `path`."""
    from huggingface_hub import get_session, get_token, hf_raise_for_status

    # As it is, not packed: a packed file could not be gone on with in its middle.
    headers = {"Accept-Encoding": "identity"}
    if token := get_token():
        headers["Authorization"] = f"Bearer {token}"
    if start:
        headers["Range"] = f"bytes={start}-"
    asked = get_session().stream(
        "GET", url, headers=headers, timeout=SILENT_S, follow_redirects=True
    )
    with path.open("ab") as opened, asked as answer:
        hf_raise_for_status(answer)
        if start and answer.status_code == 200:
            # All of it comes, whatever was asked for.
            opened.truncate(0)
            progress(-start)
        for stretch in answer.iter_bytes():
            opened.write(stretch)
            progress(len(stretch))


@contextmanager
def _said(name: str, revision: str | None) -> Iterator[None]:
    """Turn what huggingface_hub raises into one sentence."""
    from huggingface_hub import constants, errors

    try:
        yield
    except errors.GatedRepoError as error:
        raise ModelUnusable(
            f"{name} is open only to those who agreed to its terms: do so at "
            f"{constants.ENDPOINT}/{name}, then run `hf auth login`"
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise ModelUnusable(
            f"{constants.ENDPOINT} has no model {name}, or it is private; check its name, or run `hf auth login`"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise ModelUnusable(f"{name} has no revision {revision}") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else "an error"
        raise ModelUnusable(
            f"{constants.ENDPOINT} answered with {status} for {name}; try again later"
        ) from error
    except (errors.OfflineModeIsEnabled, ConnectionError) as error:
        raise ModelUnusable(
            "HF_HUB_OFFLINE is set, so nothing is fetched; a model's folder that was copied here works without a hub"
        ) from error
    except Exception as error:
        # The libraries below differ by version in which class a broken line is.
        if not _broken_line(error):
            raise
        raise ModelUnusable(
            f"{constants.ENDPOINT} cannot be reached or broke off ({type(error).__name__}); pull again to go on, "
            "or set `model` to a folder that was copied here"
        ) from error


def _may_pass(error: Exception) -> bool:
    """Return whether to ask again makes sense: the line broke, or the hub has too much to do."""
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(error, HfHubHTTPError):
        return error.response is not None and error.response.status_code in BUSY
    return _broken_line(error)


def _broken_line(error: BaseException) -> bool:
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(modules & {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3"})
