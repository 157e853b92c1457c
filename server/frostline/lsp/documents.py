"""The documents that are open, as the editor last told them.

pygls keeps a copy of its own that counts form feeds and U+2028 as line ends and so puts edits below
one on the wrong line; ours replaces it. A frozen `Document` is what leaves this module, so nobody's
text changes under a running draft.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from frostline.core.text import Change, Document, Encoding, TextEdit, difference

logger = logging.getLogger(__name__)


# A document, and the edits that made it, each in terms of the text that the one before left.
Edited = tuple[Document, tuple[TextEdit, ...]]


class Documents:
    """Open documents by URI.

    Attributes:
        encoding: the unit of positions that was negotiated; UTF-16 until then, as LSP has it.
    """

    def __init__(self) -> None:
        self.encoding = Encoding.UTF16
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        return iter(list(self._open.values()))

    def get(self, uri: str) -> Document | None:
        """Return the document as it is now, or None when it is not open."""
        return self._open.get(uri)

    def opened(self, uri: str, version: int, language: str, text: str) -> Edited:
        """Remember a document; opening it again is a change of all that differs."""
        before = self._open.get(uri)
        document = Document.of(uri, version, language, text)
        self._open[uri] = document
        return document, () if before is None else (difference(before.text, document.text),)

    def changed(self, uri: str, version: int | None, changes: Sequence[Change]) -> Edited | None:
        """Return the document after changes, and the edits; None for one that was never opened."""
        document = self._open.get(uri)
        if document is None:
            logger.warning("a change to %s, which is not open", uri)
            return None
        number = document.version + 1 if version is None else version
        edits = document.edits_of(changes, self.encoding)
        document = document.changed(number, changes, self.encoding)
        self._open[uri] = document
        return document, edits

    def closed(self, uri: str) -> None:
        """Forget a document."""
        self._open.pop(uri, None)
