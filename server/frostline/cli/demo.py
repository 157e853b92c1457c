"""`frostline demo`: the real server, the real worker, a real file, and you watching.

It is an editor like any other: it opens a file, asks for a live draft, draws what it is sent,
accepts, and makes the one edit that it is given. Then it checks the promises: nothing in the file
before the accept, nothing but the holes after it, one undo step.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from frostline.cli import fill, settings_from
from frostline.cli.client import EditorClient, editor
from frostline.config import Settings
from frostline.core.text import Document, Encoding, Position, Span
from frostline.errors import FrostlineError
from frostline.lsp import extension as ext

# «» mark the holes: the end of a line, and a line that has to agree with the one above it.
PAGE = '''\
import math


class Circle:
    """A circle around a point."""

    def __init__(self, x, y, radius):
        self.x = x
        self.y = y
        self.radius = radius

    def move(self, dx, dy):
        self.x += dx
        «self.y = 0»

    def area(self):
        return math.pi * self.radius * self.radius

    def perimeter(self):
        return «None»

    def __repr__(self):
        return f"Circle({self.x}, {self.y}, {self.radius})"
'''
SHADE = "░"
STYLES = {"open": "dim blue", "draft": "cyan", "stable": "bold green"}
# A small model does not always write what parses; another seed is another try.
MOST_TRIES = 8


@dataclass
class Scene:
    """What is on show.

    Attributes:
        document: the file as it is, which is also all that is on disk.
        holes: each hole's span in it.
        pieces: each hole's pieces now.
    """

    document: Document
    holes: list[Span]
    pieces: list[list[dict[str, Any]]] = field(default_factory=list)
    step: int = 0
    steps: int = 0
    status: str = "starting the language server"

    def drawn(self) -> Panel:
        """Return the file with its draft as a picture."""
        text = Text()
        reached = 0
        for index, span in enumerate(self.holes):
            text.append(self.document.text[reached : span.start])
            pieces = self.pieces[index] if index < len(self.pieces) else []
            if not pieces:
                text.append(self.document.slice(span), style="strike dim")
            for piece in pieces:
                text.append(_blurred(piece), style=STYLES[piece["state"]])
            reached = span.end
        text.append(self.document.text[reached:])
        lines = text.split("\n")[10:21]
        numbered = Text("\n").join(
            Text.assemble((f"{number:>3}  ", "dim"), line) for number, line in enumerate(lines, 11)
        )
        legend = Text("  ").join(
            Text(f"{'░▒█'[index]} {name}", style=style)
            for index, (name, style) in enumerate(STYLES.items())
        )
        step = f"step {self.step} of at most {self.steps}" if self.step else self.status
        foot = Text.assemble((step, "bold"), "   ", legend, ("   file on disk: untouched", "dim"))
        return Panel(Group(numbered, Text(), foot), title="circle.py", border_style="blue")

    def line(self) -> str:
        """Return the draft as one plain line."""
        drafts = ("".join(_blurred(piece) for piece in pieces) for pieces in self.pieces)
        return f"step {self.step:>2}/{self.steps}  " + "  |  ".join(
            repr(draft)[1:-1] for draft in drafts
        )


def _blurred(piece: dict[str, Any]) -> str:
    if piece["state"] != "open":
        return str(piece["text"])
    return "".join(letter if letter == "\n" else SHADE for letter in piece["text"])


def marked(page: str) -> tuple[str, list[Span]]:
    """Return a page without its «» marks, and the spans between them."""
    text, spans, start = "", [], 0
    for part in page.replace("»", "«").split("«"):
        text += part
        spans.append(Span(start, len(text)))
        start = len(text)
    return text, spans[1::2]


class Stage:
    """Where the demo is shown: a live picture, plain lines, or nothing."""

    def __init__(self, scene: Scene, args: argparse.Namespace) -> None:
        self._scene = scene
        self._quiet: bool = args.json
        self._record: Path | None = args.svg
        self.console = Console(record=self._record is not None)
        self._live: Live | None = None
        if self.console.is_terminal and not self._quiet:
            self._live = Live(console=self.console, refresh_per_second=30, transient=False)
        self._delay: float = args.delay / 1000 if self._live else 0.0
        self._frames: list[Panel] = []

    def __enter__(self) -> Stage:
        if self._live:
            self._live.start()
            self.draw()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    async def watch(self, queue: asyncio.Queue[dict[str, Any] | None]) -> None:
        """Draw each draft in turn, at a pace that an eye can follow."""
        while (params := await queue.get()) is not None:
            self._scene.step, self._scene.steps = params["step"], params["steps"]
            self._scene.pieces = [hole["pieces"] for hole in params["holes"]]
            self.draw()
            if not self._live and not self._quiet:
                print(self._scene.line(), flush=True)
            await asyncio.sleep(self._delay)

    def draw(self) -> None:
        """Draw the scene as it is now."""
        if self._record is not None and (self._scene.step or not self._frames):
            self._frames.append(self._scene.drawn())
        if self._live:
            self._live.update(self._scene.drawn(), refresh=True)

    def save(self) -> None:
        """Save the first, the middle and the last drawing of the draft as one SVG."""
        if self._record is None or not self._frames:
            return
        frames = self._frames
        console = Console(record=True, width=84, file=io.StringIO())
        for index in sorted({0, len(frames) // 2, len(frames) - 1}):
            console.print(frames[index])
        picture = console.export_svg(title="frostline demo")
        # rich links fonts on somebody else's server; a picture has no business asking for them.
        picture = re.sub(r"@font-face\s*\{[^}]*\}", "", picture)
        self._record.write_text(picture, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Result:
    """What the demo found, by the names that it prints with --json."""

    committed: bool
    frozen_identical: bool
    untouched_before_accept: bool
    undo_steps: int
    undo_restores: bool
    tries: int
    model: str
    metrics: dict[str, Any]

    def values(self) -> dict[str, Any]:
        """Return it as one flat JSON object."""
        own = {name: getattr(self, name) for name in self.__slots__ if name != "metrics"}
        return {**own, **self.metrics}


def run(args: argparse.Namespace) -> int:
    """Run `frostline demo`."""
    settings = settings_from(args)
    with tempfile.TemporaryDirectory(prefix="frostline-demo-") as folder:
        path = Path(folder) / "circle.py"
        text, spans = marked(PAGE)
        path.write_bytes(text.encode())
        result = asyncio.run(_play(args, settings, path, spans))
    if args.json:
        print(json.dumps(result.values()))
    return 0 if result.committed and result.frozen_identical else 1


async def _play(
    args: argparse.Namespace, settings: Settings, path: Path, spans: list[Span]
) -> Result:
    source = fill.read(path, settings)
    scene = Scene(source.document, spans)
    stage = Stage(scene, args)
    async with editor(settings) as client:
        with stage:
            client.open(source.document.uri, "python", source.document.text)
            session, tries, ended = await _draft(client, scene, stage)
        buffer = client.buffers[source.document.uri]
        untouched = fill.read(path, settings).data == source.data and not buffer.undo
        status = await client.extension(ext.STATUS, {})
        if not args.json:
            stage.console.print(
                f"[bold]{ended['state']}[/], after {tries} tries" if tries > 1 else ""
            )
        if ended["state"] != "ready":
            message = ended.get("refusal", {}).get("message", "no draft came")
            raise FrostlineError(f"the demo found no draft to commit: {message}")
        accepted = await client.accept(session)
        if "edit" not in accepted:
            raise FrostlineError(f"the draft was refused: {accepted['refusal']['message']}")
        after = client.apply(accepted["edit"])
        client.applied(session, after)
        committed = await client.state(session, "committed", "refused")
        fill.write(source, after.text)
        result = _checked(
            client,
            source,
            after,
            scene.holes,
            untouched,
            committed,
            tries,
            str(status.get("model")),
        )
    stage.save()
    if not args.json:
        _report(stage.console, source.document.text, after.text, result)
    return result


async def _draft(
    client: EditorClient, scene: Scene, stage: Stage
) -> tuple[str, int, dict[str, Any]]:
    """Return a session that is ready, how many it took, and what was told of it."""
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def heard(method: str, params: dict[str, Any]) -> None:
        if method == ext.PROVISIONAL:
            queue.put_nowait(params)
        elif method == ext.STATUS:
            share = params.get("progress")
            scene.status = f"model: {params['worker']}" + (f" {share:.0%}" if share else "")
            stage.draw()

    client.watch = heard
    watching = asyncio.create_task(stage.watch(queue))
    # Loading is a state of its own, and the numbers are those of denoising.
    await client.command("frostline.load")
    await client.told(
        ext.STATUS,
        lambda told: told["worker"] in ("ready", "busy", "lost") or bool(told.get("message")),
    )
    name, tries, told = "", 0, dict[str, Any]()
    for tries in range(1, MOST_TRIES + 1):
        begun = await client.begin(
            scene.document, *scene.holes, intent="rewrite", strength=1.0, seed=tries - 1
        )
        if "refusal" in begun:
            raise FrostlineError(begun["refusal"]["message"])
        name = begun["session"]
        scene.holes = [_span(scene.document, hole["range"]) for hole in begun["holes"]]
        told = await client.state(name, "ready", "refused", "cancelled")
        code = told.get("refusal", {}).get("code")
        if (told["state"] == "ready" and not code) or code not in (
            "unsound",
            "empty",
            "incomplete",
        ):
            break
    queue.put_nowait(None)
    await watching
    if "refusal" in told:
        raise FrostlineError(told["refusal"]["message"])
    return name, tries, told


def _span(document: Document, range: dict[str, Any]) -> Span:
    ends = (document.offset(Position(**range[end]), Encoding.UTF32) for end in ("start", "end"))
    return Span(*ends)


def _checked(
    client: EditorClient,
    source: fill.Source,
    after: Document,
    holes: list[Span],
    untouched: bool,
    committed: dict[str, Any],
    tries: int,
    model: str,
) -> Result:
    uri = source.document.uri
    steps = len(client.buffers[uri].undo)
    same = _frozen_identical(source, after.text, holes)
    restored = client.undo(uri).text == source.document.text
    return Result(
        committed=committed["state"] == "committed",
        frozen_identical=same,
        untouched_before_accept=untouched,
        undo_steps=steps,
        undo_restores=restored,
        tries=tries,
        model=model,
        metrics=committed.get("metrics", {}),
    )


def _frozen_identical(source: fill.Source, after: str, holes: list[Span]) -> bool:
    """Return True when the bytes of the written file around and between the holes are as before."""
    written = source.path.read_bytes()
    if written != after.encode():
        return False
    text, place, reached = source.document.text, 0, 0
    for hole in [*holes, Span(len(text), len(text))]:
        frozen = text[reached : hole.start].encode()
        found = written.find(frozen, place)
        if found < 0 or (reached == 0 and found != 0):
            return False
        place, reached = found + len(frozen), hole.end
    return place == len(written)


def _report(console: Console, before: str, after: str, result: Result) -> None:
    import difflib

    diff = "".join(
        difflib.unified_diff(
            before.splitlines(keepends=True),
            after.splitlines(keepends=True),
            "circle.py",
            "circle.py",
            n=1,
        )
    )
    console.print(Syntax(diff, "diff", background_color="default"))
    table = Table(show_header=False, box=None, padding=(0, 2))
    checks = {
        "committed, as one edit": result.committed,
        "frozen text identical, byte for byte": result.frozen_identical,
        "file untouched until the accept": result.untouched_before_accept,
        f"undo steps: {result.undo_steps}, and it restores the file": result.undo_restores,
    }
    for name, ok in checks.items():
        table.add_row("[green]yes[/]" if ok else "[red]NO[/]", name)
    shown = result.metrics
    table.add_row("", "")
    rows = {
        "time to first useful block": _ms(shown.get("time_to_first_useful_block_ms")),
        "time to complete": _ms(shown.get("time_to_complete_ms")),
        "provisional updates": shown.get("provisional_updates"),
        "revision churn": shown.get("revision_churn"),
        "forwards": f"{shown.get('forwards')} ({shown.get('forwards_per_token')} a token)",
        "regret / lead": f"{shown.get('regret')} / {shown.get('lead')} steps",
        "model": f"{result.model}: a demonstration, not a code assistant",
    }
    for name, value in rows.items():
        table.add_row(str(value), name) if name != "model" else table.add_row("model", str(value))
    console.print(table)


def _ms(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f} ms"
