"""Models by size, each with its plan; and `--set`, which changes one number of it for an experiment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec

from frostline.errors import BadSetting
from frostline.train.corpus import PER_PACKAGE
from frostline.train.objective import Recipe
from frostline.train.optimiser import Rates
from frostline.train.passes import Shape
from frostline.train.plan import Plan


@dataclass(frozen=True, slots=True)
class Size:
    """What a model of some size is, how it is trained and what it is asked.

    Attributes:
        characters: of text to learn from; 0 takes all.
        most: characters of one package.
    """

    shape: Shape
    plan: Plan
    recipe: Recipe = field(default_factory=Recipe)
    characters: int = 0
    most: int = PER_PACKAGE


# 98 M parameters, for a GPU. A step has 65,536 tokens, so the rates are held for longer windows, not
# for more steps: ten minutes are some two thousand of them. Never run on a GPU yet (LOG.md).
_LARGE = Size(
    Shape(16_384, 768, 12, 12, 64, 2048),
    Plan(
        windows=((384, 1.0),),
        tokens=16_384,
        micro=4,
        left=(0.3, 0.1),
        helpers=8,
        rates=Rates(muon=0.02, adam=0.002, warm_up=100),
    ),
    most=20_000_000,
)

SIZES = {
    "base": Size(Shape(), Plan()),
    "large": _LARGE,
    "tiny": Size(
        Shape(1024, 64, 2, 2, 32, 160),
        Plan(windows=((96, 1.0),), tokens=768, micro=4, rates=Rates(warm_up=10)),
        characters=600_000,
    ),
}


_PAIR = tuple[float, float]
_WINDOWS = tuple[tuple[int, float], ...]


def changed(size: Size, changes: Iterable[str]) -> Size:
    """Return `size` with each `PART.NAME=VALUE` of `changes` in place; values are written as JSON.

    Parts are shape, plan, rates and recipe.

    Raises:
        BadSetting: there is no number of that name, or the value is not of its kind.
    """
    for change in changes:
        place, _, value = change.partition("=")
        part, _, name = place.partition(".")
        parts: dict[str, Any] = {
            "shape": size.shape,
            "plan": size.plan,
            "rates": size.plan.rates,
            "recipe": size.recipe,
        }
        names = {f"{key}.{one.name}" for key, of in parts.items() for one in fields(of)}
        if place not in names:
            raise BadSetting(f"--set knows no {place!r}; it knows {', '.join(sorted(names))}")
        new: Any = replace(parts[part], **{name: _read(place, value, getattr(parts[part], name))})
        if part == "rates":
            part, new = "plan", replace(size.plan, rates=new)
        size = replace(size, **{part: new})
    return size


def _read(place: str, value: str, present: Any) -> Any:
    kind: Any = type(present)
    if isinstance(present, tuple):
        kind = _PAIR if isinstance(present[0], float) else _WINDOWS
    try:
        return msgspec.convert(msgspec.json.decode(value), kind)
    except msgspec.MsgspecError as error:
        usual = msgspec.json.encode(present).decode()
        raise BadSetting(f"--set {place} takes a value like {usual}, not {value!r}") from error
