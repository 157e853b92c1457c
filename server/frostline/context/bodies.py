"""Bodies of functions, and those that are still to be written.

Two shapes: a block that is marked by its indentation (Python) and one between braces. In both a
body that stands on lines of its own is taken from after its first line's indentation to before its
last line's end. One that shares the line of its header is taken whole, from right behind the ":" or
"{", so that what is written in its place may move to lines of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tree_sitter import Node

from frostline.context.outline import Definition, colon_of, definitions, is_comment
from frostline.context.syntax import Captures, Tree, parse
from frostline.context.words import BLANK, indentation, is_blank, width
from frostline.core.regions import Hole
from frostline.core.text import Document, Span, without_end

_TODO = re.compile(r"\b(?:TODO|FIXME)\b", re.IGNORECASE)


def body(document: Document, offset: int) -> Hole | None:
    """Return the body of the innermost function, method or closure around `offset`.

    A cursor in a function's indentation, or on a blank line below it that is indented deeper than
    it, is in the function. A leading docstring stays frozen. A body of braces is what is inside
    them; the body of an arrow or a lambda is its expression.

    Returns:
        The hole, or None without a grammar or outside any function. A function that has no body
        yet, or nothing but a docstring, gives an empty hole where the body goes.
    """
    tree = parse(document.text, document.language)
    if tree is None:
        return None
    offset = min(offset, len(tree.text))
    matches, scopes = _scopes(document, tree, offset)
    for each in reversed(scopes):
        if each.kind in ("function", "closure"):
            return _body_of(document, tree, each, _ids(matches, "docstring"), offset)
    return None


def _class_around(document: Document, tree: Tree, offset: int) -> Definition | None:
    _, scopes = _scopes(document, tree, min(offset, len(tree.text)))
    return next((each for each in reversed(scopes) if each.kind == "class"), None)


def _scopes(document: Document, tree: Tree, offset: int) -> tuple[list[Captures], list[Definition]]:
    """Return the matches at a cursor, and the definitions around it, outer before inner."""
    at, column = _anchor(document, offset, by_indentation=tree.grammar.name == "python")
    matches = tree.matches(Span(min(at, offset), max(at, offset)))
    byte, byte_above = tree.byte(max(at, offset)), tree.byte(at)

    def is_around(each: Definition) -> bool:
        if column is None or each.holds_byte(byte):
            return each.holds_byte(byte)
        indent = _indent(document, tree.offset(each.node.start_byte))
        return each.holds_byte(byte_above) and column > width(indent)

    return matches, [each for each in definitions(tree, matches) if is_around(each)]


def stubs(document: Document, offset: int | None) -> tuple[Hole, ...]:
    """Return every body that is still to be written, in the innermost class around `offset`.

    In the whole file when `offset` is None or in no class. To be written is a body that is only
    `...`, `pass`, comments that begin with TODO or FIXME, or an error that says "not implemented";
    in languages with braces also one that is empty. A docstring stays frozen ahead of it.

    Left alone are bodies that are empty on purpose: abstract methods, overloads, members of a
    protocol, everything in a `.pyi` file; and empty bodies of closures without a name and of
    constructors, which are finished more often than not.
    """
    tree = parse(document.text, document.language)
    if tree is None or document.uri.endswith(".pyi"):
        return ()
    owner = None if offset is None else _class_around(document, tree, offset)
    matches = tree.matches(None if owner is None else tree.span(owner.node))
    found = definitions(tree, matches)
    if owner is not None:
        found = tuple(each for each in found if each.node == owner.node or owner.holds(each))
    abstract, complete = _ids(matches, "abstract"), _ids(matches, "complete")
    stub, docs = _ids(matches, "stub"), _ids(matches, "docstring")
    holes: list[Hole] = []
    for each, outer in _with_owners(found):
        if each.kind not in ("function", "closure") or each.node.id in abstract:
            continue
        if outer is not None and outer.node.id in abstract:
            continue
        may_be_empty = each.kind == "closure" or each.node.id in complete
        if _is_stub(document, tree, each, stub, docs, may_be_empty=may_be_empty):
            hole = _body_of(document, tree, each, docs, tree.offset(each.body.end_byte))
            holes.append(Hole(hole.span, True, hole.indent))
    return tuple(holes)


def _ids(matches: Sequence[Captures], kind: str) -> frozenset[int]:
    return frozenset(node.id for captures in matches for node in captures.get(kind, ()))


def _with_owners(
    found: Sequence[Definition],
) -> list[tuple[Definition, Definition | None]]:
    """Return each definition with the innermost one that holds it."""
    open_: list[Definition] = []
    result: list[tuple[Definition, Definition | None]] = []
    for each in found:
        while open_ and open_[-1].node.end_byte < each.node.end_byte:
            open_.pop()
        result.append((each, open_[-1] if open_ else None))
        open_.append(each)
    return result


def _anchor(document: Document, offset: int, *, by_indentation: bool) -> tuple[int, int | None]:
    """Return the offset at which to look for scopes.

    In indentation it is the line's first character. Where blocks are marked by indentation, a blank
    line or a comment of its own may be below the text of the block that it is meant for: then it is
    the end of the code above, with the column that a scope must be left of to hold the cursor.
    """
    line = document.line_at(offset)
    start = document.line_start(line)
    content = without_end(document.lines[line])
    if not by_indentation or _is_code(content):
        lead = len(_lead(document.lines[line]))
        return max(offset, start + lead) if lead < len(content) else offset, None
    above = line
    while above > 0 and not _is_code(without_end(document.lines[above])):
        above -= 1
    code = without_end(document.lines[above])
    return document.line_start(above) + len(code.rstrip(BLANK)), width(indentation(content))


def _is_code(content: str) -> bool:
    return content.lstrip(BLANK)[:1] not in ("", "#")


def _indent(document: Document, offset: int) -> str:
    return indentation(without_end(document.lines[document.line_at(offset)]))


def _line_end(document: Document, offset: int) -> int:
    line = document.line_at(offset)
    return document.line_start(line) + len(without_end(document.lines[line]))


def _hole(document: Document, start: int, end: int, multiline: bool | None = None) -> Hole:
    if multiline is None:
        old = document.text[start:end]
        multiline = "\n" in old or "\r" in old
    return Hole(Span(start, end), multiline, _indent(document, start))


def _body_of(
    document: Document, tree: Tree, each: Definition, docs: frozenset[int], offset: int
) -> Hole:
    if each.body.type == "block" and tree.grammar.name == "python":
        return _indented(document, tree, each, docs, offset)
    children = each.body.children
    if children and children[0].type == "{":
        return _braced(document, tree, each.body)
    span = tree.span(each.body)
    return _hole(document, span.start, span.end)


# Blocks by indentation


def _items(each: Definition) -> list[Node]:
    """Return the statements and comments of an indented block, those of the header's line not."""
    colon = _colon(each)
    head = [
        child
        for child in each.node.children
        if is_comment(child)
        and child.start_byte > colon.start_byte
        and child.start_point.row > colon.start_point.row
    ]
    return head + [child for child in each.body.children if child.is_named]


