"""A document's holes to a request for the worker: text and gaps, with LF line ends.

What the model sees of a file is decided here and nowhere else. It is never read back: the file's own
line ends, its BOM and characters that no UTF-8 can carry stay in the file.
"""

from __future__ import annotations

from frostline.config import Settings
from frostline.context import inside, skeleton
from frostline.core.events import Wish
from frostline.core.regions import Gap, Hole, Pinned, Regions
from frostline.core.text import Document, Span
from frostline.wire import messages as wire
from frostline.wire.framing import sendable

# Code points of context for each token of a model's window: code has about three to a token, and
# the worker cuts what is too much, so a little more is asked for.
_PER_TOKEN = 4
_UNKNOWN_CONTEXT = 2048
# A second look at the same gap has to come out different.
_RETRY_TEMPERATURE = 0.7
BOM = "\ufeff"


def infill(
    run: str,
    document: Document,
    regions: Regions,
    wish: Wish,
    settings: Settings,
    *,
    attempt: int = 0,
    again: bool = False,
    max_context: int = 0,
    interactive: bool = True,
) -> tuple[wire.Infill, Span]:
    """Return the request that has the gaps of `regions` denoised, and the stretch that it shows.

    Args:
        run: names the run.
        attempt: counts the session's runs.
        again: the gaps were denoised before: sample, or the same would come out.
        max_context: tokens that the model sees at once; 0 where that is not known yet.
    """
    budget = (max_context or _UNKNOWN_CONTEXT) * _PER_TOKEN
    around = skeleton.around(document, regions.holes, before=budget * 2 // 3, after=budget // 3)
    asked = wire.Infill(
        id=run,
        segments=_segments(
            document, regions, around.window, wish.length or settings.length or None
        ),
        preamble=_lf(around.preamble),
        at_start=not document.text[: around.window.start].strip(BOM),
        instruction=wish.instruction,
        strength=wish.strength,
        decoding=decoding(settings, wish, attempt, again=again),
        interactive=interactive,
    )
    return asked, around.window


def decoding(settings: Settings, wish: Wish, attempt: int, *, again: bool) -> wire.Decoding:
    """Return how to denoise under these settings."""
    temperature = settings.temperature
    if again or wish.seed:
        temperature = max(temperature, _RETRY_TEMPERATURE)
    return wire.Decoding(
        steps=wish.steps or settings.steps or None,
        schedule=settings.schedule,  # type: ignore[arg-type]  # checked by Settings
        order=settings.order,  # type: ignore[arg-type]
        threshold=settings.threshold or None,
        entropy_bound=settings.entropy_bound or None,
        temperature=temperature,
        seed=wish.seed * 1000 + (attempt if again else 0),
    )


def _segments(
    document: Document, regions: Regions, window: Span, room: int | None
) -> tuple[wire.Text | wire.Gap, ...]:
    segments: list[wire.Text | wire.Gap] = []
    reached, number = window.start, 0
    for hole in regions.holes:
        before = document.text[reached : hole.span.start - len(hole.required)]
        _add_text(segments, before)
        for part in hole.parts:
            if isinstance(part, Pinned):
                _add_text(segments, part.text)
            else:
                segments.append(_gap(document, hole, part, number, room))
                number += 1
        reached = hole.span.end
    _add_text(segments, document.text[reached : window.end])
    return tuple(segments)


def _gap(document: Document, hole: Hole, part: Gap, number: int, room: int | None) -> wire.Gap:
    whole = len(hole.parts) == 1
    old = part.old or (document.slice(hole.span) if whole else "")
    return wire.Gap(
        id=number,
        old=sendable(_lf(old)),
        multiline=hole.multiline,
        required=sendable(hole.required) if part is hole.parts[0] else "",
        room=part.room or room,
        without=inside.closing(document, hole.span),
        indent=inside.margin(document, hole),
    )


def _add_text(segments: list[wire.Text | wire.Gap], text: str) -> None:
    text = sendable(_lf(text))
    if not text:
        return
    if segments and isinstance(segments[-1], wire.Text):
        segments[-1] = wire.Text(segments[-1].text + text)
    else:
        segments.append(wire.Text(text))


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip(BOM)
