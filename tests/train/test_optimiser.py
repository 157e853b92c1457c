"""The two rules and the rate."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from frostline.train.optimiser import Optimiser, Rates, orthogonal, rate


@pytest.mark.parametrize("shape", [(3, 16, 16), (2, 32, 8), (2, 8, 32)])
def test_singular_values_come_near_one(shape: tuple[int, int, int]):
    drawn = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonal(drawn, exact=True))
    assert values.max() < 1.35
    assert values.median() > 0.6


def test_the_rate_warms_up_stays_and_ends_at_nothing():
    rates = Rates(warm_up=10, decay=0.4)
    assert rate(0, 0.0, rates) == pytest.approx(0.1)
    assert rate(100, 0.3, rates) == 1.0
    assert rate(100, 0.8, rates) == pytest.approx(0.5)
    assert rate(100, 1.0, rates) == 0.0
    # few steps in all: warm within a twentieth of the run
    assert rate(2, 0.05, rates) == 1.0


@pytest.mark.parametrize("muon", [0.02, 0.0])
def test_both_rules_find_the_bottom_of_a_bowl(muon: float):
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    with torch.no_grad():
        model.bias.fill_(0.1)
    aim = torch.eye(4)
    optimiser = Optimiser(
        model.named_parameters(), Rates(muon=muon, adam=0.01 if muon else 0.03), exact=True
    )
    seen = []
    for step in range(150):
        loss = (model.weight - aim).square().sum() + model.bias.square().sum()
        seen.append(loss.item())
        loss.backward()
        optimiser.step(1 - step / 150, step + 1)
    assert seen[-1] < seen[0] / 50
    assert model.weight.grad is None
