"""What a size is made of, and one number of it changed for an experiment."""

from __future__ import annotations

import pytest
import torch

from frostline.errors import BadSetting
from frostline.train import folder, passes
from frostline.train.sizes import SIZES, changed


def test_a_number_is_changed_and_nothing_else():
    base = SIZES["base"]
    size = changed(base, ["recipe.whole=0.5", "rates.muon=0", "plan.windows=[[128, 1.0]]"])
    assert size.recipe.whole == 0.5
    assert size.plan.rates.muon == 0.0
    assert size.plan.windows == ((128, 1.0),)
    assert changed(size, ["plan.left=[0.1, 0.2]"]).plan.left == (0.1, 0.2)
    assert size.shape == base.shape
    assert size.plan.rates.adam == base.plan.rates.adam


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("recipe.hole=1", "knows no 'recipe.hole'; it knows .*recipe.whole"),
        ("whole=1", "knows no 'whole'"),
        ("recipe.whole=much", "a value like 0.35, not 'much'"),
        ("plan.left=0.3", "a value like \\[0.3,0.1\\], not '0.3'"),
        ("recipe.whole", "a value like 0.35, not ''"),
    ],
)
def test_a_slip_is_told(change: str, said: str):
    with pytest.raises(BadSetting, match=said):
        changed(SIZES["base"], [change])


def test_the_large_size_has_about_a_hundred_million_parameters():
    # Built where numbers take no memory.
    with torch.device("meta"):
        model = passes.new(passes.config(SIZES["large"].shape), seed=0)
    assert 90e6 < sum(one.numel() for one in model.parameters()) < 110e6
    # No tensor is cut when weights are written in pieces.
    assert all(one.numel() * 2 <= folder.PIECE for one in model.parameters())
