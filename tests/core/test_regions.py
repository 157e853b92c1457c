"""Regions tile a document; nothing else can be built."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frostline.core.regions import Frozen, Hole, Regions
from frostline.core.text import Span


@given(st.integers(0, 50), st.data())
def test_holes_and_frozen_text_tile_the_document(length: int, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, length), max_size=8, unique=True)))
    holes = [
        Hole(Span(start, end))
        for index, (start, end) in enumerate(pairwise(cuts))
        if index % 2 == 0
    ]
    regions = Regions.tile(length, data.draw(st.permutations(holes)))
    assert list(regions.holes) == holes
    covered = sorted(
        place for part in regions.parts for place in range(part.span.start, part.span.end)
    )
    assert covered == list(range(length))


@pytest.mark.parametrize(
    ("spans", "words"),
    [
        ([Span(0, 3), Span(2, 4)], "gap or overlap"),
        ([Span(0, 3), Span(3, 4)], "touch"),
        ([Span(2, 2), Span(2, 2)], "touch"),
        ([Span(0, 11)], "gap or overlap|cannot run"),
    ],
)
def test_holes_that_do_not_fit_are_refused(spans: list[Span], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Regions.tile(10, [Hole(span) for span in spans])


def test_a_gap_between_regions_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="gap or overlap at 2"):
        Regions(5, (Frozen(Span(0, 2)), Frozen(Span(3, 5))))
    with pytest.raises(ValueError, match="regions end at 2"):
        Regions(5, (Frozen(Span(0, 2)),))
