"""DiffusionGemma in the published layout: what is loaded, what is computed, and what is kept of the encoder."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor

from frostline.decoding.constrain import Rules
from frostline.decoding.renoise import Renoising
from frostline.errors import ModelUnusable
from frostline.models import folder as folders
from frostline.models import prefixed, registry, weights
from frostline.models.backend import Look
from frostline.models.prefixed import CanvasBackend
from models import diffusion_gemma, published

BEFORE, AFTER = "class A:\n  def f(items):\n    total = ", "\n    return total\n"


@dataclass
class Window:
    """A window of tokens with slots in it."""

    ids: Tensor
    slots: Tensor


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint; not to be changed."""
    return diffusion_gemma.make(tmp_path_factory.mktemp("gemma") / "tiny", eos_token_id=None)


@pytest.fixture
def backend(folder: Path) -> CanvasBackend:
    loaded = registry.load(str(folder), "cpu")
    assert isinstance(loaded, CanvasBackend)
    return loaded


@pytest.fixture(scope="module")
def theirs(folder: Path) -> Any:
    """transformers' own module, as transformers itself loads the folder."""
    model, said = transformers.DiffusionGemmaForBlockDiffusion.from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    # So it is the layout that is published: all that is needed is there, and nothing else.
    assert not said["missing_keys"]
    assert not said["unexpected_keys"]
    return model.eval()


def window(backend: CanvasBackend, slots: int = 5) -> tuple[Window, Tensor]:
    """Return a window with so many slots, and tokens to stand in them."""
    before, after = backend.tokens.encode(BEFORE), backend.tokens.encode(AFTER)
    begin = backend.spec.begin_of_file
    ids = torch.tensor([begin, *before, *[0] * slots, *after])
    return Window(ids, torch.arange(slots) + 1 + len(before)), backend.noise(slots)


def test_what_it_can_do_is_read_from_its_files(tmp_path: Path) -> None:
    bound = {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 0.3}
    folder = diffusion_gemma.make(
        tmp_path / "one", max_denoising_steps=7, sampler_config=bound, t_min=0.1, t_max=0.9
    )
    spec = folders.read(folder)
    marks = folders.Published(folder).special
    assert (spec.noise.kind, spec.attention, spec.block) == ("uniform", "prefix_canvas", 16)
    assert spec.self_conditioning
    assert spec.sampler is not None
    assert (spec.sampler.steps, spec.sampler.entropy_bound) == (7, 0.3)
    assert (spec.sampler.t_min, spec.sampler.t_max) == (0.1, 0.9)
    assert set(spec.banned) == set(marks.values())
    assert spec.begin_of_file == marks["<bos>"]
    assert spec.instruction
    assert spec.sees == "what is before, and up to 16 tokens of hole and what is behind"
    # It has its own length only where it may end a text: with a suffix behind it, it may not.
    assert [one for one in spec.cannot if "how long" in one]


def test_a_checkpoint_that_is_run_in_another_way_is_refused(tmp_path: Path) -> None:
    folder = diffusion_gemma.make(tmp_path, sampler_config={"_cls_name": "Other"})
    with pytest.raises(ModelUnusable, match="sampled by a Other, and only an entropy bound"):
        folders.read(folder)
    published.changed(folder, "generation_config.json", sampler_config=None)
    folders.read(folder)
    published.changed(folder, "config.json", canvas_length=None)
    with pytest.raises(ModelUnusable, match="what its canvas_length is"):
        folders.read(folder)
    published.changed(folder, "config.json", canvas_length=16, tie_word_embeddings=False)
    with pytest.raises(ModelUnusable, match="tie_word_embeddings = False"):
        registry.load(str(folder), "cpu")


