"""An Infill on a model of uniform noise: what is on its canvas, what it is told, and what comes of it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.utils.chat_template_utils import render_jinja_template

from frostline.errors import WorkerRefused
from frostline.models import registry
from frostline.models.prefixed import CanvasBackend
from frostline.wire import messages as wire
from frostline.worker.asked import answering, spoken
from frostline.worker.engine import Engine
from models import diffusion_gemma

BEFORE, AFTER = "class A:\n  def f(items):\n    total = ", "\n    return total\n"
STEPS = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint; not to be changed."""
    return diffusion_gemma.make(tmp_path_factory.mktemp("gemma"), max_denoising_steps=STEPS)


@pytest.fixture
def backend(folder: Path) -> CanvasBackend:
    loaded = registry.load(str(folder), "cpu")
    assert isinstance(loaded, CanvasBackend)
    return loaded


class Seen:
    """What the decoder is given, look by look."""

    def __init__(self, backend: CanvasBackend) -> None:
        self.canvases: list[torch.Tensor] = []
        self.told: list[torch.Tensor | None] = []
        self.before: list[list[int]] = []
        model = backend.model
        self._handles = [
            model.register_forward_pre_hook(self._looked, with_kwargs=True),
            model.model.encoder.register_forward_pre_hook(self._read, with_kwargs=True),
        ]

    def _looked(self, _: Any, args: Any, given: dict[str, Any]) -> None:
        self.canvases.append(given["decoder_input_ids"][0].clone())
        told = given["self_conditioning_logits"]
        self.told.append(None if told is None else told[0].softmax(-1))

    def _read(self, _: Any, args: Any, given: dict[str, Any]) -> None:
        self.before.append(given["input_ids"][0].tolist())

    def close(self) -> None:
        for handle in self._handles:
            handle.remove()


@pytest.fixture
def seen(backend: CanvasBackend) -> Any:
    watched = Seen(backend)
    yield watched
    watched.close()


def drafted(
    backend: CanvasBackend, *segments: wire.Text | wire.Gap, **given: Any
) -> tuple[list[wire.Step], wire.Done]:
    *steps, done = Engine(backend).alone(wire.Infill("run", segments, at_start=True, **given))
    assert isinstance(done, wire.Done)
    assert all(isinstance(step, wire.Step) for step in steps)
    return steps, done


def test_a_hole_is_filled_and_nothing_else(backend: CanvasBackend, seen: Seen) -> None:
    gap = wire.Gap(0, room=5, multiline=False)
    steps, done = drafted(backend, wire.Text(BEFORE), gap, wire.Text(AFTER))
    encode, begin = backend.tokens.encode, backend.spec.begin_of_file
    # Before the hole for the encoder, the hole and the head of what is behind for the canvas.
    assert seen.before[0] == [begin, *encode(BEFORE)]
    behind = encode(AFTER)[: diffusion_gemma.CANVAS - 5]
    assert [one[5:].tolist() for one in seen.canvases] == [behind] * len(seen.canvases)
    assert backend.tokens.spell(behind).decode() == AFTER[: len(backend.tokens.spell(behind))]
    # From the second look on the model is told what it thought, and what is frozen as known.
    assert seen.told[0] is None
    for told in seen.told[1:STEPS]:
        assert told is not None
        assert told[5:].argmax(-1).tolist() == behind
        assert told[5:].amax(-1).tolist() == [1.0] * len(behind)
        assert told[:5].amax() < 1
    # Drafts are told of each step, within its steps, and the last one is the text.
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert len(steps) <= STEPS
    assert all(step.steps == STEPS for step in steps)
    pieces = [step.gaps[0].pieces for step in steps]
    assert len(set(pieces)) > 1
    assert "open" in {piece.state for shown in pieces for piece in shown}
    assert {piece.state for piece in pieces[-1]} == {"stable"}
    assert "".join(piece.text for piece in pieces[-1]) == done.gaps[0].text
    assert "\n" not in done.gaps[0].text
    # A look for each step, and a last one at the whole window, which the encoder reads again for it.
    assert done.figures.forwards == len(steps) + 1 == len(seen.canvases)
    assert seen.before[1:] == [[begin, *encode(BEFORE)]]


