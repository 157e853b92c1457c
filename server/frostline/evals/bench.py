"""What `frostline bench` measures, in the order in which it is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from frostline.config import Settings
from frostline.errors import UsageError
from frostline.evals import holes, loops, quality, reference, sessions, steps
from frostline.evals.clock import clock_of
from frostline.evals.holes import Case
from frostline.evals.loops import Fill
from frostline.models.backend import Backend, MaskedBackend
from frostline.wire import messages as wire
from frostline.wire.client import WorkerClient

# Where the look at a hole's rows is compared with the look at all of its window.
WINDOW, HOLE = 2048, 32
THRESHOLDS = (0.95, 0.9, 0.8, 0.7, 0.5, 0.3)
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured.

    Attributes:
        holes: cut from `folder`, or from packages that are installed.
        curve: also fill them under other thresholds, and without a cache.
        rounds: turns of each timing, of which the least counts.
        sessions: requests that are worked on at once.
        reference: a Python file with a loop of the field.
    """

    holes: int = 60
    folder: Path | None = None
    windows: Sequence[tuple[int, int]] = ((384, 16), (384, 48), (1024, 32), (WINDOW, HOLE))
    batches: Sequence[int] = (1, 4, 16)
    sessions: int = 16
    curve: bool = True
    rounds: int = 4
    seed: int = 0
    reference: Path | None = None


QUICK = Plan(
    holes=6,
    windows=((384, 16), (WINDOW, HOLE)),
    batches=(1, 16),
    sessions=4,
    curve=False,
    rounds=2,
)


@dataclass(slots=True)
class Report:
    """All figures; `rows` are those of the texts."""

    model: str = ""
    device: str = ""
    threads: int = 1
    looks: list[steps.StepTime] = field(default_factory=list)
    batches: list[steps.BatchTime] = field(default_factory=list)
    together: sessions.Together | None = None
    rows: list[quality.Row] = field(default_factory=list)
    same_as_whole: float | None = None
    doubted: float | None = None
    cancel_ms: float | None = None
    memory: int = 0
    kept: int = 0

    def plain(self) -> dict[str, Any]:
        """Return the report as one JSON object."""
        found = {name: getattr(self, name) for name in self.__dataclass_fields__}
        found["looks"] = [{**asdict(one), "speedup": one.speedup} for one in self.looks]
        found["batches"] = [asdict(one) for one in self.batches]
        if self.together is not None:
            found["together"] = {**asdict(self.together), "share": self.together.share}
        found["rows"] = [asdict(one) for one in self.rows]
        found["cached_step_speedup"] = self.cached_step_speedup
        by_name = {row.name: row for row in self.rows}
        if loops.PLAIN in by_name and loops.OURS in by_name:
            found["speedup_over_plain"] = by_name[loops.PLAIN].ms / by_name[loops.OURS].ms
        return found

    @property
    def cached_step_speedup(self) -> float | None:
        """How much less a cached step takes than a whole one in the largest window."""
        return self.looks[-1].speedup if self.looks else None


def measure(backend: Backend, settings: Settings, plan: Plan, say: Say) -> Report:
    """Return all figures of a model.

    Raises:
        UsageError: there is nothing to cut holes from, or the reference cannot be used.
    """
    clock = clock_of(backend.device)
    report = Report(backend.spec.name, backend.device.type, settings.threads)
    if isinstance(backend, MaskedBackend):
        for length, hole in plan.windows:
            say(f"a look at {hole} slots in a window of {length}")
            report.looks.append(steps.step_time(backend, length, hole, clock, plan.rounds))
        for count in plan.batches:
            say(f"looks at {count} windows in one pass")
            report.batches.append(steps.batch_time(backend, count, 384, 16, clock, plan.rounds))
    cases = cases_of(backend, plan)
    say(f"{plan.sessions} requests at once")
    report.together = sessions.together(backend, cases[: plan.sessions], clock)
    ways = dict(_ways(backend, plan))
    began = time.monotonic()

    def told(done: int, of: int) -> None:
        left = (time.monotonic() - began) / done * (of - done)
        say(f"hole {done} of {of}, in {len(ways)} ways, {left:.0f} s left")

    found = quality.filled(cases[: plan.holes], ways, told)
    report.rows = list(quality.rows(cases[: plan.holes], found, backend.tokens.encode))
    _compare(report, found)
    if plan.reference is not None:
        report.rows += reference.rows(backend, plan.reference, cases[: plan.holes], clock, say)
    say("a cancel")
    report.cancel_ms = asyncio.run(cancel_ms(settings, cases))
    report.memory = psutil.Process().memory_info().rss
    if isinstance(backend, MaskedBackend):
        report.kept = backend.memory.bytes
    return report


def cases_of(backend: Backend, plan: Plan) -> list[Case]:
    """Return the holes to fill, the same for the same plan and tokenizer.

    Raises:
        UsageError: there are too few files to cut them from.
    """
    packages = holes.in_folder(plan.folder) if plan.folder else holes.installed()
    count = max(plan.holes, plan.sessions)
    found = holes.cut(
        packages, count, lambda text: len(backend.tokens.encode(text)), seed=plan.seed
    )
    if len(found) < count:
        raise UsageError(
            f"only {len(found)} holes could be cut from these files; give --folder more of them"
        )
    return found


def _ways(backend: Backend, plan: Plan) -> Iterator[tuple[str, Fill]]:
    clock = clock_of(backend.device)
    yield loops.PLAIN, loops.plain(backend, clock)
    yield loops.OURS, loops.ours(backend, clock)
    if isinstance(backend, MaskedBackend):
        yield loops.WHOLE, loops.ours(loops.without_cache(backend), clock)
        fixed = loops.without_lengths(backend)
        yield "16 slots", loops.ours(fixed, clock, room=lambda _: 16)
        yield "true length", loops.ours(fixed, clock, room=loops.true_length)
    if plan.curve:
        for threshold in THRESHOLDS:
            if threshold != wire.Decoding().threshold:
                decoding = loops.with_threshold(threshold)
                yield f"threshold {threshold}", loops.ours(backend, clock, decoding)


def _compare(report: Report, found: Mapping[str, Sequence[loops.Filled]]) -> None:
    """Note how often the cache changed a text, and how many of those the last look doubted."""
    if loops.WHOLE not in found:
        return
    pairs = list(zip(found[loops.OURS], found[loops.WHOLE], strict=True))
    others = [ours for ours, whole in pairs if ours.text != whole.text]
    report.same_as_whole = 1 - len(others) / len(pairs)
    report.doubted = (
        sum(not one.figures.verified for one in others) / len(others) if others else None
    )


async def cancel_ms(settings: Settings, cases: Sequence[Case]) -> float:
    """Return milliseconds from a cancel in the middle of a run to its end, at a worker of its own."""
    client = WorkerClient(replace(settings, worker=""))
    try:
        await client.load()
        longest = max(cases, key=lambda case: case.tokens)
        decoding = wire.Decoding(threshold=None)
        request = wire.Infill("cancelled", longest.segments(1024, 48), decoding=decoding)
        began = 0.0
        async for message in client.infill(request):
            if isinstance(message, wire.Step) and message.step == 2:
                began = time.perf_counter()
                client.cancel(request.id)
            elif isinstance(message, wire.Done) and message.outcome == "cancelled":
                return (time.perf_counter() - began) * 1000
        return 0.0
    finally:
        await client.close()
