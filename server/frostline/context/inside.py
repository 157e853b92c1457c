"""What a hole lies inside of, as rules for the text that is put there."""

from __future__ import annotations

import re

from frostline.context.outline import is_comment
from frostline.context.syntax import Tree, parse
from frostline.context.words import indentation, is_blank
from frostline.core.regions import Hole
from frostline.core.text import Document, Span, split_lines, without_end

_OPENING = re.compile(r"([A-Za-z]*)#*([\"'`])")


def closing(document: Document, span: Span) -> str:
    """Return the characters that would end the string or comment that `span` lies inside of.

    The quote of a string, also of one that a placeholder lies in; the braces of Python's f-strings;
    the slash of a comment that has an end. Empty outside of strings and comments, and without a
    grammar.
    """
    tree = parse(document.text, document.language)
    if tree is None:
        return ""
    kinds = {
        node.id: kind
        for captures in tree.matches(span)
        for kind in ("string", "substitution")
        for node in captures.get(kind, ())
    }
    start, end = tree.byte(span.start), tree.byte(span.end)
    in_placeholder = False
    found = ""
    for node in reversed(tree.path(span)):
        if not node.start_byte < start or not (end < node.end_byte or _is_line_comment(tree, node)):
            continue
        if is_comment(node):
            return "" if _is_line_comment(tree, node) else "/"
        match kinds.get(node.id):
            case "substitution":
                in_placeholder = True
            case "string":
                found += _ends_of(tree.slice(node), braces=not in_placeholder)
    return "".join(dict.fromkeys(found))


def _is_line_comment(tree: Tree, node: object) -> bool:
    return is_comment(node) and not tree.slice(node).startswith("/*")  # type: ignore[arg-type]


def _ends_of(string: str, *, braces: bool) -> str:
    opening = _OPENING.match(string)
    if opening is None:
        return ""
    prefix, quote = opening.groups()
    return quote + ("{}" if braces and "f" in prefix.lower() else "")


def margin(document: Document, hole: Hole) -> str:
    """Return how each further line of a hole has to begin; blank lines and prose are free.

    It is the indentation of the hole's own line, or of the old text's shallowest line where that is
    less: a selection may take in what follows a block.
    """
    if not hole.multiline or closing(document, hole.span):
        return ""
    lines = split_lines(document.slice(hole.span))[1:]
    indents = [indentation(line) for line in map(without_end, lines) if not is_blank(line)]
    return min([hole.indent, *indents], key=len) if hole.indent else ""
