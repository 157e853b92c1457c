"""The definitions in a tree, and which of them are around a place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tree_sitter import Node

from frostline.context.syntax import Captures, Tree

_KINDS = ("function", "closure", "class", "scope")


@dataclass(frozen=True, slots=True)
class Definition:
    """A function, closure, class or other scope, as nodes of a tree.

    Attributes:
        kind: "function", "closure", "class" or "scope" (a namespace or module).
        node: the whole of it, without decorators.
        body: what it holds.
        name: its name's text; None when it has none.
    """

    kind: str
    node: Node
    body: Node
    name: str | None

    def holds_byte(self, byte: int) -> bool:
        """Return True where `byte` is in it or right behind it."""
        return self.node.start_byte <= byte <= self.node.end_byte

    def holds(self, other: Definition) -> bool:
        """Return True when `other` is inside its body."""
        return (
            self.body.start_byte <= other.node.start_byte
            and other.node.end_byte <= self.body.end_byte
        )


def definitions(tree: Tree, matches: Iterable[Captures]) -> tuple[Definition, ...]:
    """Return the definitions among a tree's matches, outer before inner, in the text's order."""
    found: dict[int, Definition] = {}
    for captures in matches:
        for kind in _KINDS:
            if kind not in captures or "body" not in captures:
                continue
            node = captures[kind][0]
            # A closure that is bound to a name is captured twice; the name says more.
            if node.id in found and found[node.id].kind != "closure":
                continue
            names = captures.get("name")
            name = tree.slice(names[0]) if names else None
            found[node.id] = Definition(kind, node, captures["body"][0], name)
    return tuple(
        sorted(found.values(), key=lambda each: (each.node.start_byte, -each.node.end_byte))
    )


def is_comment(node: Node) -> bool:
    """Return True for a comment; all our grammars end the names of these nodes so."""
    return node.type.endswith("comment")
