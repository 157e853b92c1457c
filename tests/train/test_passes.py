"""Attention by the layers' flag gives the numbers that explicit masks give."""

from __future__ import annotations

import pytest
import torch

from frostline.train import passes
from frostline.train.passes import Shape


@pytest.fixture(scope="module")
def model():
    made = passes.new(passes.config(Shape(64, 32, 2, 2, 16, 64)), seed=3)
    with torch.no_grad():
        for one in made.parameters():
            one.add_(torch.randn(one.shape, generator=torch.Generator().manual_seed(1)) * 0.1)
    return made.eval()


@pytest.fixture
def ids():
    return torch.randint(8, 64, (2, 20), generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def test_all_see_all(model, ids):
    zeros = torch.zeros(2, 1, 20, 20)
    masked = model.model(input_ids=ids, attention_mask=zeros, use_cache=False).last_hidden_state
    assert torch.allclose(passes.hidden(model, ids, causal=False), masked, atol=1e-5)


@torch.no_grad()
def test_each_sees_those_before_it(model, ids):
    before = torch.full((20, 20), float("-inf")).triu(1)[None, None].expand(2, 1, 20, 20)
    masked = model.model(input_ids=ids, attention_mask=before, use_cache=False).last_hidden_state
    assert torch.allclose(passes.hidden(model, ids, causal=True), masked, atol=1e-5)


def test_the_same_seed_makes_the_same_model():
    shape = passes.config(Shape(64, 32, 2, 2, 16, 64))
    one, other = passes.new(shape, 5), passes.new(shape, 5)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    assert not torch.equal(one.lm_head.weight, passes.new(shape, 6).lm_head.weight)
