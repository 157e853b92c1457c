"""Grammars, the queries that are asked of them, and which file is written in what.

A language is one line in `_GRAMMARS` and one file in `queries/`. The names that a query file may
capture are the vocabulary of this package:

    @function @closure @class @scope   a definition, with its @body and perhaps its @name
    @header                            where that definition starts, when that is further out
    @data                              a type that is shown whole, with its @name
    @import @include                   what brings names in; @include does not say which
    @string @substitution              text that is no code, and code inside such text
    @docstring                         a statement that documents the definition around it
    @stub                              a statement that stands for a body still to be written
    @abstract                          a definition whose bodies are for somebody else to write
    @complete                          a function that may be empty and finished

Deliberately absent: parsers that are fetched at run time. Each grammar is a wheel that was
installed with the package; one that is missing or cannot be loaded means "no grammar".
"""

from __future__ import annotations

import functools
import importlib
import logging
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from tree_sitter import Language, Parser, Query

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Grammar:
    """One language's parser tables and its query.

    Attributes:
        name: the name of the query file.
        language: tree-sitter's tables.
        query: what this package asks of a tree, see the module's vocabulary.
    """

    name: str
    language: Language
    query: Query

    def parser(self) -> Parser:
        """Return a new parser; one must not be shared by two threads."""
        return Parser(self.language)


# language id: query file, module of the wheel, function that gives the tables
_GRAMMARS = {
    "python": ("python", "tree_sitter_python", "language"),
    "javascript": ("javascript", "tree_sitter_javascript", "language"),
    "javascriptreact": ("javascript", "tree_sitter_javascript", "language"),
    "typescript": ("typescript", "tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("typescript", "tree_sitter_typescript", "language_tsx"),
    "go": ("go", "tree_sitter_go", "language"),
    "rust": ("rust", "tree_sitter_rust", "language"),
    "java": ("java", "tree_sitter_java", "language"),
    "c": ("c", "tree_sitter_c", "language"),
    "cpp": ("cpp", "tree_sitter_cpp", "language"),
}

LANGUAGES: tuple[str, ...] = tuple(_GRAMMARS)

_EXTENSIONS = {
    ".py": "python",
    ".pyi": "python",
    ".pyw": "python",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".go": "go",
    ".rs": "rust",
    ".java": "java",
    ".c": "c",
    ".i": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".c++": "cpp",
    ".cppm": "cpp",
    ".h": "cpp",  # as editors do: C++ reads nearly all of C, C reads little of C++
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
    ".h++": "cpp",
    ".inl": "cpp",
    ".ipp": "cpp",
    ".tpp": "cpp",
}
_NAMES = {"SConstruct": "python", "SConscript": "python", "wscript": "python"}


def path_of(path_or_uri: str) -> str:
    """Return the path that a URI names, decoded and with "/"; a path comes back as it is."""
    scheme, colon, rest = path_or_uri.partition(":")
    # One letter before a colon is a drive of Windows, not a scheme.
    if colon and len(scheme) > 1 and scheme.replace("+", "").replace("-", "").isalnum():
        path = unquote(urlsplit(path_or_uri).path if rest.startswith("//") else rest)
        # file:///C:/x.py
        return path[1:] if path[:1] == "/" and path[2:3] == ":" else path
    return path_or_uri


def language_of(path_or_uri: str) -> str:
    """Return the LSP language id that a file's name suggests, "plaintext" when none is known."""
    name = PurePosixPath(path_of(path_or_uri).replace("\\", "/")).name
    if name in _NAMES:
        return _NAMES[name]
    extension = PurePosixPath(name).suffix
    if extension in (".C", ".H"):
        return "cpp"
    return _EXTENSIONS.get(extension.lower(), "plaintext")


@functools.cache
def for_language(language_id: str) -> Grammar | None:
    """Return the grammar of an LSP language id, loaded once, or None when there is none."""
    known = _GRAMMARS.get(language_id)
    if known is None:
        return None
    name, module, tables = known
    try:
        language = Language(getattr(importlib.import_module(module), tables)())
    except (ImportError, ValueError) as error:
        # ValueError: the wheel was made for another generation of tree-sitter.
        logger.warning("no grammar for %s: %s", language_id, error)
        return None
    return Grammar(name, language, Query(language, _query_source(name)))


def _query_source(name: str) -> str:
    source = resources.files(__package__).joinpath("queries", f"{name}.scm").read_text("utf-8")
    first = source.partition("\n")[0]
    if first.startswith("; inherits: "):
        return _query_source(first.removeprefix("; inherits: ").strip()) + source
    return source