def test_steps_that_are_spent_are_no_agreement(backend: CanvasBackend) -> None:
    gap = wire.Gap(0, room=5)
    _, done = drafted(backend, wire.Text(BEFORE), gap, wire.Text(AFTER))
    assert done.outcome == "budget"
    sampler = backend.spec.sampler
    assert sampler is not None
    steps, _ = drafted(
        backend, wire.Text(BEFORE), gap, wire.Text(AFTER), decoding=wire.Decoding(steps=2)
    )
    assert [step.steps for step in steps] == [2, 2]


def test_the_same_seed_writes_the_same_text(backend: CanvasBackend) -> None:
    def written(seed: int) -> str:
        decoding = wire.Decoding(seed=seed)
        gap = wire.Gap(0, room=8)
        return drafted(backend, wire.Text(BEFORE), gap, decoding=decoding)[1].gaps[0].text

    assert written(1) == written(1)
    assert len({written(seed) for seed in range(4)}) > 1


def test_a_warm_start_is_the_old_text_with_its_least_likely_tokens_noised(
    backend: CanvasBackend, seen: Seen
) -> None:
    old = "return x + y"
    tokens = torch.tensor(backend.tokens.encode(old))
    request = wire.Text(BEFORE), wire.Gap(0, old=old, multiline=False), wire.Text(AFTER)
    steps, done = drafted(backend, *request, strength=0.3)
    # Two looks say how likely the old text is; then the canvas starts with most of it, later and cooler.
    first = seen.canvases[2][: len(tokens)]
    assert int((first != tokens).sum()) in (2, 3)
    assert len(steps) == 2
    assert done.figures.slots == len(tokens)
    kept = torch.tensor(backend.tokens.encode(done.gaps[0].text)[: len(tokens)])
    assert int((kept == tokens[: len(kept)]).sum()) >= len(tokens) // 2
    # At full strength nothing of it is left.
    seen.canvases.clear()
    steps, _ = drafted(backend, *request, strength=1.0)
    assert int((seen.canvases[0][: len(tokens)] == tokens).sum()) <= 2
    assert len(steps) == STEPS


def test_what_a_gap_has_to_begin_with_stays_on_the_canvas(
    backend: CanvasBackend, seen: Seen
) -> None:
    gap = wire.Gap(0, required="retu", room=4, multiline=False)
    _, done = drafted(backend, wire.Text("def f():\n    "), gap, wire.Text("\n"))
    begins = backend.tokens.encode("retu")
    for canvas in seen.canvases:
        assert canvas[: len(begins)].tolist() == begins
    assert done.figures.slots == 4 + len(begins)
    # It is given back without that.
    last = backend.tokens.spell(seen.canvases[-1][len(begins) : 4 + len(begins)].tolist())
    assert done.gaps[0].text == last.decode(errors="ignore")


def test_several_holes_share_a_canvas_and_what_is_between_them_is_cut(
    backend: CanvasBackend, seen: Seen
) -> None:
    gaps = [wire.Gap(0, room=4), wire.Gap(1, room=4)]
    between = "\n# a long remark between them\n"
    _, done = drafted(backend, wire.Text(BEFORE), gaps[0], wire.Text(between), gaps[1])
    assert len(done.gaps) == 2
    for canvas in seen.canvases:
        assert len(canvas) == diffusion_gemma.CANVAS
        held = backend.tokens.spell(canvas[4:12].tolist()).decode()
        assert between.startswith(held[:4])
        assert between.endswith(held[-4:])


def test_more_than_a_canvas_is_refused(backend: CanvasBackend) -> None:
    drafted(backend, wire.Text(BEFORE), wire.Gap(0, room=16), wire.Text(AFTER))
    with pytest.raises(WorkerRefused, match=r"needs 17 tokens and .* can fill 16 at once"):
        drafted(backend, wire.Text(BEFORE), wire.Gap(0, room=17), wire.Text(AFTER))


