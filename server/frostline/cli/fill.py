"""`frostline fill` and `frostline rewrite`: one draft for a file, shown as a diff or written."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import difflib
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frostline.cli import settings_from
from frostline.cli.client import editor
from frostline.config import Settings
from frostline.context.grammar import language_of
from frostline.core.text import Document, Encoding, Position, Span, without_end
from frostline.errors import BadPlace, FrostlineError, UsageError
from frostline.lsp import extension as ext

_PLACE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d+)(?::(?P<col>\d+))?)?\Z", re.DOTALL)
_LINES = re.compile(r"(?P<file>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?\Z", re.DOTALL)
_RANGE = re.compile(r"(\d+):(\d+)-(\d+):(\d+)\Z")


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read: its bytes, and the same as a document."""

    path: Path
    data: bytes
    document: Document


def read(path: Path, settings: Settings) -> Source:
    """Return a text file.

    Raises:
        BadPlace: it is missing, no text, not UTF-8, or over the size limit.
    """
    try:
        size = path.stat().st_size
        if path.is_dir():
            raise BadPlace(f"{path} is a folder; name a file in it")
        if size > settings.max_file_bytes:
            limit = settings.max_file_bytes
            raise BadPlace(
                f"{path} has {size} bytes; files up to {limit} are read (`max_file_bytes`)"
            )
        data = path.read_bytes()
    except OSError as error:
        raise BadPlace(f"{path} cannot be read: {error.strerror or error}") from error
    if b"\0" in data:
        raise BadPlace(f"{path} is a binary file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadPlace(f"{path} is not UTF-8 (byte {error.start}); convert it first") from error
    uri = path.resolve().as_uri()
    return Source(path, data, Document.of(uri, 1, language_of(str(path)), text))


def write(source: Source, text: str) -> None:
    """Put `text` in the file's place in one move: whole or not at all, mode, owner and links kept.

    Raises:
        FrostlineError: the file changed since it was read, or there is no room or right to write.
    """
    target = source.path.resolve()
    name = ""
    try:
        if target.read_bytes() != source.data:
            raise FrostlineError(
                f"{source.path} changed meanwhile; nothing was written, run it again"
            )
        was = target.stat()
        if not os.access(target, os.W_OK):
            raise FrostlineError(f"{source.path} is read-only; nothing was written")
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        if hasattr(os, "chown"):
            # Root works on other people's files; nobody else can give one away, nor has to.
            with contextlib.suppress(PermissionError):
                os.chown(name, was.st_uid, was.st_gid)
        Path(name).chmod(stat.S_IMODE(was.st_mode))
        Path(name).replace(target)
    except OSError as error:
        if name:
            Path(name).unlink(missing_ok=True)
        raise FrostlineError(
            f"{source.path} could not be written ({error.strerror or error}); it is as it was"
        ) from error


def fill(args: argparse.Namespace) -> int:
    """Run `frostline fill`."""
    settings = settings_from(args)
    match = _PLACE.match(args.place)
    assert match is not None  # the pattern takes any text
    path, line, column = match["file"], match["line"], match["col"]
    if line is None and not Path(path).exists() and Path(args.place).exists():
        path = args.place
    source = read(Path(path), settings)
    intent: ext.IntentName = "skeleton" if args.body or args.stubs else "infill"
    if args.range:
        spans = [_range(source, args.range)]
    elif line is not None:
        at = _offset(source, int(line), None if column is None else int(column))
        spans = [Span(at, at)]
    elif args.stubs:
        spans = [Span(0, 0)]
    else:
        raise UsageError("say where: FILE:LINE, FILE:LINE:COL, --range or --stubs")
    return _run(args, settings, source, spans, intent, 1.0, "")


def rewrite(args: argparse.Namespace) -> int:
    """Run `frostline rewrite`."""
    settings = settings_from(args)
    match = _LINES.match(args.place)
    if match is None:
        raise UsageError("say which lines: FILE:LINE or FILE:LINE-LINE")
    if not 0 <= args.strength <= 1:
        raise UsageError("--strength must lie between 0 and 1")
    source = read(Path(match["file"]), settings)
    first = int(match["first"])
    last = int(match["last"] or first)
    if last < first:
        raise BadPlace(f"lines {first}-{last} end before they start")
    start = _offset(source, first, 1)
    span = Span(start, max(start, _offset(source, last, None)))
    return _run(args, settings, source, [span], "rewrite", args.strength, args.instruction)


def _offset(source: Source, line: int, column: int | None) -> int:
    """Return the offset of a place counted from 1; without a column, the end of the line's text."""
    document = source.document
    lines = len(document.lines)
    if not 1 <= line <= lines:
        raise BadPlace(f"{source.path} has no line {line}; it has {lines}")
    body = without_end(document.lines[line - 1])
    if column is None:
        return document.line_start(line - 1) + len(body)
    if not 1 <= column <= len(body) + 1:
        raise BadPlace(f"line {line} of {source.path} has no column {column}; it has {len(body)}")
    return document.line_start(line - 1) + column - 1


def _range(source: Source, given: str) -> Span:
    match = _RANGE.match(given)
    if match is None:
        raise UsageError("--range is LINE:COL-LINE:COL, counted from 1")
    numbers = [int(number) for number in match.groups()]
    start, end = _offset(source, *numbers[:2]), _offset(source, *numbers[2:])
    if end < start:
        raise BadPlace(f"the range {given} ends before it starts")
    return Span(start, end)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a draft: each hole's place, old and new text, or the refusal."""

    holes: list[dict[str, Any]]
    refusal: dict[str, str] | None
    metrics: dict[str, Any] | None
    text: str


def _run(
    args: argparse.Namespace,
    settings: Settings,
    source: Source,
    spans: Sequence[Span],
    intent: ext.IntentName,
    strength: float,
    instruction: str,
) -> int:
    options = {
        "intent": intent,
        "strength": strength,
        "instruction": instruction,
        "length": args.length,
        "steps": args.steps,
        "seed": args.seed,
    }
    quiet = args.json or not sys.stderr.isatty()
    outcome = asyncio.run(_draft(settings, source, spans, options, quiet=quiet))
    changed = outcome.refusal is None and outcome.text != source.document.text
    committed = bool(args.write and outcome.refusal is None)
    if committed and changed:
        write(source, outcome.text)
    if args.json:
        result = {
            "holes": outcome.holes,
            "committed": committed,
            "refusal": outcome.refusal,
            "metrics": outcome.metrics,
        }
        print(json.dumps(result))
    elif outcome.refusal is None:
        _print_diff(source, outcome.text)
        if not committed and changed:
            print("(not written; add --write to change the file)", file=sys.stderr)
    if outcome.refusal is not None:
        print(f"frostline: {outcome.refusal['message']}", file=sys.stderr)
    return 0 if outcome.refusal is None else 1


async def _draft(
    settings: Settings,
    source: Source,
    spans: Sequence[Span],
    options: dict[str, Any],
    *,
    quiet: bool,
) -> Outcome:
    """Return what came of it; of a long rewrite all blocks, or the first that was refused."""
    original = document = source.document
    async with editor(settings) as client:
        client.open(document.uri, document.language, document.text)
        if not quiet:
            client.watch = _progress
        begun: dict[str, Any] | None = await client.begin(document, *spans, **options)
        holes: list[dict[str, Any]] = []
        metrics: list[dict[str, Any]] = []
        while begun is not None:
            if "refusal" in begun:
                return Outcome([], begun["refusal"], None, original.text)
            ended = await client.state(begun["session"], "ready", "refused", "cancelled")
            metrics += [ended["metrics"]] if ended.get("metrics") else []
            if not quiet:
                print("\r\x1b[K", end="", file=sys.stderr)
            accepted = await client.accept(begun["session"])
            if (refusal := accepted.get("refusal")) is not None:
                # What the state said of it is more than the refusal's own sentence.
                return Outcome([], ended.get("refusal") or refusal, _summed(metrics), original.text)
            edit = accepted["edit"]
            after = client.apply(edit) if edit["documentChanges"][0]["edits"] else document
            client.applied(begun["session"], after)
            holes += _holes(original, document, after, begun)
            told = await client.state(begun["session"], "committed")
            document, begun = after, told.get("next")
        return Outcome(holes, None, _summed(metrics), document.text)


_COUNTED = ("time_to_complete_ms", "provisional_updates", "steps", "forwards", "tokens", "cpu_s")


def _summed(blocks: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the metrics of the only block, or of several what adds up and when the first was useful."""
    if len(blocks) < 2:
        return blocks[0] if blocks else None
    first = "time_to_first_useful_block_ms"
    return {
        first: blocks[0].get(first),
        **{name: round(sum(one.get(name) or 0 for one in blocks), 3) for name in _COUNTED},
        "verified": all(one["verified"] for one in blocks),
    }


def _progress(method: str, params: dict[str, Any]) -> None:
    if method == ext.PROVISIONAL:
        words = f"denoising, step {params['step']}"
    elif method == ext.STATUS and params["worker"] in ("starting", "loading"):
        words = f"{params['worker']} the model {params.get('progress', 0) or 0:.0%}"
    else:
        return
    print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)


def _holes(
    original: Document, before: Document, after: Document, begun: dict[str, Any]
) -> list[dict[str, Any]]:
    """Return the old and the new text of each hole; what lies between holes is the same in both.

    Blocks that were written ahead of `before` moved its text: a range is one of the original.
    """
    moved = len(before) - len(original)
    spans = [
        Span(
            *(
                before.offset(Position(**hole["range"][end]), Encoding.UTF32)
                for end in ("start", "end")
            )
        )
        for hole in begun["holes"]
    ]
    result, shift = [], 0
    for index, span in enumerate(spans):
        next_start = spans[index + 1].start if index + 1 < len(spans) else len(before)
        frozen = before.text[span.end : next_start]
        start = span.start + shift
        if index + 1 < len(spans):
            end = after.text.find(frozen, start) if frozen else start
        else:
            end = len(after.text) - len(frozen)
        new = after.text[start:end]
        ends = (original.position(at - moved, Encoding.UTF32) for at in (span.start, span.end))
        first, last = ({"line": at.line, "character": at.character} for at in ends)
        result.append(
            {"range": {"start": first, "end": last}, "old": before.slice(span), "new": new}
        )
        shift += len(new) - len(span)
    return result


def _print_diff(source: Source, text: str) -> None:
    name = str(source.path)
    # Lines as the file has them: with their ends, CR and CRLF too, made visible as plain lines.
    old, new = ([*map(without_end, part)] for part in (source.document.lines, _lines(text)))
    diff = list(difflib.unified_diff(old, new, name, name, lineterm=""))
    if not diff:
        print("(the draft is what stands there)")
        return
    colour = sys.stdout.isatty()
    for line in diff:
        print(_coloured(line) if colour else line)


def _lines(text: str) -> tuple[str, ...]:
    return Document.of("", 0, "", text).lines


def _coloured(line: str) -> str:
    codes = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
    code = codes.get(line[:1], "")
    return f"{code}{line}\x1b[0m" if code else line
