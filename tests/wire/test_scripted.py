"""The worker without a model plays its script to the letter, with the client's face."""

import inspect
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from frostline.errors import BadSetting, WorkerLost, WorkerRefused
from frostline.wire import messages as wire
from frostline.wire.client import WorkerClient, WorkerFace
from frostline.wire.scripted import Script, ScriptedWorker, read_script


def infill(name: str = "run", gaps: int = 1) -> wire.Infill:
    return wire.Infill(name, (wire.Text("a"), *(wire.Gap(number + 5) for number in range(gaps))))


async def played(worker: ScriptedWorker, request: wire.Infill) -> list[Any]:
    return [message async for message in worker.infill(request)]


def shown(step: wire.Step) -> list[list[tuple[str, str]]]:
    return [[(piece.state, piece.text) for piece in draft.pieces] for draft in step.gaps]


async def test_it_plays_what_the_script_says() -> None:
    worker = ScriptedWorker([Script((("░░", "a░", "ab"),))])
    *steps, done = await played(worker, infill())
    assert [(step.id, step.step, step.steps) for step in steps] == [
        ("run", 1, 3),
        ("run", 2, 3),
        ("run", 3, 3),
    ]
    assert [shown(step) for step in steps] == [
        [[("open", "░░")]],
        [[("draft", "a"), ("open", "░")]],
        [[("stable", "ab")]],
    ]
    assert (done.outcome, done.gaps) == ("converged", (wire.GapText(5, "ab", True, 0.9),))
    assert done.figures.steps == 3
    assert worker.requests == [infill()]
    assert (worker.sent, worker.steps_given, worker.cancelled) == (1, 3, [])


async def test_what_two_canvases_have_in_common_is_stable() -> None:
    worker = ScriptedWorker([Script((("ab░", "ax░", "axy"),))])
    _, second, _, _ = await played(worker, infill())
    assert shown(second) == [[("stable", "a"), ("draft", "x"), ("open", "░")]]


async def test_each_gap_has_its_own_canvases() -> None:
    worker = ScriptedWorker([Script((("░", "x", "xy"), ("z",)))])
    *steps, done = await played(worker, infill(gaps=2))
    assert shown(steps[0]) == [[("open", "░")], [("stable", "z")]]
    assert [(gap.id, gap.text) for gap in done.gaps] == [(5, "xy"), (6, "z")]


async def test_canvases_for_one_gap_serve_all() -> None:
    worker = ScriptedWorker([Script((("x",),))])
    done = (await played(worker, infill(gaps=3)))[-1]
    assert [gap.text for gap in done.gaps] == ["x", "x", "x"]


async def test_other_numbers_of_gaps_are_refused() -> None:
    worker = ScriptedWorker([Script((("x",), ("y",)))])
    with pytest.raises(WorkerRefused, match="the script has 2 gaps, not 3"):
        await played(worker, infill(gaps=3))


async def test_scripts_are_played_in_order_and_the_last_again_and_again() -> None:
    worker = ScriptedWorker([Script((("one",),)), Script((("two",),))])
    texts = [(await played(worker, infill(str(n))))[-1].gaps[0].text for n in range(3)]
    assert texts == ["one", "two", "two"]
    chosen = ScriptedWorker(lambda request: Script(((request.id,),)))
    assert (await played(chosen, infill("hello")))[-1].gaps[0].text == "hello"


async def test_an_unfinished_script_runs_out_of_steps() -> None:
    worker = ScriptedWorker([Script((("a░",),), converged=False)])
    done = (await played(worker, infill()))[-1]
    assert (done.outcome, done.gaps[0].complete) == ("budget", False)


async def test_it_dies_and_refuses_when_told_to() -> None:
    worker = ScriptedWorker([Script((("░", "a"),), lost_after=1), Script(failed=("model", "torn"))])
    steps = worker.infill(infill("a"))
    await anext(steps)
    with pytest.raises(WorkerLost):
        await anext(steps)
    with pytest.raises(WorkerRefused, match="torn") as refused:
        await played(worker, infill("b"))
    assert refused.value.code == "model"


async def test_a_cancelled_run_takes_no_further_step() -> None:
    worker = ScriptedWorker([Script((("░", "a", "ab", "abc"),))])
    heard = []
    async for message in worker.infill(infill()):
        heard.append(message)
        if len(heard) == 2:
            worker.cancel("run")
    assert [type(message) for message in heard] == [wire.Step, wire.Step, wire.Done]
    assert (heard[-1].outcome, heard[-1].figures.steps) == ("cancelled", 2)
    assert worker.cancelled == ["run"]


async def test_a_run_that_is_let_go_is_cancelled() -> None:
    worker = ScriptedWorker([Script((("░", "a"),))])
    async with aclosing(worker.infill(infill())) as steps:
        await anext(steps)
    assert worker.cancelled == ["run"]
    assert worker.steps_given == 1


async def test_the_other_questions_are_answered_too() -> None:
    told: list[wire.Status] = []
    worker = ScriptedWorker([], told.append)
    await worker.load()
    assert [status.state for status in told] == ["ready"]
    scored = await worker.score(wire.Score("s", infill(gaps=2).segments))
    assert (scored.id, scored.log_probs, scored.tokens) == ("s", (0.0, 0.0), (1, 1))
    await worker.unload()
    await worker.close()


def test_it_has_the_clients_face() -> None:
    face = {
        name: inspect.signature(member).parameters.keys()
        for name, member in vars(WorkerFace).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    for worker in (ScriptedWorker, WorkerClient):
        theirs = {name: inspect.signature(getattr(worker, name)).parameters.keys() for name in face}
        assert theirs == face
    assert {"infill", "score", "load", "unload", "cancel", "close"} == set(face)


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"runs": [[["░", "a"], ["b"]]], "pause_ms": 5}')
    recording = read_script(path)
    assert recording.runs == ((("░", "a"), ("b",)),)
    assert recording.pause_ms == 5
    path.write_text('{"runs": [[["x"]]]}')
    assert read_script(path).pause_ms > 0


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", '{"runs": []}', '{"runs": [[[]]]}', '{"runs": [["a"]]}']
)
def test_a_file_that_is_no_script_is_said(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadSetting, match=r"script\.json is no script of steps"):
        read_script(path)