def test_logits_are_those_of_transformers(backend: CanvasBackend, theirs: Any) -> None:
    given, tokens = window(backend)
    first = int(given.slots[0])
    whole = given.ids.clone()
    whole[given.slots] = tokens
    canvas = whole[first : first + diffusion_gemma.CANVAS]
    run = backend.open(given)
    believed = 3 * torch.randn(5, backend.vocabulary, generator=torch.Generator().manual_seed(1))
    told = torch.full((len(canvas), backend.vocabulary), -1e9)
    told[torch.arange(len(canvas)), canvas] = 0.0
    told[:5] = believed

    def reference(before: Tensor, canvas: Tensor, told: Tensor | None = None) -> Tensor:
        with torch.no_grad():
            said = theirs(
                input_ids=before[None],
                decoder_input_ids=canvas[None],
                self_conditioning_logits=None if told is None else told[None],
            )
        return said.logits[0, :5]

    (first_look,) = backend.look([Look(run, tokens)])
    (next_look,) = backend.look([Look(run, tokens, believed=believed)])
    torch.testing.assert_close(first_look, reference(whole[:first], canvas), atol=1e-4, rtol=0)
    torch.testing.assert_close(next_look, reference(whole[:first], canvas, told), atol=1e-4, rtol=0)
    # Each of these is another model: nothing told, nothing known of frozen tokens, what is behind not on
    # the canvas, a token less before it, no token that a text begins with.
    unknown = told.clone()
    unknown[5:] = 0.0
    for other in (
        reference(whole[:first], canvas),
        reference(whole[:first], canvas, unknown),
        reference(whole[:first], canvas[:5], told[:5]),
        reference(whole[: first - 1], canvas, told),
        reference(whole[1:first], canvas, told),
    ):
        assert (next_look - other).abs().max() > 0.05


def test_a_text_always_begins_with_its_token_and_the_canvas_with_a_slot(
    backend: CanvasBackend,
) -> None:
    given, _ = window(backend)
    begin, count = backend.spec.begin_of_file, len(backend.tokens.encode(BEFORE))
    before, canvas, slots = prefixed.laid_out(given, backend.spec)
    assert before.tolist() == given.ids[: count + 1].tolist()
    assert len(canvas) == diffusion_gemma.CANVAS
    assert canvas.tolist() == given.ids[count + 1 :][: len(canvas)].tolist()
    assert slots.tolist() == [0, 1, 2, 3, 4]
    middle = Window(given.ids[1:], given.slots - 1)
    assert prefixed.laid_out(middle, backend.spec)[0].tolist() == before.tolist()
    bare = Window(given.ids[count + 1 :], given.slots - count - 1)
    assert prefixed.laid_out(bare, backend.spec)[0].tolist() == [begin]


def test_the_part_for_pictures_is_neither_read_nor_counted(folder: Path, tmp_path: Path) -> None:
    held = load_file(folder / "model.safetensors")
    text = {name: one for name, one in held.items() if "vision" not in name}
    assert weights.numbers_in(folder) == sum(one.numel() for one in text.values())
    assert weights.numbers_in(folder) < sum(one.numel() for one in held.values())
    model = weights.load(folder, torch.device("cpu"), torch.float32, lambda _: None)
    assert not [name for name, _ in model.named_modules() if "vision" in name]
    # A folder without that part loads all the same, a text part with a hole in it does not.
    for one in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / one).write_bytes((folder / one).read_bytes())
    published.save(tmp_path, text)
    registry.load(str(tmp_path), "cpu")
    del text["model.decoder.layers.1.self_attn.v_proj.weight"]
    published.save(tmp_path, text)
    with pytest.raises(ModelUnusable, match="do not fit its config"):
        registry.load(str(tmp_path), "cpu")


def test_encoder_and_decoder_share_their_weights_in_memory(backend: CanvasBackend) -> None:
    model = backend.model.model
    for name in ("layers.0.experts.gate_up_proj", "layers.2.self_attn.q_proj.weight"):
        one = model.encoder.language_model.get_parameter(name)
        assert one.data_ptr() == model.decoder.get_parameter(name).data_ptr()
    assert backend.model.lm_head.weight.data_ptr() == model.decoder.embed_tokens.weight.data_ptr()


@pytest.fixture
def read(backend: CanvasBackend) -> Iterator[list[int]]:
    """How many tokens the encoder has read, each time it was asked."""
    counts: list[int] = []

    def count(_: Any, args: Any, given: dict[str, Any]) -> None:
        counts.append(given["input_ids"].shape[1])

    handle = backend.model.model.encoder.register_forward_pre_hook(count, with_kwargs=True)
    yield counts
    handle.remove()


