"""The hub that models are pulled from, through huggingface_hub.

Its downloads are files of their own that go on where they broke off, also in another process (the
library's own keep nothing of a broken one). What goes wrong with the world is one sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from frostline.errors import ModelUnusable
from frostline.models.store import File, Progress, Pulled

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
        from huggingface_hub.file_download import http_get
        from huggingface_hub.utils import logging
        from huggingface_hub.utils._headers import build_hf_headers

        # It tells of each try again; what comes of them is said once.
        logging.set_verbosity_error()
        url = huggingface_hub.hf_hub_url(model.name, file.name, revision=model.revision)
        # As it is, not packed: a packed file could not be gone on with in its middle.
        headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
        with _said(model.name, model.revision), path.open("ab") as opened:
            http_get(
                url,
                opened,
                resume_size=path.stat().st_size,
                headers=headers,
                expected_size=file.size,
                displayed_filename=file.name,
                tqdm_class=_told(progress),
            )


def _told(progress: Progress) -> Any:
    """Return a class with the face of a tqdm bar that tells `progress` of each stretch of bytes."""
    from huggingface_hub.utils.tqdm import tqdm

    class Told(tqdm):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **{**kwargs, "disable": True})

        def update(self, n: float | None = 1) -> bool | None:
            progress(int(n or 0))
            return None

    return Told


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


def _broken_line(error: BaseException) -> bool:
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(modules & {"httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3"}) or (
        isinstance(error, OSError) and "Consistency check failed" in str(error)
    )
