"""What is tried when a model is loaded: a sound one passes, and each fault that is planted is found."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from safetensors.torch import save_file
from tokenizers import normalizers
from torch import Tensor

from frostline.errors import ModelUnusable
from frostline.models import registry, selftest
from frostline.models.backend import Backend, Look, MaskedBackend, MaskedRun
from frostline.models.block import BlockRun
from frostline.models.prefixed import CanvasRun
from frostline.models.tokens import Tokens
from models import diffusion_gemma, fill_in, published, tiny


def retold(backend: MaskedBackend, **changes: Any) -> MaskedBackend:
    """Return the same weights, described in another way."""
    spec = msgspec.structs.replace(backend.spec, **changes)
    return MaskedBackend(backend.folder, spec, backend.tokens, backend.model)


def refusal(backend: Backend) -> str:
    with pytest.raises(ModelUnusable) as said:
        selftest.check(backend)
    return str(said.value)


# --- tokens -------------------------------------------------------------------------------------


def test_a_tokenizer_that_changes_text_is_found_at_load(tmp_path: Path) -> None:
    folder = tiny.make(tmp_path)
    registry.load(str(folder), "cpu")
    made = tiny.tokenizer()
    made.normalizer = normalizers.Lowercase()
    (folder / "tokenizer.json").write_text(made.to_str())
    with pytest.raises(ModelUnusable, match="could not keep your text intact"):
        registry.load(str(folder), "cpu")


@pytest.mark.parametrize("place", [-1, 320])
def test_a_mask_that_is_not_there_is_found(backend: MaskedBackend, place: int) -> None:
    noise = msgspec.structs.replace(backend.spec.noise, id=place)
    assert "outside its vocabulary" in refusal(retold(backend, noise=noise))


def test_a_mask_that_is_a_piece_of_text_is_found(backend: MaskedBackend) -> None:
    (letter,) = backend.tokens.encode("x")
    noise = msgspec.structs.replace(backend.spec.noise, id=letter)
    assert "reads 'x' in a text as a special token" in refusal(retold(backend, noise=noise))


def test_a_mark_that_a_text_can_spell_is_found(
    backend: MaskedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Tokens.encode

    def spells(tokens: Tokens, text: str) -> list[int]:
        return [tiny.MASK] if text == "<|mask|>" else plain(tokens, text)

    selftest.check(backend)
    monkeypatch.setattr(Tokens, "encode", spells)
    monkeypatch.setattr(Tokens, "spell", lambda _, ids: tiny.SPECIAL[ids[0]].encode())
    assert "reads '<|mask|>' in a text as a special token" in refusal(backend)


# --- frozen slots -------------------------------------------------------------------------------

KINDS: dict[str, Callable[[Path], Path]] = {
    "both sides": tiny.make,
    "blocks": published.sdar,
    "canvas": diffusion_gemma.make,
    "left to right": fill_in.qwen_coder,
}


def _leaks_when_masked(run: MaskedRun) -> None:
    # As if a look's tokens were written into the frozen ones, one place too far.
    asked = run.asked

    def leaking(look: Look) -> Any:
        said = asked(look)
        run._ids[run._slots + 1] = look.tokens
        return said

    run.asked = leaking  # type: ignore[method-assign]


def _leaks(run: Any) -> None:
    looked = run.predict

    def leaking(tokens: Tensor) -> Tensor:
        said: Tensor = looked(tokens)
        run._ids = run._ids.clone()
        run._ids[run._slots - 1] = tokens.to(run._ids.device)
        run._seen = None
        return said

    run.predict = leaking


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_slot_that_changes_is_found(kind: str, tmp_path: Path) -> None:
    backend = registry.load(str(KINDS[kind](tmp_path / "model")), "cpu")
    opened = backend.open

    def planted(canvas: Any) -> Any:
        run = opened(canvas)
        leak = _leaks_when_masked if isinstance(run, MaskedRun) else _leaks
        leak(run)
        return run

    backend.open = planted  # type: ignore[method-assign]
    assert "lets what stands in a hole change what is around it" in refusal(backend)


def test_a_canvas_that_is_written_into_is_found(backend: MaskedBackend) -> None:
    def planted(canvas: Any) -> MaskedRun:
        run = MaskedRun(backend, canvas)
        canvas.ids[0] = canvas.ids[1]
        return run

    twin = retold(backend)
    twin.open = planted  # type: ignore[method-assign]
    assert "lets what stands in a hole change what is around it" in refusal(twin)


@pytest.mark.parametrize("kind", ["both sides", "blocks", "canvas"])
def test_a_window_that_is_not_looked_at_is_found(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = registry.load(str(KINDS[kind](tmp_path / "model")), "cpu")
    # As if what was kept of one window were taken for another's.
    kinds = {"both sides": MaskedRun, "blocks": BlockRun, "canvas": CanvasRun}
    before: dict[tuple[int, ...], Tensor] = {}
    predict = kinds[kind].predict

    def stale(run: Any, tokens: Tensor) -> Tensor:
        key = tuple(tokens.tolist())
        if key not in before:
            before[key] = predict(run, tokens)
        return before[key]

    monkeypatch.setattr(kinds[kind], "predict", stale)
    assert "answers the same whatever stands around a hole" in refusal(backend)


# --- shift --------------------------------------------------------------------------------------


def learnt(folder: Path, shift: int, steps: int = 40) -> Path:
    """Have a tiny model learn the known sentence, all of it said at this place, and return its folder."""
    tiny.make(folder, shift=shift)
    ids = torch.tensor(Tokens(folder).encode(selftest.KNOWN))
    draw = torch.Generator().manual_seed(shift)
    model = tiny.reference(folder)
    with torch.no_grad():
        for one in model.parameters():
            one.mul_(0.3 if one.dim() == 2 else 1.0)
    adam = torch.optim.Adam(model.parameters(), lr=1e-2)
    # Both sides are seen.
    seen, read = torch.zeros(1, 1, len(ids), len(ids)), torch.arange(1, len(ids))
    for _ in range(steps):
        masked = torch.rand(len(ids), generator=draw) < 0.25
        said = model(input_ids=ids.masked_fill(masked, tiny.MASK)[None], attention_mask=seen)
        loss = torch.nn.functional.cross_entropy(said.logits[0, read - shift], ids[read])
        adam.zero_grad()
        loss.backward()
        adam.step()
    tensors = {name: one.detach().half() for name, one in model.state_dict().items()}
    del tensors["lm_head.weight"]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("shift", [0, 1])
def test_a_shift_that_trained_weights_contradict_is_found_at_load(
    shift: int, tmp_path: Path
) -> None:
    folder = learnt(tmp_path, shift)
    registry.load(str(folder), "cpu")
    described = json.loads((folder / "frostline.json").read_text())
    (folder / "frostline.json").write_text(json.dumps({**described, "shift": 1 - shift}))
    place = "at" if shift else "before"
    with pytest.raises(ModelUnusable, match=f"reading a token {place} its place"):
        registry.load(str(folder), "cpu")


def test_the_embedded_model_read_at_the_wrong_place_is_found() -> None:
    embedded = registry.load("embedded", "cpu")
    assert isinstance(embedded, MaskedBackend)
    assert "correct `shift`" in refusal(retold(embedded, shift=1 - embedded.spec.shift))


@pytest.mark.parametrize("tied", [False, True])
def test_random_weights_contradict_no_shift(tied: bool, tmp_path: Path) -> None:
    for seed in range(6):
        config = {"tie_word_embeddings": tied}
        folder = tiny.make(tmp_path / f"{seed}", seed=seed, shift=1, config=config)
        backend = registry.load(str(folder), "cpu")
        assert isinstance(backend, MaskedBackend)
        selftest.check(retold(backend, shift=0))


@pytest.mark.parametrize("kind", published.FULL)
def test_random_weights_of_each_family_contradict_no_shift(kind: str, tmp_path: Path) -> None:
    backend = registry.load(str(published.FULL[kind](tmp_path)), "cpu")
    assert isinstance(backend, MaskedBackend)
    selftest.check(retold(backend, shift=1 - backend.spec.shift))
