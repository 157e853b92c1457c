"""The plugin's mirror: the protocol's types as the server has them, for Neovim's language server.

`protocol.lua` is what `mirror()` prints, so the comparison is of plain text; `pytest --update` writes it.
"""

from __future__ import annotations

import inspect
import re
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from editors.neovim import PLUGIN
from frostline.lsp import extension as ext

MIRROR = PLUGIN / "lua" / "frostline" / "protocol.lua"
HEAD = """\
--- The `frostline/*` messages, as server/frostline/lsp/extension.py has them. A test compares the two:
--- change that file, then `pytest tests/editors/test_protocol.py --update`.

local M = {}

"""
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", Any: "any"}
NAMED = {
    kind: name
    for name, kind in vars(ext).items()
    if get_origin(kind) is Literal and not name.startswith("_")
}


def typed(kind: Any) -> str:
    """Return the Lua type; what may be None is left out of the message instead."""
    if kind in NAMED:
        return f"frostline.{NAMED[kind]}"
    if kind in PLAIN:
        return PLAIN[kind]
    origin, given = get_origin(kind), get_args(kind)
    if origin is Literal:
        return choices(kind)
    if origin in (Union, types.UnionType):
        (only,) = (one for one in given if one is not type(None))
        return typed(only)
    if origin is tuple:
        many = given[-1] is ...
        return f"{typed(given[0])}[]" if many else f"[{', '.join(map(typed, given))}]"
    if origin is dict:
        return f"table<string, {typed(given[1])}>"
    return f"frostline.{kind.__name__}"


def choices(kind: Any) -> str:
    return "|".join(f"'{one}'" for one in get_args(kind))


def classed(struct: type[msgspec.Struct]) -> str:
    """Return the annotation of a message."""
    hints = get_type_hints(struct)
    about = (inspect.getdoc(struct) or "").partition("\n")[0]
    lines = [f"---@class frostline.{struct.__name__} {about}\n"]
    for one in msgspec.structs.fields(struct):
        name = one.encode_name + ("" if one.required else "?")
        lines.append(f"---@field {name} {typed(hints[one.name])}\n")
    return "".join(lines)


def mirror() -> str:
    """Return protocol.lua."""
    structs = [
        one
        for one in vars(ext).values()
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one is not ext.Wire
    ]
    names = {value: name for name, value in vars(ext).items() if isinstance(value, str)}
    parts = [
        f"M.VERSION = {ext.VERSION}\n\n",
        "".join(f"M.{names[one]} = '{one}'\n" for one in ext.METHODS) + "\n",
        "".join(f"---@alias frostline.{name} {choices(kind)}\n" for kind, name in NAMED.items()),
        "\n",
        "\n".join(classed(one) for one in structs),
        "\nreturn M\n",
    ]
    return HEAD + "".join(parts)


def test_the_protocol_is_the_servers(request: pytest.FixtureRequest):
    if request.config.getoption("--update"):
        MIRROR.write_text(mirror())
    assert MIRROR.read_text() == mirror(), "run: pytest tests/editors/test_protocol.py --update"


def sources() -> dict[str, str]:
    return {
        str(path.relative_to(PLUGIN)): path.read_text()
        for path in PLUGIN.rglob("*.lua")
        if path not in (MIRROR, PLUGIN / "minimal.lua")
    }


def test_no_method_is_spelled_anywhere_else():
    """Besides the one table that Neovim reads the handlers from."""
    spelled = {
        name: found
        for name, text in sources().items()
        if (found := re.findall(r"'frostline/\w+'", text)) and name != "lsp/frostline.lua"
    }
    assert spelled == {}
    handled = re.findall(r"\['(frostline/\w+)'\]", sources()["lsp/frostline.lua"])
    assert set(handled) == {ext.PROVISIONAL, ext.STATE, ext.STATUS}


def test_every_type_that_the_plugin_names_is_there():
    text = "\n".join(sources().values())
    classes = re.findall(r"---@(?:class|alias) (frostline\.\w+)", text + MIRROR.read_text())
    named = set(re.findall(r"(?<![\w'/(.])(frostline\.[A-Z]\w+)", text))
    assert named - set(classes) == set()
    assert len(classes) == len(set(classes))


def test_every_state_has_its_words():
    """A state that the server gains is shown by name, not as an error."""
    status = sources()["lua/frostline/status.lua"]
    words = re.search(r"local words = \{(.*?)\n\}", status, re.DOTALL)
    assert words
    assert set(re.findall(r"(\w+) = '", words[1])) == set(get_args(ext.WorkerState))
    states = re.search(r"local states = \{(.*?)\}", sources()["lua/frostline/draw.lua"])
    assert states
    assert set(re.findall(r"(\w+) = '", states[1])) == set(get_args(ext.PieceState))