def test_the_encoder_reads_a_prefix_once(backend: CanvasBackend, read: list[int]) -> None:
    given, tokens = window(backend)
    before = int(given.slots[0])
    run = backend.open(given)
    first = run.predict(tokens)
    run.predict(tokens + 1)
    assert read == [before]
    # The next request has typed on: what is new is read, in what is kept of the rest.
    more = torch.tensor(backend.tokens.encode("x = return"))
    typed = Window(
        torch.cat([given.ids[:before], more, given.ids[before:]]), given.slots + len(more)
    )
    on = backend.open(typed).predict(tokens)
    assert read == [before, len(more)]
    # The last look before a commit trusts none of it, and comes to the same.
    (anew,) = backend.look([Look(backend.open(typed), tokens, whole=True)])
    assert read == [before, len(more), before + len(more)]
    torch.testing.assert_close(on, anew, atol=1e-4, rtol=0)
    # What the first request had is as it was.
    torch.testing.assert_close(run.predict(tokens), first)
    # Another text is read from its start.
    other = given.ids.clone()
    other[2] += 1
    answer = backend.open(Window(other, given.slots)).predict(tokens)
    assert read[3:] == [before]
    assert (answer - first).abs().max() > 0.05


def test_what_is_kept_of_another_text_is_another_answer(
    backend: CanvasBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, tokens = window(backend)
    backend.open(given).predict(tokens)
    other = given.ids.clone()
    other[2] += 1
    run = backend.open(Window(other, given.slots))
    (right,) = backend.look([Look(run, tokens, whole=True)])
    monkeypatch.setattr(prefixed, "_begins", lambda ids, start: True)
    assert (run.predict(tokens) - right).abs().max() > 0.05


class Drafts(transformers.TextStreamer):
    """What transformers shows while it generates."""

    def __init__(self) -> None:
        self.shown: list[list[int]] = []

    def put(self, value: Tensor) -> None:
        """Take what is final."""

    def put_draft(self, value: Tensor) -> None:
        """Take a draft."""
        self.shown.append(value[0].tolist())

    def end(self) -> None:
        """Take note of the end."""


def generated(
    backend: CanvasBackend, prompt: Tensor, seed: int, canvases: int, *, told: bool = True
) -> list[list[int]]:
    """Return each draft of so many canvases behind a prompt, with no slot frozen and every token allowed."""
    slots = backend.spec.block
    rules = Rules(
        gap=torch.zeros(slots, dtype=torch.long),
        banned=torch.zeros(backend.vocabulary, dtype=torch.bool),
        line_ends=torch.zeros(backend.vocabulary, dtype=torch.bool),
        multiline=[True],
        required=[b""],
        token_bytes=[],
    )
    draw, all_of, shown = torch.Generator().manual_seed(seed), torch.ones(slots) > 0, []
    for _ in range(canvases):
        ids = torch.cat([prompt, torch.zeros(slots, dtype=torch.long)])
        run = backend.open(Window(ids, len(prompt) + torch.arange(slots)))
        assert backend.spec.sampler is not None
        renoising = Renoising(
            ids[-slots:], all_of, all_of, rules, backend.spec.sampler, backend.vocabulary, draw
        )
        while not renoising.done:
            believed = renoising.believed if told else None
            (logits,) = backend.look([Look(run, renoising.question(), believed=believed)])
            shown.append(renoising.answer(logits).tokens.tolist())
        prompt = torch.cat([prompt, renoising.now.tokens])
    return shown


# The steps of one are spent, the other stops when it is as sure as such weights get.
@pytest.mark.parametrize(
    "settings",
    [
        {"max_denoising_steps": 6},
        {"max_denoising_steps": 12, "stability_threshold": 0, "confidence_threshold": 2.7},
    ],
    ids=["spent", "sure"],
)
def test_unclamped_it_generates_what_transformers_does(
    folder: Path, theirs: Any, settings: dict[str, Any], tmp_path: Path
) -> None:
    diffusion_gemma.make(tmp_path, eos_token_id=None, **settings)
    backend = registry.load(str(tmp_path), "cpu")
    assert isinstance(backend, CanvasBackend)
    prompt = torch.tensor([backend.spec.begin_of_file, *backend.tokens.encode(BEFORE)])
    drafts, canvases = Drafts(), 2
    torch.manual_seed(5)
    said = theirs.generate(
        prompt[None], streamer=drafts, max_new_tokens=canvases * diffusion_gemma.CANVAS, **settings
    )
    ours = generated(backend, prompt, 5, canvases)
    assert ours == drafts.shown
    assert ours[-1] == said.sequences[0, -diffusion_gemma.CANVAS :].tolist()
    spent = canvases * settings["max_denoising_steps"]
    assert len(ours) < spent if "confidence_threshold" in settings else len(ours) == spent
    assert generated(backend, prompt, 5, canvases, told=False) != ours
