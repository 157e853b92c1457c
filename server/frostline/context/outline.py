"""The definitions in a tree, and which of them are around a place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from frostline.context.syntax import Captures, Tree
from frostline.core.text import Span

_KINDS = ("function", "closure", "class", "scope")


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, closure, class or other scope, as nodes of a tree.

    Attributes:
        kind: "function", "closure", "class" or "scope" (a namespace or module).
        node: what the grammar calls the definition.
        head: where a reader would say that it starts: with its decorators, or the name that a
            closure is bound to. The node itself when it has none of these.
        body: what it holds.
        name: its name's text; None when it has none.
    """

    kind: str
    node: Node
    head: Node
    body: Node
    name: str | None

    def holds_byte(self, byte: int) -> bool:
        """Return True where `byte` is in it or right behind it."""
        start = min(self.head.start_byte, self.node.start_byte)
        return start <= byte <= self.node.end_byte

    def holds(self, other: Definition) -> bool:
        """Return True when `other` is inside its body."""
        return (
            self.body.start_byte <= other.node.start_byte
            and other.node.end_byte <= self.body.end_byte
        )

    def header(self, tree: Tree) -> Span:
        """Return its text up to the body or the brace, without blanks or remarks behind."""
        end = self.body.start_byte
        if self.body.type == "block" and (colon := colon_of(self)) is not None:
            end = colon.end_byte
        start = min(self.head.start_byte, self.node.start_byte)
        blanks = len(tree.data[start:end]) - len(tree.data[start:end].rstrip())
        return Span(tree.offset(start), tree.offset(end - blanks))


def colon_of(definition: Definition) -> Node | None:
    """Return the colon that ends the header of a definition in a language that has one."""
    colons = [child for child in definition.node.children if child.type == ":"]
    return colons[-1] if colons else None


def definitions(tree: Tree, matches: Iterable[Captures]) -> tuple[Definition, ...]:
    """Return the definitions among a tree's matches, outer before inner, in the text's order."""
    found: dict[int, Definition] = {}
    for captures in matches:
        if "body" not in captures:
            continue
        for kind in _KINDS:
            if kind in captures:
                each = _definition(tree, kind, captures)
                known = found.get(each.node.id)
                # Several patterns may match one node; the one that says the most is kept.
                if known is None or _told(each) > _told(known):
                    found[each.node.id] = each
    return tuple(
        sorted(found.values(), key=lambda each: (each.node.start_byte, -each.node.end_byte))
    )


def _definition(tree: Tree, kind: str, captures: Captures) -> Definition:
    node = captures[kind][0]
    head = captures.get("header", [node])[0]
    names = captures.get("name")
    return Definition(
        kind, node, head, captures["body"][0], tree.slice(names[0]) if names else None
    )


def _told(each: Definition) -> int:
    return (
        4 * (each.kind != "closure") + 2 * (each.name is not None) + (each.head.id != each.node.id)
    )


def is_comment(node: Node) -> bool:
    """Return True for a comment; all our grammars end the names of these nodes so."""
    return node.type.endswith("comment")
