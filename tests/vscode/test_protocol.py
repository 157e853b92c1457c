"""The extension's mirrors: the protocol's types, and the settings, as the server has them.

`protocol.ts` is what `mirror()` prints, so the comparison is of plain text; `pytest --update` writes it.
"""

from __future__ import annotations

import inspect
import json
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from frostline.config import USER_ONLY, described
from frostline.lsp import extension as ext

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
MIRROR = FOLDER / "src" / "protocol.ts"
HEAD = """\
// The `frostline/*` messages, as server/frostline/lsp/extension.py has them. A test compares the two:
// change that file, then `pytest tests/vscode/test_protocol.py --update`.

"""
PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", Any: "unknown"}
NAMED = {
    getattr(ext, name): name
    for name in ("IntentName", "Scope", "PieceState", "SessionState", "WorkerState")
}


def typed(kind: Any) -> str:
    """Return the TypeScript of a type; what may be None is left out instead, so None is no part of it."""
    if kind in NAMED:
        return NAMED[kind]
    if kind in PLAIN:
        return PLAIN[kind]
    origin, given = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " | ".join(json.dumps(one) for one in given)
    if origin in (Union, types.UnionType):
        (only,) = (one for one in given if one is not type(None))
        return typed(only)
    if origin is tuple:
        return f"{typed(given[0])}[]" if given[-1] is ... else f"[{', '.join(map(typed, given))}]"
    if origin is dict:
        return f"Record<string, {typed(given[1])}>"
    return str(kind.__name__)


def interface(struct: type[msgspec.Struct]) -> str:
    """Return the TypeScript interface of a message."""
    hints = get_type_hints(struct)
    lines = []
    for one in msgspec.structs.fields(struct):
        optional = "" if one.required else "?"
        lines.append(f"  readonly {one.encode_name}{optional}: {typed(hints[one.name])};\n")
    about = (inspect.getdoc(struct) or "").partition("\n")[0]
    return f"/** {about} */\nexport interface {struct.__name__} {{\n{''.join(lines)}}}\n"


def mirror() -> str:
    """Return protocol.ts."""
    structs = [
        one
        for one in vars(ext).values()
        if isinstance(one, type) and issubclass(one, msgspec.Struct) and one is not ext.Wire
    ]
    names = {value: name for name, value in vars(ext).items() if isinstance(value, str)}
    methods = [f"export const {names[one]} = {json.dumps(one)};\n" for one in ext.METHODS]
    unions = [f"export type {name} = {union(kind)};\n" for kind, name in NAMED.items()]
    parts = [
        f"export const VERSION = {ext.VERSION};\n\n",
        "".join(methods) + "\n",
        "".join(unions) + "\n",
        "\n".join(interface(one) for one in structs),
    ]
    return HEAD + "".join(parts)


def union(kind: Any) -> str:
    return " | ".join(json.dumps(one) for one in get_args(kind))


def test_the_protocol_is_the_servers(request: pytest.FixtureRequest):
    if request.config.getoption("--update"):
        MIRROR.write_text(mirror())
    assert MIRROR.read_text() == mirror(), "run: pytest tests/vscode/test_protocol.py --update"


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def test_the_settings_it_passes_on_are_the_servers():
    """Every setting of package.json that is no setting of the editor's own is one of the server's."""
    given = json.loads((FOLDER / "package.json").read_text())["contributes"]["configuration"]
    shown = {
        name.removeprefix("frostline."): one
        for group in given
        for name, one in group["properties"].items()
    }
    source = (FOLDER / "src" / "settings.ts").read_text()
    passed = source.partition("PASSED_ON = [")[2].partition("]")[0]
    names = [json.loads(word) for word in passed.replace("\n", " ").split(",") if word.strip()]
    defaults = {camel(name): default for name, default, _ in described() if name not in USER_ONLY}
    assert names
    for name in names:
        default = defaults[name]
        assert shown[name]["default"] == (list(default) if isinstance(default, tuple) else default)


def test_every_setting_and_command_says_what_it_is():
    page = json.loads((FOLDER / "package.json").read_text())["contributes"]
    silent = [
        name
        for group in page["configuration"]
        for name, one in group["properties"].items()
        if not (one.get("markdownDescription") or one.get("description"))
    ]
    commands = {one["command"] for one in page["commands"]}
    assert silent == []
    assert all(one.get("title") for one in page["commands"])
    # A key that works without a draft could only be one that the user had for something else.
    begins = {"frostline.draft", "frostline.body", "frostline.repair"}
    for key in page["keybindings"]:
        assert key["command"] in commands
        assert "frostline.serves" in key["when"] or "frostline.draftShown" in key["when"]
        assert ("frostline.draftShown" in key["when"]) == (key["command"] not in begins)
        assert key["key"].lower() not in ("tab", "enter")
