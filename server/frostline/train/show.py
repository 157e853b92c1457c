"""What a person sees of a run: a bar in a terminal, a line now and then elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from frostline.train.run import Report

EVERY = 20.0


class Teller:
    """Tells what goes on. Sentences go to stderr, so that stdout is left to results."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._last = 0.0
        self._bar: Progress | None = None
        if sys.stderr.isatty() and not as_json:
            columns = (BarColumn(), TextColumn("{task.percentage:>4.1f} %  {task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True), transient=False)
            self._task = self._bar.add_task("", total=1.0, visible=False)

    def __enter__(self) -> Teller:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, sentence: str) -> None:
        """Tell one thing that happened."""
        if self._json:
            print(json.dumps({"say": sentence}), flush=True)
        elif self._bar is not None:
            self._bar.console.print(sentence, highlight=False, markup=False)
        else:
            print(sentence, file=sys.stderr, flush=True)

    def told(self, report: Report) -> None:
        """Tell how a step went, if it is time or the end."""
        line = described(report)
        if self._bar is not None:
            self._bar.update(self._task, completed=report.progress, description=line, visible=True)
            return
        now = time.monotonic()
        if now - self._last < EVERY and report.progress < 1.0:
            return
        self._last = now
        if self._json:
            print(json.dumps(asdict(report)), flush=True)
        else:
            print(f"{report.progress:6.1%}  {line}", file=sys.stderr, flush=True)


def described(report: Report) -> str:
    """Return a report as one line."""
    losses = "  ".join(f"{kind} {nats:.3f}" for kind, nats in sorted(report.losses.items()))
    minutes, seconds = divmod(round(report.seconds_left), 60)
    return (
        f"step {report.position.step}  {report.position.tokens / 1e6:.2f} M tokens  {losses}  "
        f"{report.tokens_per_second:,.0f} tok/s  {minutes}:{seconds:02} left"
    )
