"""The autoregressive peer: whatever it is refined from, it writes what one token at a time writes."""

import os
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from frostline.decoding.jacobi import Widths
from frostline.errors import WorkerRefused
from frostline.evals.holes import cut, installed
from frostline.models import registry
from frostline.models.causal import CausalBackend, CausalRun
from frostline.models.published import Published
from frostline.wire import messages as wire
from frostline.worker import causal
from frostline.worker.engine import Engine
from models import fill_in, tiny

BEFORE = "def total(prices):\n    result = 0\n    for price in prices:\n        "
AFTER = "\n    return result\n"
LINES = (BEFORE + AFTER + "class Box:\n\tdef __init__(self, x=1):\n\t\tself.x = x  # é\n").split(
    "\n"
)
QWEN = "FROSTLINE_QWEN_CODER"


class FromNothing(causal.Writing):
    start = "nothing"
    widths = Widths()


class FromNGrams(causal.Writing):
    start = "ngrams"
    widths = Widths()


class FromOld(causal.Writing):
    start = "old"
    widths = Widths()


REFINED: tuple[type[causal.Writing], ...] = (FromNothing, FromNGrams, FromOld, causal.Writing)


def engine_of(backend: CausalBackend, kind: type[causal.Writing]) -> Engine:
    made = Engine(backend)
    made._kind = kind
    return made


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


def text(engine: Engine, *segments: wire.Text | wire.Gap, **given: Any) -> str:
    return drafted(engine, infill(*segments, **given))[1].gaps[0].text


@pytest.fixture(scope="session")
def backends(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], CausalBackend]:
    """A tiny model of each layout, loaded when first asked for."""
    made: dict[str, CausalBackend] = {}
    root = tmp_path_factory.mktemp("fill-in")

    def of(kind: str) -> CausalBackend:
        if kind not in made:
            backend = registry.load(str(fill_in.KINDS[kind].make(root / kind)), "cpu")
            assert isinstance(backend, CausalBackend)
            made[kind] = backend
        return made[kind]

    return of


@pytest.fixture
def backend(backends: Callable[[str], CausalBackend]) -> CausalBackend:
    return backends("qwen2.5-coder")


@torch.inference_mode()
def greedily(
    logits_of: Callable[[list[int]], Tensor],
    prompt: list[int],
    backend: CausalBackend,
    room: int,
    *,
    multiline: bool,
) -> list[int]:
    """Return what is written one token at a time, each the likeliest that may stand there.

    By hand, from what a gap promises: no special token and no control character in it, in one line no
    line end, and over where the model ends its text or, in one line, its line.
    """
    written, spelled = list[int](), backend.tokens.spelled
    for _ in range(room):
        for one in logits_of([*prompt, *written]).argsort(descending=True).tolist():
            text = spelled[one] if one < len(spelled) and one not in backend.spec.banned else b""
            ends_line = not multiline and text.lstrip(b" \t").startswith(b"\n")
            if one in backend.fim.ends or ends_line:
                return written
            printable = (
                all(byte >= 0x20 or byte in b"\t\n" for byte in text) and b"\x7f" not in text
            )
            if text and printable and (multiline or b"\n" not in text):
                written.append(one)
                break
    return written


def holes(count: int, seed: int) -> list[tuple[str, str, bool, int]]:
    """Return texts before and behind a hole, whether it may hold line ends, and its slots."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        lines = [draw.choice(LINES) for _ in range(draw.randint(1, 5))]
        whole = "\n".join(lines) + "\n"
        at = draw.randint(0, len(whole))
        made.append((whole[:at], whole[at:], draw.random() < 0.5, draw.randint(4, 12)))
    return made


def written(backend: CausalBackend, way: type[causal.Writing], request: wire.Infill) -> list[int]:
    """Return the tokens of a request with one gap."""
    found: list[int] = []

    class Watched(way):  # type: ignore[valid-type, misc]
        def done(self, *args: Any, **given: Any) -> wire.Done:
            found.extend(one for one in self.last.tokens.tolist() if one != backend.spec.pad)
            return super().done(*args, **given)

    drafted(engine_of(backend, Watched), request)
    return found


@pytest.mark.parametrize("kind", fill_in.KINDS)
def test_what_is_refined_is_what_one_token_at_a_time_writes(
    kind: str, backends: Callable[[str], CausalBackend]
) -> None:
    """200 holes in four layouts, each against transformers' own class without any cache."""
    backend, layout = backends(kind), fill_in.KINDS[kind]
    model = tiny.reference(backend.folder)
    ids = Published(backend.folder).special
    encode, draw = backend.tokens.encode, random.Random(kind)
    for number, (before, behind, multiline, room) in enumerate(holes(50, seed=len(kind))):
        parts = {text: [one] for text, one in ids.items()}
        parts |= {"before": encode(before), "behind": encode(behind)}
        prompt = [one for name in layout.prompt for one in parts[name]]
        plain = greedily(
            lambda row: model(input_ids=torch.tensor([row])).logits[0, -1],
            prompt,
            backend,
            room,
            multiline=multiline,
        )
        # An old text that is nearly right, so that its guesses stand in part.
        old = backend.tokens.spell(plain[: draw.randint(0, room)]).decode(errors="ignore")
        gap = wire.Gap(0, room=room, multiline=multiline, old=old + "x")
        way = REFINED[number % len(REFINED)]
        segments = (wire.Text(before), gap, wire.Text(behind))
        assert written(backend, way, infill(*segments)) == plain, (number, way, before, behind)