def _colon(each: Definition) -> Node:
    colon = colon_of(each)
    assert colon is not None
    return colon


def _after_docstring(items: list[Node], docs: frozenset[int]) -> list[Node]:
    for place, item in enumerate(items):
        if item.id in docs:
            return items[place + 1 :]
    return items


def _indented(
    document: Document, tree: Tree, each: Definition, docs: frozenset[int], offset: int
) -> Hole:
    items = _items(each)
    colon = _colon(each)
    behind = tree.offset(colon.end_byte)
    if not each.body.children:
        return _missing(document, each, behind, offset, tree)
    rest = _after_docstring(items, docs)
    if not rest:
        end = _line_end(document, tree.offset(items[-1].end_byte))
        return _hole(document, end, end, multiline=True)
    end = _line_end(document, tree.offset(rest[-1].end_byte))
    if each.body.start_point.row == colon.start_point.row and rest[0] is items[0]:
        return _hole(document, behind, end, multiline=True)
    hole = _hole(document, tree.offset(rest[0].start_byte), end)
    return Hole(hole.span, True, hole.indent)


def _missing(document: Document, each: Definition, behind: int, offset: int, tree: Tree) -> Hole:
    """Return the hole of a function whose body is not there: comments, a blank line, or nothing."""
    outer = width(_indent(document, tree.offset(each.node.start_byte)))
    first = document.line_at(behind) + 1
    below = _deeper_lines(document, first, outer)
    noted = [line for line in below if not is_blank(without_end(document.lines[line]))]
    if noted:
        start = document.line_start(noted[0]) + len(_lead(document.lines[noted[0]]))
        return _hole(document, start, _line_end(document, document.line_start(noted[-1])), True)
    here = document.line_at(offset)
    line = here if here in below else below[0] if below else None
    if line is None:
        end = _line_end(document, behind)
        return _hole(document, end, end, multiline=True)
    end = _line_end(document, document.line_start(line))
    return _hole(document, end, end, multiline=True)


