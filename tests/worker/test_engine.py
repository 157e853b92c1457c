"""Requests in, steps and texts out, on a model that really computes."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from torch import Tensor

from frostline.errors import WorkerRefused
from frostline.models import registry
from frostline.models.backend import Backend, Canvas, MaskedBackend
from frostline.models.spec import Length
from frostline.wire import messages as wire
from frostline.worker.engine import Engine
from models import tiny

PYTHON = wire.Text("def total(prices):\n    result = 0\n    for price in prices:\n        ")
AFTER = wire.Text("\n    return result\n")


@pytest.fixture(scope="session")
def engine(backend: MaskedBackend) -> Engine:
    return Engine(backend)


@pytest.fixture(scope="session")
def embedded() -> Engine:
    return Engine(registry.load("embedded", "cpu"))


def infill(*segments: wire.Text | wire.Gap, **given: Any) -> wire.Infill:
    decoding = {
        name: given.pop(name) for name in list(given) if name in wire.Decoding.__struct_fields__
    }
    return wire.Infill("run", segments, decoding=wire.Decoding(**decoding), **given)


def drafted(engine: Engine, request: wire.Infill) -> tuple[list[wire.Step], wire.Done]:
    *steps, done = engine.alone(request)
    assert isinstance(done, wire.Done)
    assert all(isinstance(step, wire.Step) for step in steps)
    return steps, done


def scored(engine: Engine, request: wire.Score) -> wire.Scored:
    (found,) = engine.alone(request)
    assert isinstance(found, wire.Scored)
    return found


def joined(draft: wire.GapDraft) -> str:
    return "".join(piece.text for piece in draft.pieces)


def text(engine: Engine, request: wire.Infill) -> str:
    return drafted(engine, request)[1].gaps[0].text


@pytest.mark.parametrize("which", ["engine", "embedded"])
def test_steps_then_the_end(which: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(which)
    asked = infill(PYTHON, wire.Gap(0, room=8, multiline=False), AFTER, threshold=None)
    steps, done = drafted(engine, asked)
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    # What the last look doubts is denoised again, with as many more steps.
    assert all(step.id == "run" and step.step <= step.steps for step in steps)
    assert steps[0].steps == 8
    assert (done.id, done.outcome) == ("run", "converged")
    # What was shown last is what it is.
    assert [joined(draft) for draft in steps[-1].gaps] == [gap.text for gap in done.gaps]
    assert {piece.state for piece in steps[-1].gaps[0].pieces} <= {"stable"}
    figures = done.figures
    assert figures.steps == len(steps)
    # One pass a step, and one for a last look, which may doubt and look again.
    assert len(steps) <= figures.forwards <= len(steps) + 2
    assert figures.slots == 8
    assert figures.tokens <= 8
    assert figures.model_ms > 0
    assert figures.cpu_s > 0


def test_stable_text_is_shown_before_the_end(embedded: Engine) -> None:
    asked = infill(PYTHON, wire.Gap(0, room=12, multiline=False), AFTER, threshold=None)
    steps, done = drafted(embedded, asked)
    states = [{piece.state for gap in step.gaps for piece in gap.pieces} for step in steps]
    assert "open" in states[0]
    assert any("stable" in some for some in states[:-1])
    assert done.figures.lead is not None
    assert done.figures.lead > 0


def test_a_draft_repeats(engine: Engine) -> None:
    asked = infill(PYTHON, wire.Gap(0, room=8), AFTER)
    assert text(engine, asked) == text(engine, asked)


def test_a_sampled_draft_repeats_with_its_seed(engine: Engine) -> None:
    def sampled(seed: int) -> str:
        gap = wire.Gap(0, room=12)
        return text(engine, infill(PYTHON, gap, AFTER, temperature=2.0, seed=seed))

    texts = [sampled(seed) for seed in range(4)]
    assert texts == [sampled(seed) for seed in range(4)]
    assert len(set(texts)) > 1


def test_several_gaps_are_drafted_in_one_run(engine: Engine) -> None:
    asked = infill(
        PYTHON, wire.Gap(3, room=5), AFTER, wire.Gap(1, room=4), wire.Text("x\n"), threshold=None
    )
    steps, done = drafted(engine, asked)
    assert [gap.id for gap in done.gaps] == [3, 1]
    assert all([draft.id for draft in step.gaps] == [3, 1] for step in steps)
    assert [joined(draft) for draft in steps[-1].gaps] == [gap.text for gap in done.gaps]
    assert done.figures.slots == 9
    # Jointly: each pass is over all of them.
    assert done.figures.forwards <= len(steps) + 1 <= 10


def test_text_in_one_line_has_no_line_end(engine: Engine) -> None:
    for seed in range(5):
        gap = wire.Gap(0, room=20, multiline=False)
        one = text(engine, infill(PYTHON, gap, AFTER, temperature=4.0, seed=seed))
        assert "\n" not in one
        assert "\r" not in one


def test_text_holds_no_control_characters(engine: Engine) -> None:
    for seed in range(5):
        one = text(engine, infill(PYTHON, wire.Gap(0, room=40), temperature=9.0, seed=seed))
        assert not {letter for letter in one if letter < " " and letter not in "\t\n"}
        assert not any(name in one for name in tiny.SPECIAL)


@pytest.mark.parametrize("required", ["pri", "naï", "日", "<", "<|pad|>", "a b"])
@pytest.mark.parametrize("which", ["engine", "embedded"])
def test_a_required_beginning_is_spelled_and_given_back_without(
    which: str, required: str, request: pytest.FixtureRequest
) -> None:
    engine: Engine = request.getfixturevalue(which)
    gap = wire.Gap(0, room=8, multiline=False, required=required)
    steps, done = drafted(engine, infill(wire.Text("x = "), gap, AFTER, threshold=None))
    # A text that did not begin so would show nothing and never be complete.
    assert done.gaps[0].text or done.gaps[0].complete
    assert joined(steps[-1].gaps[0]) == done.gaps[0].text


def test_a_required_beginning_that_cannot_be_spelled_is_a_sentence(engine: Engine) -> None:
    gap = wire.Gap(0, room=4, required="\x01")
    with pytest.raises(WorkerRefused, match="nothing that the model can write fits here") as one:
        drafted(engine, infill(PYTHON, gap))
    assert one.value.code == "nothing-fits"


def test_a_model_that_gives_no_numbers_is_a_sentence_and_no_text(tmp_path: Path) -> None:
    backend = registry.load(str(tiny.make(tmp_path)), "cpu")
    with torch.no_grad():
        backend.model.model.norm.weight.fill_(float("nan"))
    for strength in (0.5, 1.0):
        with pytest.raises(WorkerRefused, match="nothing that the model can write"):
            drafted(Engine(backend), infill(PYTHON, wire.Gap(0, old="x = 1"), strength=strength))


OLD = "result += price * 2"


@pytest.mark.parametrize("room", [None, 60])
def test_strength_zero_leaves_the_text_as_it_is(engine: Engine, room: int | None) -> None:
    gaps = (
        wire.Gap(0, old=OLD, room=room),
        wire.Gap(1, room=5, required="pri"),
        wire.Gap(2, old="é"),
    )
    steps, done = drafted(engine, infill(PYTHON, *gaps, AFTER, strength=0.0))
    assert steps == []
    assert [gap.text for gap in done.gaps] == [OLD, "", "é"]
    assert all(gap.complete for gap in done.gaps)
    assert done.figures.forwards == 0
    assert done.figures.verified


class Opinionated(Backend):
    """A backend without weights: in each slot it finds one letter likely, and some more than others."""

    def __init__(self, backend: MaskedBackend, letters: str, sure: Sequence[float]) -> None:
        self.spec = msgspec.structs.replace(backend.spec, length=Length("fixed"))
        self.tokens, self.device = backend.tokens, backend.device
        self.vocabulary, self.noise = backend.vocabulary, backend.noise
        self.letters, self.sure = backend.tokens.encode(letters), sure

    def open(self, canvas: Canvas) -> "Opinionated":
        self.forwards, self.asked, self.turns = 0, list[list[int]](), None
        return self

    def predict(self, tokens: Tensor) -> Tensor:
        self.forwards += 1
        self.asked.append(tokens.tolist())
        logits = torch.zeros(len(tokens), self.vocabulary)
        for place, (letter, sure) in enumerate(zip(self.letters, self.sure, strict=True)):
            logits[place, letter] = sure
        return logits


def rewritten(backend: MaskedBackend, old: str, strength: float, **given: Any) -> wire.GapText:
    """Return "abcdef" of a model that would write "abXdYZ" and is surer of the earlier."""
    model = Opinionated(backend, "abXdYZ", [9, 8, 7, 6, 5, 4])
    asked = infill(wire.Text("="), wire.Gap(0, old=old, **given), strength=strength)
    return drafted(Engine(model), asked)[1].gaps[0]


@pytest.mark.parametrize(
    ("strength", "expected"),
    [
        (0.0, "abcdef"),
        (0.01, "abXdef"),
        (0.3, "abXdYf"),
        (0.5, "abXdYZ"),
        (0.75, "abXdYZ"),
        (1.0, "abXdYZ"),
    ],
)
def test_strength_noises_the_least_likely_first(
    backend: MaskedBackend, strength: float, expected: str
) -> None:
    # Where it is surest of something else, the old letter is the least likely: c, then e, then f.
    assert rewritten(backend, "abcdef", strength).text == expected


@pytest.mark.parametrize("strength", [0.01, 0.25, 0.5, 0.51, 0.99, 1.0])
def test_strength_is_the_share_that_is_noised(backend: MaskedBackend, strength: float) -> None:
    old = "abcdef"
    model = Opinionated(backend, old, [9] * 6)
    engine = Engine(model)
    steps, _ = drafted(engine, infill(wire.Text("="), wire.Gap(0, old=old), strength=strength))
    assert steps[0].steps == math.ceil(strength * 6)
    # Half of the text is in view while the other half's likelihood is asked for.
    looks = 2 if strength < 1 else 0
    assert [tokens.count(tiny.MASK) for tokens in model.asked[:looks]] == [3, 3][:looks]
    assert model.asked[looks].count(tiny.MASK) == math.ceil(strength * 6)


def test_a_share_that_computers_count_too_high_is_counted_right(backend: MaskedBackend) -> None:
    assert math.ceil(0.14 * 50) == 8
    model = Opinionated(backend, "a" * 50, [9] * 50)
    asked = infill(wire.Text("="), wire.Gap(0, old="a" * 50), strength=0.14)
    assert drafted(Engine(model), asked)[0][0].steps == 7


def test_strength_does_not_touch_what_a_text_has_to_begin_with(backend: MaskedBackend) -> None:
    assert rewritten(backend, "cdef", 0.9, required="ab").text == "XdYZ"
    # It would rather write something else there, and half of the others is still two.
    assert rewritten(backend, "cdef", 0.5, required="zy").text == "XdYf"


def test_a_short_rewrite_of_one_gap_leaves_the_likely_ones_of_another(
    backend: MaskedBackend,
) -> None:
    model = Opinionated(backend, "abXYZZ", [9, 8, 7, 6, 5, 4])
    gaps = wire.Gap(0, old="abc"), wire.Text("-"), wire.Gap(1, old="def")
    asked = infill(wire.Text("="), *gaps, strength=0.5)
    done = drafted(Engine(model), asked)[1]
    # The share is of all gaps together: three of six, and the first gap's a and b are the likeliest.
    assert [gap.text for gap in done.gaps] == ["abX", "YZf"]


def test_a_draft_that_the_model_would_write_again_is_verified(backend: MaskedBackend) -> None:
    model = Opinionated(backend, "abcdef", [9] * 6)
    asked = infill(wire.Text("="), wire.Gap(0, room=6))
    assert drafted(Engine(model), asked)[1].figures.verified
    fickle = Opinionated(backend, "abcdef", [9] * 6)
    steps = Engine(fickle).alone(asked)
    next(steps)
    fickle.letters = backend.tokens.encode("uvwxyz")
    *_, done = steps
    assert isinstance(done, wire.Done)
    assert not done.figures.verified


def test_a_beginning_that_was_asked_for_is_not_put_in_doubt(backend: MaskedBackend) -> None:
    model = Opinionated(backend, "uvcdef", [9] * 6)
    asked = infill(wire.Text("="), wire.Gap(0, room=4, required="ab"), threshold=None)
    _, done = drafted(Engine(model), asked)
    assert (done.gaps[0].text, done.figures.verified) == ("cdef", True)
    assert model.asked[-1][:2] == backend.tokens.encode("ab")


def test_confidence_is_the_geometric_mean_of_its_tokens(backend: MaskedBackend) -> None:
    model = Opinionated(backend, "ab", [9, 3])
    done = drafted(Engine(model), infill(wire.Text("="), wire.Gap(0, room=2)))[1]
    printable = sum(
        bool(spelled)
        and all((byte >= 0x20 and byte != 0x7F) or byte in b"\t\n" for byte in spelled)
        for spelled in backend.tokens.spelled[len(tiny.SPECIAL) :]
    )
    expected = [math.exp(sure) / (math.exp(sure) + printable - 1) for sure in (9, 3)]
    assert done.gaps[0].confidence == pytest.approx(math.sqrt(math.prod(expected)), abs=1e-3)


# --- score ------------------------------------------------------------------------------------------


def score(*segments: wire.Text | wire.Gap) -> wire.Score:
    return wire.Score("score", segments)


def test_a_score_is_the_likelihood_of_what_stands_there(backend: MaskedBackend) -> None:
    model = Opinionated(backend, "abcdef", [5] * 6)
    found = scored(
        Engine(model),
        score(wire.Text("="), wire.Gap(0, old="abc"), wire.Text("-"), wire.Gap(1, old="dxf")),
    )
    likely = 5 - math.log(math.exp(5) + 319)
    unlikely = likely - 5
    assert found.id == "score"
    assert found.tokens == (3, 3)
    assert found.log_probs == pytest.approx((likely, (2 * likely + unlikely) / 3), abs=1e-4)


def test_the_embedded_model_finds_python_likelier_than_noise(embedded: Engine) -> None:
    code, noise = (
        scored(embedded, score(PYTHON, wire.Gap(0, old=old), AFTER)).log_probs[0]
        for old in ("result += price", "qzx ~~ 7]]) wq")
    )
    assert noise < code < 0


def test_a_score_of_nothing_is_refused_and_an_empty_gap_beside_others_is_zero(
    engine: Engine,
) -> None:
    with pytest.raises(WorkerRefused, match="nothing to fill"):
        scored(engine, score(PYTHON, wire.Gap(0, old="")))
    found = scored(
        engine, score(PYTHON, wire.Gap(0, old=""), AFTER, wire.Gap(1, old="x", required="a"))
    )
    assert found.tokens == (0, 2)
    assert found.log_probs[0] == 0.0
    assert found.log_probs[1] < 0


# --- settings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["confidence", "margin", "entropy"])
@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_every_setting_of_order_and_schedule_runs(
    engine: Engine, order: str, schedule: str
) -> None:
    asked = infill(PYTHON, wire.Gap(0, room=9), AFTER, order=order, schedule=schedule, steps=3)
    steps, done = drafted(engine, asked)
    assert 1 <= len(steps) <= 3
    assert done.outcome == "converged"


def test_bounds_settle_more_at_once(backend: MaskedBackend) -> None:
    model = Opinionated(backend, "abcdef", [9] * 6)
    gap = wire.Gap(0, room=6)

    def count(**settings: Any) -> int:
        asked = infill(wire.Text("="), gap, **settings)
        return len(drafted(Engine(model), asked)[0])

    assert count(threshold=None) == 6
    assert count(threshold=0.5) == 1
    assert count(threshold=None, entropy_bound=50.0) == 1
    assert count(threshold=None, steps=2) == 2