def shown(backend: CausalBackend, tokens: list[int]) -> str:
    """Return what a user would see of these tokens; a tiny model writes bytes that make no character."""
    return backend.tokens.spell(tokens).decode(errors="ignore")


@pytest.fixture
def engine(backend: CausalBackend) -> Engine:
    return Engine(backend)


def test_drafts_are_streamed_and_what_is_settled_stays(engine: Engine) -> None:
    gap = wire.Gap(0, room=12, multiline=False, old="result += price")
    steps, done = drafted(engine, infill(wire.Text(BEFORE), gap, wire.Text(AFTER)))
    final = done.gaps[0].text
    shown = [step.gaps[0].pieces for step in steps]
    assert [step.step for step in steps] == list(range(1, len(steps) + 1))
    assert any(piece.state == "open" for pieces in shown for piece in pieces)
    for pieces in shown:
        settled = "".join(piece.text for piece in pieces if piece.state == "stable")
        assert final.startswith(settled)
        assert all(piece.state == "stable" for piece in pieces[:1]) or not settled
    assert "".join(piece.text for piece in shown[-1]) == final
    assert {piece.state for piece in shown[-1]} <= {"stable"}
    assert done.figures.verified
    assert done.figures.regret == 0
    assert done.figures.forwards == len(steps)


def test_a_text_in_one_line_ends_with_it_and_one_in_a_string_with_its_quote(engine: Engine) -> None:
    for seed in range(8):
        line = text(
            engine, wire.Text(BEFORE), wire.Gap(0, multiline=False), temperature=2.0, seed=seed
        )
        assert "\n" not in line
        gap = wire.Gap(0, multiline=False, without='"')
        quoted = text(
            engine, wire.Text('name = "'), gap, wire.Text('"\n'), temperature=2.0, seed=seed
        )
        assert '"' not in quoted
        assert not quoted.endswith("\\")


def test_a_text_begins_as_it_has_to_and_is_given_back_without(engine: Engine) -> None:
    seen = []
    for required in ("ret", "return_", "naïve", "x"):
        gap = wire.Gap(0, multiline=False, room=10, required=required)
        _, done = drafted(engine, infill(wire.Text("    "), gap, wire.Text("\n")))
        tokens = written(
            engine.backend, causal.Writing, infill(wire.Text("    "), gap, wire.Text("\n"))
        )
        assert shown(engine.backend, tokens) == required + done.gaps[0].text
        seen.append(done.gaps[0].text)
    assert len(set(seen)) > 1


def test_lines_are_indented_as_their_hole_is(engine: Engine) -> None:
    # The tiny tokenizer has a line end and a blank in one token, so that less than one can be told.
    gap = wire.Gap(0, room=24, indent=" ")
    for seed in range(12):
        lines = text(engine, wire.Text("if x:\n "), gap, temperature=1.5, seed=seed).split("\n")
        assert all(line.startswith(" ") for line in lines[1:] if line)