def test_a_text_that_the_model_does_not_stand_by_is_not_verified(
    backend: CanvasBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    gap = wire.Gap(0, room=4)
    _, done = drafted(backend, wire.Text(BEFORE), gap, wire.Text(AFTER))
    assert not done.figures.verified
    # A model that finds what it sees likely stands by it.
    looked = backend.look

    def agrees(looks: Any) -> list[torch.Tensor]:
        said = looked(looks)
        if looks[0].whole:
            said[0] = torch.nn.functional.one_hot(looks[0].tokens, backend.vocabulary).float()
        return said

    monkeypatch.setattr(backend, "look", agrees)
    _, done = drafted(backend, wire.Text(BEFORE), gap, wire.Text(AFTER))
    assert done.figures.verified


def test_a_score_is_the_same_each_time(backend: CanvasBackend) -> None:
    request = wire.Score("run", (wire.Text(BEFORE), wire.Gap(0, old="x + 1"), wire.Text(AFTER)))
    one, other = (next(iter(Engine(backend).alone(request))) for _ in range(2))
    assert one == other


# --- instructions -------------------------------------------------------------------------------


def test_a_turn_is_what_the_published_template_makes_of_it(backend: CanvasBackend) -> None:
    chat, spec = backend.spec.chat, backend.spec
    assert chat is not None
    rendered, _ = render_jinja_template(
        conversations=[[{"role": "user", "content": "Say x."}]],
        chat_template=diffusion_gemma.TEMPLATE,
        add_generation_prompt=True,
        bos_token="<bos>",
    )
    encode, marks = backend.tokens.encode, diffusion_gemma.MARKS
    ours = [spec.begin_of_file, *spoken(chat, "user", backend.tokens), *encode("Say x.")]
    ours += answering(chat, backend.tokens)
    text = "".join(
        marks[one] if one < len(marks) else backend.tokens.spell([one]).decode() for one in ours
    )
    assert text == rendered[0]


def test_an_instruction_is_asked_with_the_file_quoted(backend: CanvasBackend, seen: Seen) -> None:
    request = (
        wire.Text("x = "),
        wire.Gap(0, old="1", room=3, multiline=False),
        wire.Text("\ny = 2\n"),
    )
    drafted(backend, *request, instruction="Say <turn|>.")
    asked = seen.before[0]
    marks = diffusion_gemma.MARKS
    said = backend.tokens.spell(asked).decode()
    # Quoted with its hole marked, then begun again as far as the hole. No text can spell a mark.
    assert "Say <turn|>." in said
    assert "```\nx = <<<1>>>\ny = 2\n\n```" in said
    assert said.endswith("<channel|>```\nx = ")
    named = [marks[one] for one in asked if one < len(marks)]
    assert named == ["<bos>", "<|turn>", "<turn|>", "<|turn>", "<|channel>", "<channel|>"]
    # The canvas is that of the hole: what is behind it is frozen there.
    behind = backend.tokens.encode("\ny = 2\n")
    assert seen.canvases[0][3:].tolist() == behind
    assert {tuple(one[3:].tolist()) for one in seen.canvases} == {tuple(behind)}


def test_a_long_file_is_quoted_around_its_hole(backend: CanvasBackend, seen: Seen) -> None:
    lines = [f"a{number} = {number}\n" for number in range(60)]
    request = (
        wire.Text("".join(lines[:40])),
        wire.Gap(0, old="1", room=3),
        wire.Text("".join(lines[40:])),
    )
    drafted(backend, *request, instruction="Say x.")
    asked = seen.before[0]
    assert len(asked) + len(seen.canvases[0]) <= backend.spec.max_context
    said = backend.tokens.spell(asked).decode()
    assert "<<<1>>>" in said
    begun = said.rpartition("```\n")[2]
    assert "".join(lines[:40]).endswith(begun)
    assert begun.startswith("a")
    assert begun.endswith("a39 = 39\n")


def test_an_instruction_that_leaves_no_room_is_refused(backend: CanvasBackend) -> None:
    with pytest.raises(WorkerRefused, match="say it in fewer words"):
        drafted(backend, wire.Text(BEFORE), wire.Gap(0, room=3), instruction="more " * 200)


def test_a_model_without_turns_takes_no_instruction(tmp_path: Path) -> None:
    folder = diffusion_gemma.make(tmp_path)
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(text.replace("<turn|>", "<other|>"))
    backend = registry.load(str(folder), "cpu")
    assert isinstance(backend, CanvasBackend)
    assert [one for one in backend.spec.cannot if "does not follow instructions" in one]
    with pytest.raises(WorkerRefused, match="does not follow instructions"):
        drafted(backend, wire.Text(BEFORE), wire.Gap(0, room=3), instruction="Say x.")