def _lead(line: str) -> str:
    return line[: len(line) - len(line.lstrip(BLANK))]


def _deeper_lines(document: Document, first: int, outer: int) -> list[int]:
    """Return the lines from `first` on that are blank or a comment, and indented beyond `outer`."""
    found = []
    for line in range(first, len(document.lines)):
        content = without_end(document.lines[line])
        blank = is_blank(content)
        if not blank and not content.lstrip(BLANK).startswith("#"):
            break
        if width(indentation(content)) > outer:
            found.append(line)
        elif not blank:
            break
    return found


# Blocks between braces


def _content(block: Node) -> list[Node]:
    """Return the children of a block, braces included, without the list that Go puts around them."""
    return [
        inner
        for child in block.children
        for inner in (child.children if child.type == "statement_list" else (child,))
    ]


def _braced(document: Document, tree: Tree, block: Node) -> Hole:
    children = _content(block)
    start = tree.offset(children[0].end_byte)
    last = children[-1]
    closed = last.type == "}" and not last.is_missing
    end = tree.offset(last.start_byte if closed else block.end_byte)
    text = document.text
    inside = text[start:end]
    if "\n" not in inside and "\r" not in inside:
        return _hole(document, start, end, multiline=True)
    first = children[1] if len(children) > 2 else None
    if first is not None and is_comment(first) and len(children) > 3:
        # A remark on the line of the brace belongs to the header.
        remark = tree.span(first)
        if remark.end <= _line_end(document, start) <= tree.offset(children[2].start_byte):
            start = remark.end
    top, bottom = document.line_at(start), document.line_at(end)
    if is_blank(text[start : _line_end(document, start)]):
        top += 1
        while top < bottom and is_blank(without_end(document.lines[top])):
            top += 1
        if top >= bottom and is_blank(text[document.line_start(bottom) : end]):
            return _empty_lines(document, start, bottom)
        start = document.line_start(top) + len(_lead(document.lines[top]))
    if is_blank(text[document.line_start(bottom) : end]):
        bottom -= 1
        while is_blank(without_end(document.lines[bottom])):
            bottom -= 1
        end = _line_end(document, document.line_start(bottom))
    return _hole(document, start, max(start, end), multiline=True)


def _empty_lines(document: Document, start: int, bottom: int) -> Hole:
    """Return the hole in a block that holds nothing but blank lines up to the line of its brace."""
    top = document.line_at(start)
    if bottom - top < 2:
        at = _line_end(document, start)
        return _hole(document, at, at, multiline=True)
    first = _line_end(document, document.line_start(top + 1))
    last = _line_end(document, document.line_start(bottom - 1))
    return _hole(document, first, last, multiline=True)


# Bodies still to be written


def _is_stub(
    document: Document,
    tree: Tree,
    each: Definition,
    stub: frozenset[int],
    docs: frozenset[int],
    *,
    may_be_empty: bool,
) -> bool:
    if each.body.type == "block" and tree.grammar.name == "python":
        if not each.body.children:
            hole = _missing(document, each, tree.offset(_colon(each).end_byte), 0, tree)
            return _is_todo(document.slice(hole.span))
        items = _after_docstring(_items(each), docs)
        return _only_stubs(tree, items, stub) and bool(items)
    children = _content(each.body)
    if not children or children[0].type != "{" or children[-1].is_missing:
        return False
    items = [child for child in children if child.is_named]
    if not items:
        return not may_be_empty
    return _only_stubs(tree, items, stub)


def _only_stubs(tree: Tree, items: Sequence[Node], stub: frozenset[int]) -> bool:
    comments = [item for item in items if is_comment(item)]
    if any(item.id not in stub for item in items if not is_comment(item)):
        return False
    return not comments or _is_todo(tree.slice(comments[0]))


def _is_todo(comment: str) -> bool:
    return _TODO.search(comment) is not None
