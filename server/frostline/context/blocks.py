"""Where a long range may be cut: at the lines on which statements begin, and how deep those are.

The choice among them is `core/blocks.py`. A comment goes with what it stands above.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from frostline.context.outline import is_comment
from frostline.context.syntax import Tree, parse
from frostline.context.words import is_blank
from frostline.core.text import Document, Span, without_end

# What holds statements, in the grammars that there are; not what holds arguments or items of data.
_BODY = re.compile(
    r"(?:\A|_)(?:module|program|source_file|translation_unit|block|body|declaration_list"
    r"|compound_statement|statement_list|case)\Z|\Aswitch_\w*(?:group|case|default)\Z"
)


def borders(document: Document, span: Span) -> dict[int, int]:
    """Return the lines of `span` (from 0) on which a statement begins, with its depth in the tree.

    Without a grammar those are the lines below a blank one, all of one depth.
    """
    tree = parse(document.text, document.language)
    if tree is None:
        return _paragraphs(document, span)
    found: dict[int, int] = {}
    waiting = [(node, depth) for depth, node in enumerate(tree.path(span)[-1:])]
    while waiting:
        node, depth = waiting.pop()
        holds = _BODY.search(node.type) is not None
        before: Node | None = None
        for child in node.children:
            place = tree.span(child)
            if place.start < span.end and place.end > span.start:
                if holds and child.is_named and _begins_here(document, tree, child, before):
                    line = document.line_at(place.start)
                    found[line] = min(depth, found.get(line, depth))
                if child.child_count and child.end_point.row > child.start_point.row:
                    waiting.append((child, depth + 1))
            before = child
    return found


def _begins_here(document: Document, tree: Tree, node: Node, before: Node | None) -> bool:
    start = tree.span(node).start
    line = document.line_at(start)
    if not is_blank(document.text[document.line_start(line) : start]):
        return False
    if before is None or not is_comment(before):
        return True
    return document.line_at(tree.span(before).end) < line - 1


def _paragraphs(document: Document, span: Span) -> dict[int, int]:
    first, last = document.line_at(span.start), document.line_at(span.end)
    blank = [is_blank(without_end(document.lines[line])) for line in range(first, last + 1)]
    return {
        first + place: 0 for place in range(1, len(blank)) if blank[place - 1] and not blank[place]
    }
