"""What the barrier is told about an edit: the parser, the disk and the settings asked.

The barrier decides; this only looks. It may take a while (a parse of a large file), so it is called
in a thread.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pathspec import GitIgnoreSpec

from frostline.config import Settings
from frostline.context import syntax
from frostline.context.exclude import Exclusions
from frostline.core.barrier import Findings
from frostline.core.text import Document, TextEdit

# An edit that deletes fewer characters than this is small enough to be looked at afterwards.
_FEW = 80


def find(
    document: Document,
    edits: Sequence[TextEdit],
    settings: Settings,
    exclusions: Exclusions,
    *,
    whole: bool,
    verified: bool,
) -> Findings:
    """Return what is to be known about these edits before they are made.

    Args:
        whole: the edits are whole holes. A part of one, a word say, seldom parses, and is the user's
            own word; it is not held against the syntax.
        verified: whether the model's last look agreed with the draft.
    """
    breaks = whole and bool(syntax.breaks(document.text, edits, document.language))
    return Findings(
        forbidden=forbidden(document, edits, settings, exclusions),
        breaks_syntax=breaks,
        risk=risk(document, edits, settings, verified=verified),
    )


def forbidden(
    document: Document, edits: Sequence[TextEdit], settings: Settings, exclusions: Exclusions
) -> str:
    """Return why this file may not be changed in this way, or nothing."""
    size = sum(len(edit.text) + len(edit.span) for edit in edits)
    if size > settings.max_edit_chars:
        return f"The edit changes {size} characters; the limit is {settings.max_edit_chars}."
    if reason := exclusions.reason(document.uri, len(document.text)):
        return reason
    path = path_of(document.uri)
    if path is None:
        return ""
    roots = [Path(root) for root in exclusions.roots]
    if roots and not any(path.is_relative_to(root) for root in roots):
        return f"{path.name} is outside the workspace; open its folder to change it."
    if path.exists() and not os.access(path, os.W_OK):
        return f"{path.name} is read-only."
    return ""


def risk(
    document: Document, edits: Sequence[TextEdit], settings: Settings, *, verified: bool
) -> str:
    """Return why somebody should look at the edit before it is made, or nothing."""
    deleted = sum(len(edit.span) for edit in edits)
    written = sum(len(edit.text) for edit in edits)
    path = path_of(document.uri)
    protected = GitIgnoreSpec.from_lines(settings.protected)
    rules = {
        "deletes": (
            deleted > max(written, _FEW),
            f"The edit deletes {deleted} characters and writes {written}.",
        ),
        "protected": (
            path is not None and protected.match_file(str(path).lstrip("/")),
            "The file is protected by your settings.",
        ),
        "large": (
            max(deleted, written) > settings.large_edit_chars,
            f"The edit is large: {max(deleted, written)} characters.",
        ),
        "unverified": (not verified, "The model itself was not sure of this draft."),
    }
    return next(
        (why for name, (found, why) in rules.items() if found and name in settings.risks), ""
    )


def path_of(uri: str) -> Path | None:
    """Return the path of a file's URI, or None for a buffer without a file."""
    parts = urlsplit(uri)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None
