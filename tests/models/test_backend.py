"""The masked backend says what transformers' own class says, at the right places, seeing both sides."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from frostline.models import registry
from frostline.models.backend import MaskedBackend
from models import tiny

KINDS = [
    pytest.param(kind, tied, id=f"{kind}-{'tied' if tied else 'untied'}")
    for kind in ("qwen2", "qwen3", "llama")
    for tied in (True, False)
]


@dataclass
class Window:
    """A window of tokens with slots in it."""

    ids: Tensor
    slots: Tensor


def window(text: str, slots: list[int], backend: MaskedBackend) -> Window:
    return Window(torch.tensor(backend.tokens.encode(text)), torch.tensor(slots))


def logits(backend: MaskedBackend, given: Window, tokens: list[int]) -> Tensor:
    return backend.open(given).predict(torch.tensor(tokens))


@torch.inference_mode()
def expected(folder: Path, ids: Tensor) -> Tensor:
    """Return (length, vocabulary) logits of transformers' own class with nothing hidden."""
    nothing_hidden = torch.zeros(1, 1, len(ids), len(ids))
    return tiny.reference(folder)(input_ids=ids[None], attention_mask=nothing_hidden).logits[0]


@pytest.mark.parametrize(("kind", "tied"), KINDS)
@pytest.mark.parametrize("shift", [0, 1])
def test_logits_are_those_of_transformers(
    tmp_path: Path, kind: str, tied: bool, shift: int
) -> None:
    folder = tiny.make(tmp_path, kind, shift=shift, config={"tie_word_embeddings": tied})
    backend = registry.load(str(folder), "cpu")
    slots = [3, 4, 9]
    given = window("def f(x):\n    return x", slots, backend)
    whole = given.ids.clone()
    whole[slots] = torch.tensor([tiny.MASK, 70, tiny.MASK])
    theirs = expected(folder, whole)
    ours = logits(backend, given, [tiny.MASK, 70, tiny.MASK])
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours, theirs[[slot - shift for slot in slots]], atol=1e-4, rtol=0)
    # Not by chance: another shift is far off.
    other = theirs[[slot - 1 + shift for slot in slots]]
    assert (ours - other).abs().max() > 0.1


@pytest.mark.parametrize("kind", ["qwen2", "qwen3", "llama"])
def test_both_sides_of_a_slot_are_seen(tmp_path: Path, kind: str) -> None:
    backend = registry.load(str(tiny.make(tmp_path, kind)), "cpu")
    one = logits(backend, window("a = ....b", [4], backend), [tiny.MASK])
    right = logits(backend, window("a = ....c", [4], backend), [tiny.MASK])
    left = logits(backend, window("z = ....b", [4], backend), [tiny.MASK])
    assert (one - right).abs().max() > 1e-3
    assert (one - left).abs().max() > 1e-3


def test_a_sliding_window_does_not_hide_anything(tmp_path: Path) -> None:
    changes = {"use_sliding_window": True, "sliding_window": 2, "max_window_layers": 0}
    backend = registry.load(str(tiny.make(tmp_path, "qwen2", config=changes)), "cpu")
    assert set(backend.model.config.layer_types) == {"sliding_attention"}
    far = [logits(backend, window(first + "=" * 60, [40], backend), [tiny.MASK]) for first in "ab"]
    assert (far[0] - far[1]).abs().max() > 1e-6


@pytest.mark.parametrize("shift", [0, 1])
def test_a_slot_at_the_very_start_is_read_after_a_line_end(tmp_path: Path, shift: int) -> None:
    backend = registry.load(str(tiny.make(tmp_path, shift=shift)), "cpu")
    at_start = logits(backend, window("..abc", [0, 1], backend), [tiny.MASK, tiny.MASK])
    after_line_end = logits(backend, window("\n..abc", [1, 2], backend), [tiny.MASK, tiny.MASK])
    assert torch.equal(at_start, after_line_end) == bool(shift)


def test_the_begin_token_matters(backend: MaskedBackend) -> None:
    ids = torch.tensor([tiny.BEGIN, *backend.tokens.encode("..abc")])
    begun = logits(backend, Window(ids, torch.tensor([1])), [tiny.MASK])
    midway = logits(backend, window("\n..abc", [1], backend), [tiny.MASK])
    assert (begun - midway).abs().max() > 1e-3


def test_frozen_tokens_are_given_anew_in_each_pass(backend: MaskedBackend) -> None:
    given = window("a = .", [3], backend)
    run = backend.open(given)
    first = run.predict(torch.tensor([tiny.MASK]))
    run.predict(torch.tensor([99]))
    assert torch.equal(run.predict(torch.tensor([tiny.MASK])), first)
    assert run.forwards == 3
    assert given.ids.tolist() == backend.tokens.encode("a = .")


def test_half_precision_weights_are_computed_with_in_full(folder: Path) -> None:
    backend = registry.load(str(folder), "cpu")
    assert {one.dtype for one in backend.model.parameters()} == {torch.float32}
    assert not any(one.is_meta for one in [*backend.model.parameters(), *backend.model.buffers()])
    assert not any(one.requires_grad for one in backend.model.parameters())
    assert not backend.model.training


def test_noise_is_mask_tokens(backend: MaskedBackend) -> None:
    assert backend.noise(3).tolist() == [tiny.MASK] * 3


def test_the_embedded_model_loads_like_any_other() -> None:
    shares: list[float] = []
    backend = registry.load("embedded", "cpu", shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0, abs=0.05)
    text = "def add(a, b):\n    return a + ."
    given = window(text, [len(backend.tokens.encode(text)) - 1], backend)
    found = torch.softmax(logits(backend, given, [backend.spec.noise.id])[0], -1)
    # It was trained on Python: what it finds likely is text, not the special tokens.
    assert float(found[list(backend.spec.banned)].sum()) < 0.05
