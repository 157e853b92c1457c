"""Models that fill in: asked as their makers ask them, computed exactly, and refused where they cannot."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from frostline.errors import ModelUnusable
from frostline.models import folder as folders
from frostline.models import registry
from frostline.models.causal import CausalBackend
from frostline.models.memory import Memory
from frostline.models.published import Published
from models import fill_in, published, tiny

BEFORE = "def total(prices):\n    result = 0\n    for price in prices:\n        result"
AFTER = "\n    return result\n\n\nclass Box:\n    def __init__(self):\n        self.items = []\n"


class Window:
    """A window with slots between two texts."""

    def __init__(self, backend: CausalBackend, before: str, slots: int, after: str) -> None:
        front, behind = backend.tokens.encode(before), backend.tokens.encode(after)
        self.ids = torch.tensor([*front, *[0] * slots, *behind])
        self.slots = torch.arange(len(front), len(front) + slots)


@pytest.fixture(scope="session")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CausalBackend]:
    """A model of each layout, loaded when first asked for."""
    made: dict[str, CausalBackend] = {}
    root = tmp_path_factory.mktemp("fill-in")

    def of(kind: str) -> CausalBackend:
        if kind not in made:
            backend = registry.load(str(fill_in.KINDS[kind].make(root / kind)), "cpu")
            assert isinstance(backend, CausalBackend)
            made[kind] = backend
        made[kind].memory = Memory()
        return made[kind]

    return of


def prompt_of(kind: str, backend: CausalBackend, before: str, behind: str) -> list[int]:
    """Return the tokens that a model is asked with, as its makers write it down."""
    parts = {text: [one] for text, one in Published(backend.folder).special.items()}
    parts |= {"before": backend.tokens.encode(before), "behind": backend.tokens.encode(behind)}
    return [one for name in fill_in.KINDS[kind].prompt for one in parts[name]]


@torch.inference_mode()
def theirs(backend: CausalBackend, prompt: list[int], tokens: Tensor) -> Tensor:
    """Return (slots, vocabulary) logits as transformers' own loader and class give them."""
    ids = torch.tensor([[*prompt, *tokens.tolist()]])
    logits: Tensor = tiny.reference(backend.folder)(input_ids=ids).logits[0]
    return logits[len(prompt) - 1 : -1]


@pytest.mark.parametrize("kind", fill_in.KINDS)
def test_logits_are_those_of_transformers_on_the_makers_prompt(
    kind: str, backends: Callable[[str], CausalBackend]
) -> None:
    backend = backends(kind)
    tokens = torch.tensor(backend.tokens.encode(" = x1"))
    run = backend.open(Window(backend, BEFORE, len(tokens), AFTER))
    expected = theirs(backend, prompt_of(kind, backend, BEFORE, AFTER), tokens)
    torch.testing.assert_close(run.predict(tokens), expected, atol=1e-4, rtol=0)
    # In another order, or without what is behind, it would be far off.
    without = theirs(backend, prompt_of(kind, backend, BEFORE, ""), tokens)
    assert (expected - without).abs().max() > 0.1


@pytest.mark.parametrize("kind", fill_in.KINDS)
def test_keys_and_values_that_are_kept_change_nothing(
    kind: str, backends: Callable[[str], CausalBackend]
) -> None:
    """Token after token over what is kept, a few at once, and over what another prompt had begun with."""
    backend = backends(kind)
    tokens = torch.tensor(backend.tokens.encode("return x = 22"))
    for before in (BEFORE, BEFORE + " = tax"):
        prompt = prompt_of(kind, backend, before, AFTER)
        expected = theirs(backend, prompt, tokens)
        for step in (1, 3):
            front, behind = backend.tokens.encode(before), backend.tokens.encode(AFTER)
            run = backend.open(Window(backend, before, len(tokens), AFTER))
            filling = run.filling(front, behind, len(tokens))
            for settled in range(0, len(tokens), step):
                filling.settled = settled
                filling.count = min(step, len(tokens) - settled)
                # What stands behind the ones that settled is a guess, here a wrong one.
                guess = tokens.clone()
                guess[settled + filling.count :] = backend.fim.ends[0]
                ours = filling.predict(guess)
                torch.testing.assert_close(
                    ours, expected[settled : settled + filling.count], atol=1e-4, rtol=0
                )
    assert backend.memory.bytes > 0


@pytest.mark.parametrize("kind", fill_in.KINDS)
def test_what_such_a_model_can_do_is_read_from_its_files(
    kind: str, backends: Callable[[str], CausalBackend]
) -> None:
    backend = backends(kind)
    spec, special = folders.read(backend.folder), Published(backend.folder).special
    assert (spec.attention, spec.length.kind, spec.shift) == ("causal", "end_pad", 1)
    assert {special[text] for text in fill_in.KINDS[kind].ends} <= set(backend.fim.ends)
    assert set(special.values()) <= {*spec.banned, *backend.fim.ends, special.get("<|EOT|>")}
    assert spec.max_context < fill_in.CONTEXT
    assert any("only a quotation of it" in sentence for sentence in spec.cannot)
    assert any("one after another" in sentence for sentence in spec.cannot)


MARKS = [
    (kind, name)
    for kind, layout in fill_in.KINDS.items()
    for name in layout.prompt
    if "fim" in name
]


@pytest.mark.parametrize(("kind", "mark"), MARKS)
def test_without_one_of_its_marks_it_is_refused_in_a_sentence(
    kind: str, mark: str, tmp_path: Path
) -> None:
    folder = fill_in.KINDS[kind].make(tmp_path)
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    for token in added:
        token["content"] = token["content"].replace(mark, "<other>")
    published.changed(folder, "tokenizer.json", added_tokens=added)
    with pytest.raises(ModelUnusable) as refused:
        registry.load(str(folder), "cpu")
    sentence = str(refused.value)
    assert "its tokenizer has no fill-in-the-middle tokens" in sentence
    assert "Qwen2.5-Coder" in sentence
    assert "\n" not in sentence


def test_a_window_that_slides_is_no_longer_than_it_is_wide(tmp_path: Path) -> None:
    folder = fill_in.starcoder2(tmp_path)
    published.changed(folder, "config.json", sliding_window=128)
    assert folders.read(folder).max_context < 128


def test_on_a_processor_a_window_is_no_longer_than_it_reads_in_seconds(tmp_path: Path) -> None:
    folder = fill_in.qwen_coder(tmp_path)
    published.changed(folder, "config.json", max_position_embeddings=32768)
    assert folders.read(folder).max_context > 8000
    assert registry.load(str(folder), "cpu").spec.max_context == 1024