def test_a_gap_sees_what_the_ones_before_it_became_and_nothing_of_those_behind(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, asked = engine.backend, []
    filling = CausalRun.filling

    def watched(run: CausalRun, before: list[int], behind: list[int], slots: int) -> Any:
        asked.append((shown(backend, before), shown(backend, behind)))
        return filling(run, before, behind, slots)

    monkeypatch.setattr(CausalRun, "filling", watched)
    gaps = [wire.Gap(0, room=5, multiline=False), wire.Gap(1, room=5, multiline=False, old="b")]
    segments = (wire.Text("a = "), gaps[0], wire.Text("\nc = "), gaps[1], wire.Text("\nd = 4\n"))
    _, done = drafted(engine, infill(*segments))
    first = done.gaps[0].text
    assert asked == [("a = ", "\nc = \nd = 4\n"), (f"a = {first}\nc = ", "\nd = 4\n")]


def test_with_strength_below_1_what_the_model_finds_likely_stays(engine: Engine) -> None:
    old = "result = result + price"
    gap = wire.Gap(0, old=old, multiline=False)
    segments = (wire.Text(BEFORE), gap, wire.Text(AFTER))
    assert text(engine, *segments, strength=0.0) == old
    steps, done = drafted(engine, infill(*segments, strength=0.2))
    tokens = engine.backend.tokens.encode(old)
    kept = [piece.text for piece in steps[0].gaps[0].pieces if piece.state == "stable"]
    assert len(engine.backend.tokens.encode("".join(kept))) >= 0.7 * len(tokens)
    place = 0
    for one in kept[1:]:
        place = done.gaps[0].text.index(one, place)


def test_a_budget_of_steps_is_kept_and_the_text_ends_there(engine: Engine) -> None:
    segments = (wire.Text(BEFORE), wire.Gap(0), wire.Text("\nx = "), wire.Gap(1), wire.Text(AFTER))
    steps, done = drafted(engine, infill(*segments, steps=3))
    assert len(steps) == 3
    assert done.figures.tokens <= 3
    assert [gap.text for gap in done.gaps] == [
        "".join(piece.text for piece in gap.pieces) for gap in steps[-1].gaps
    ]
    assert done.gaps[1].text == ""


def test_requests_that_share_a_pass_get_what_they_get_alone(engine: Engine) -> None:
    asked = [
        infill(wire.Text(BEFORE[:at]), wire.Gap(0, room=10, multiline=False), wire.Text(AFTER))
        for at in (len(BEFORE), 30, 52)
    ]
    alone = [drafted(engine, one)[1].gaps for one in asked]
    works, ended = [engine.begin(one) for one in asked], {}
    while len(ended) < len(works):
        left = [work for work in works if work not in ended]
        for work, came in zip(left, engine.advance(left), strict=True):
            assert not isinstance(came, Exception)
            if isinstance(came, wire.Done):
                ended[work] = came
    assert [ended[work].gaps for work in works] == alone
    assert max(done.figures.shared for done in ended.values()) > 1


def test_how_likely_a_text_is(engine: Engine) -> None:
    backend = engine.backend
    old = "result += price"
    (found,) = engine.alone(
        wire.Score("run", (wire.Text(BEFORE), wire.Gap(0, old=old), wire.Text(AFTER)))
    )
    assert isinstance(found, wire.Scored)
    encode = backend.tokens.encode
    prompt = backend.fim.prompt(encode(BEFORE), encode(AFTER))
    ids = torch.tensor([[*prompt, *encode(old)]])
    with torch.inference_mode():
        log_p = tiny.reference(backend.folder)(input_ids=ids).logits[0].log_softmax(-1)
    places = range(len(prompt), ids.shape[1])
    mean = sum(float(log_p[at - 1, ids[0, at]]) for at in places) / len(places)
    assert found.log_probs == pytest.approx((mean,), abs=1e-4)


def test_an_instruction_is_refused_in_one_sentence(engine: Engine) -> None:
    asked = infill(wire.Text(BEFORE), wire.Gap(0), instruction="sum them up")
    with pytest.raises(WorkerRefused, match="does not follow instructions"):
        list(engine.alone(asked))


# --- real weights ---------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def qwen() -> CausalBackend:
    folder = os.environ.get(QWEN)
    if not folder:
        pytest.skip(
            f"{QWEN} names no folder with weights that `python tests/bench/fetch_qwen_coder.py` fetched"
        )
    backend = registry.load(folder, "cpu")
    assert isinstance(backend, CausalBackend)
    return backend


def test_real_weights_write_what_transformers_writes_with_them(qwen: CausalBackend) -> None:
    """Holes of real files, against the same class run by transformers with its own cache and attention."""
    cases = cut(installed(), 24, lambda text: len(qwen.tokens.encode(text)), most=24)
    ours = qwen.model.config._attn_implementation
    for number, case in enumerate(cases):
        before, behind = case.before[-400:], case.after[:200]
        gap = wire.Gap(0, room=12, multiline=case.multiline, old=case.text)
        prompt = qwen.fim.prompt(qwen.tokens.encode(before), qwen.tokens.encode(behind))
        qwen.model.config._attn_implementation = "sdpa"
        plain = greedily(Cached(qwen.model), prompt, qwen, 12, multiline=case.multiline)
        qwen.model.config._attn_implementation = ours
        asked = infill(wire.Text(before), gap, wire.Text(behind))
        assert written(qwen, REFINED[number % len(REFINED)], asked) == plain, case.path


class Cached:
    """transformers' own way through a text, one token after another."""

    def __init__(self, model: Any) -> None:
        self._model, self._cache, self._read = model, None, 0

    def __call__(self, row: list[int]) -> Tensor:
        out = self._model(
            input_ids=torch.tensor([row[self._read :]]),
            past_key_values=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        self._cache, self._read = out.past_key_values, len(row)
        return out.logits[0, -1]
