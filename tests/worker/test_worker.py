"""One model and everybody who asks for it: turns, cancels, loads, and whoever goes away."""

import asyncio
import gc
import stat
import tempfile
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from frostline.errors import ModelUnusable
from frostline.models.backend import MaskedBackend
from frostline.models.spec import Length
from frostline.wire import messages as wire
from frostline.wire.address import Address
from frostline.worker.engine import Engine
from frostline.worker.main import Options, Worker
from frostline.worker.work import Work
from worker.peers import Held, Peer, calling, infill, serving


@pytest.fixture(scope="session")
def fixed(backend: MaskedBackend) -> MaskedBackend:
    """A model without pads: a run takes exactly as many steps as it has slots."""
    spec = msgspec.structs.replace(backend.spec, length=Length("fixed"))
    return MaskedBackend(backend.folder, spec, backend.tokens, backend.model)


@pytest.fixture
def held(fixed: MaskedBackend) -> Held:
    return Held(fixed)


@pytest.fixture
def address() -> Iterator[Address]:
    # pytest's own folders have names too long for a socket on some systems.
    with tempfile.TemporaryDirectory(prefix="frostline-") as folder:
        yield Address(Path(folder) / "w.sock")


@pytest.fixture
async def worker(address: Address, held: Held) -> AsyncIterator[Worker]:
    """A worker whose steps wait for the test."""
    async with serving(address, lambda *_: held) as worker:
        yield worker
        held.let_go(1000)


@pytest.fixture
async def one(address: Address, worker: Worker) -> AsyncIterator[Peer]:
    async with calling(address) as peer:
        yield peer


@pytest.fixture
async def two(address: Address, worker: Worker) -> AsyncIterator[Peer]:
    async with calling(address) as peer:
        yield peer


# --- a run ------------------------------------------------------------------------------------------


async def test_steps_come_one_by_one_and_then_the_end(one: Peer, held: Held) -> None:
    one.send(infill("a", room=3))
    for number in (1, 2, 3):
        await held.begun()
        held.let_go()
        step = await one.next(wire.Step)
        assert (step.id, step.step, step.steps) == ("a", number, 3)
    held.let_go()
    done = await one.next(wire.Done)
    assert (done.id, done.outcome, done.figures.steps) == ("a", "converged", 3)
    assert (await one.next(wire.Status)).state == "ready"


async def test_the_state_goes_from_off_over_loading_and_busy_to_ready(
    one: Peer, held: Held
) -> None:
    assert (await one.next(wire.Status)).state == "off"
    one.send(infill("a", room=1))
    states = [await one.next(wire.Status) for _ in range(2)]
    await held.begun()
    held.let_go(2)
    states += [await one.next(wire.Status) for _ in range(2)]
    told = [(status.state, status.max_context) for status in states]
    assert told[0] == ("loading", 0)
    assert ("busy", 128) in told
    assert told[-1] == ("ready", 128)
    assert states[-1].model == "tiny"
    assert (states[-1].memory or 0) > 2**20


async def test_a_run_that_fails_is_one_answer_and_others_go_on(
    address: Address, fixed: MaskedBackend
) -> None:
    class Broken(Engine):
        def begin(self, request: Any) -> Work:
            work = super().begin(request)
            if request.id == "bad":
                work.steps = failing()
            return work

    def failing() -> Any:
        raise ZeroDivisionError
        yield

    async with serving(address, lambda *_: Broken(fixed)), calling(address) as peer:
        peer.send(infill("bad"), infill("good"))
        failed = await peer.next(wire.Failed)
        assert (failed.id, failed.code) == ("bad", "bug")
        assert failed.message == (
            "the model failed with ZeroDivisionError; the worker's log has the details"
        )
        assert (await peer.next(wire.Done)).id == "good"


async def test_a_request_that_does_not_fit_is_refused_with_a_sentence(
    one: Peer, held: Held
) -> None:
    one.send(infill("a", room=500))
    failed = await one.next(wire.Failed)
    assert (failed.id, failed.code) == ("a", "too-long")
    assert "needs 500 tokens" in failed.message
    one.send(infill("b", room=1))
    await held.begun()
    held.let_go(2)
    assert (await one.next(wire.Done)).id == "b"


async def test_scores_are_answered_between_steps(one: Peer, two: Peer, held: Held) -> None:
    one.send(infill("a", room=8))
    await held.begun()
    two.send(wire.Score("s", (wire.Text("x = "), wire.Gap(0, old="yz"))))
    # Fewer than the run alone would take to its end.
    held.let_go(8)
    scored = await two.next(wire.Scored)
    assert (scored.id, scored.tokens) == ("s", (2,))
    assert scored.log_probs[0] < 0
    assert held.taken.count("a") < 9


# --- cancel -----------------------------------------------------------------------------------------


@pytest.mark.complaint(17)
async def test_a_cancel_lets_the_step_under_way_end_and_no_other_begin(
    one: Peer, held: Held, worker: Worker
) -> None:
    one.send(infill("a"))
    await held.begun()
    held.let_go()
    await one.next(wire.Step)
    await held.begun()
    # The cancel is sent in the second step, and that ends before the worker can have read it.
    one.send(wire.Cancel("a"))
    held.let_go(100)
    worker._compute.submit(lambda: None).result(60)
    heard = [await one.next(wire.Message)]
    while not isinstance(heard[-1], wire.Done):
        heard.append(await one.next(wire.Message))
    assert [type(message) for message in heard[:-1] if not isinstance(message, wire.Status)] == []
    done = heard[-1]
    assert (done.id, done.outcome, done.gaps) == ("a", "cancelled", ())
    assert done.figures.steps == 2
    assert held.taken == ["a", "a"]


async def test_a_cancel_as_early_as_can_be_takes_no_step(one: Peer, held: Held) -> None:
    one.send(infill("a"), wire.Cancel("a"))
    done = await one.next(wire.Done)
    assert (done.outcome, done.figures.steps) == ("cancelled", 0)
    assert held.taken == []


async def test_a_run_ends_once_whenever_the_cancel_comes(
    address: Address, fixed: MaskedBackend
) -> None:
    async with serving(address, lambda *_: Engine(fixed)), calling(address) as peer:
        for number in range(60):
            name = str(number)
            peer.send(infill(name, room=4))
            for _ in range(number % 5):
                await peer.next(wire.Step, id=name)
            peer.send(wire.Cancel(name), wire.Load(), wire.AskStatus())
            done = await peer.next(wire.Done)
            assert done.id == name
            assert number % 5 <= done.figures.steps <= 4


async def test_a_cancel_of_something_unknown_or_of_anothers_run_does_nothing(
    one: Peer, two: Peer, held: Held
) -> None:
    one.send(infill("a", room=2))
    await held.begun()
    two.send(wire.Cancel("a"), wire.Cancel("nonsense"), wire.AskStatus())
    await two.next(wire.Status, state="busy")
    held.let_go(3)
    assert (await one.next(wire.Done)).outcome == "converged"


@pytest.mark.complaint(4)
async def test_a_cancel_while_the_model_loads_does_not_end_the_load(
    address: Address, fixed: MaskedBackend
) -> None:
    gate = threading.Event()
    loads = []

    def load(_: object, progress: Callable[[float], None]) -> Engine:
        loads.append(1)
        progress(0.5)
        assert gate.wait(60)
        return Engine(fixed)

    async with serving(address, load), calling(address) as peer:
        peer.send(infill("a"))
        assert (await peer.next(wire.Status, state="loading")).progress == 0.0
        assert (await peer.next(wire.Status, state="loading")).progress == 0.5
        peer.send(wire.Cancel("a"))
        done = await peer.next(wire.Done)
        assert (done.outcome, done.figures.steps) == ("cancelled", 0)
        gate.set()
        assert (await peer.next(wire.Status, state="ready")).progress is None
        peer.send(infill("b"))
        assert (await peer.next(wire.Done)).outcome == "converged"
    assert loads == [1]


# --- turns ------------------------------------------------------------------------------------------


async def test_interactive_runs_share_the_models_passes(one: Peer, two: Peer, held: Held) -> None:
    one.send(infill("a", room=4))
    await held.begun()
    two.send(infill("b", room=4), wire.AskStatus())
    await two.next(wire.Status, state="busy")
    held.let_go(100)
    first, second = await asyncio.gather(one.next(wire.Done), two.next(wire.Done))
    # The second is there with the next pass, and whoever has begun goes on beside it.
    assert "".join(held.taken[:3]) in ("aba", "aab")
    assert "".join(held.taken).count("a") == "".join(held.taken).count("b") == 5
    assert 1 < first.figures.shared <= 2
    assert 1 < second.figures.shared <= 2


async def test_interactive_runs_go_before_others(one: Peer, two: Peer, held: Held) -> None:
    one.send(infill("background", interactive=False, room=3))
    await held.begun()
    two.send(infill("typed", room=3), wire.AskStatus())
    await two.next(wire.Status, state="busy")
    held.let_go(100)
    await asyncio.gather(one.next(wire.Done), two.next(wire.Done))
    assert held.taken == ["background", *["typed"] * 4, *["background"] * 3]


# --- loading and unloading --------------------------------------------------------------------------


async def test_a_model_that_cannot_be_loaded_fails_the_runs_and_the_worker_stays(
    address: Address, fixed: MaskedBackend
) -> None:
    answers: list[Exception | Engine] = [
        ModelUnusable("it is torn; fetch it again"),
        ZeroDivisionError("oops"),
        Engine(fixed),
    ]

    def load(*_: object) -> Engine:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with serving(address, load), calling(address) as peer:
        peer.send(infill("a"), infill("b", interactive=False))
        for name in ("a", "b"):
            failed = await peer.next(wire.Failed)
            assert (failed.id, failed.code, failed.message) == (
                name,
                "model",
                "it is torn; fetch it again",
            )
        assert (await peer.next(wire.Status, state="off")).message == "it is torn; fetch it again"
        peer.send(infill("c"))
        failed = await peer.next(wire.Failed)
        assert failed.message.startswith("the model failed with ZeroDivisionError")
        peer.send(infill("d"))
        assert (await peer.next(wire.Done)).outcome == "converged"


async def test_load_loads_once_and_everybody_hears(one: Peer, two: Peer) -> None:
    one.send(wire.Load(), wire.Load())
    assert (await two.next(wire.Status, state="ready")).model == "tiny"
    one.send(wire.AskStatus())
    assert (await one.next(wire.Status, state="ready")).max_context == 128


async def test_unload_gives_the_models_memory_back(address: Address, fixed: MaskedBackend) -> None:
    seen: list[weakref.ref[Engine]] = []

    def load(*_: object) -> Engine:
        engine = Engine(fixed)
        seen.append(weakref.ref(engine))
        return engine

    async with serving(address, load), calling(address) as peer:
        for name in ("a", "b"):
            # One run to its end, and one that is cancelled: neither may hold on to the model.
            peer.send(infill(name), infill(name + "2"), wire.Cancel(name + "2"))
            await peer.next(wire.Done, id=name)
            await peer.next(wire.Status, state="ready")
            peer.send(wire.Unload())
            status = await peer.next(wire.Status, state="off")
            assert status.max_context == 0
            gc.collect()
            assert seen.pop()() is None


async def test_a_model_in_use_is_not_unloaded(one: Peer, two: Peer, held: Held) -> None:
    one.send(infill("a", room=2))
    await held.begun()
    two.send(wire.Unload(), wire.AskStatus())
    assert (await two.next(wire.Status, state="busy")).max_context == 128
    held.let_go(3)
    assert (await one.next(wire.Done)).outcome == "converged"


@pytest.mark.complaint(9)
async def test_an_idle_model_is_unloaded_while_its_editor_stays(
    address: Address, fixed: MaskedBackend
) -> None:
    async with serving(address, lambda *_: Engine(fixed), idle_s=0.1), calling(address) as peer:
        peer.send(infill("a"))
        await peer.next(wire.Done)
        await peer.next(wire.Status, state="off")
        peer.send(infill("b"))
        assert (await peer.next(wire.Done)).id == "b"


@pytest.mark.parametrize("idle_s", [0.0, 0.1])
async def test_a_worker_that_nobody_is_at_ends(
    address: Address, fixed: MaskedBackend, idle_s: float
) -> None:
    worker = Worker(Options("tiny", idle_s=idle_s), lambda *_: Engine(fixed))
    await worker.serve(address)
    assert not address.path.exists()


# --- whoever goes away ------------------------------------------------------------------------------


async def test_a_client_that_vanishes_takes_its_runs_along(
    address: Address, worker: Worker, held: Held, two: Peer
) -> None:
    async with calling(address) as gone:
        gone.send(infill("gone"))
        await held.begun()
        two.send(infill("stays", room=2))
    held.let_go(100)
    assert (await two.next(wire.Done)).id == "stays"
    assert held.taken == ["gone", "stays", "stays", "stays"]
    assert worker.runs == []
    assert len(worker.talks) == 1


async def test_a_client_that_vanishes_while_the_model_loads_leaves_no_run(
    address: Address, fixed: MaskedBackend
) -> None:
    gate = threading.Event()

    def load(*_: object) -> Engine:
        assert gate.wait(60)
        return Engine(fixed)

    async with serving(address, load) as worker:
        async with calling(address) as gone:
            gone.send(infill("gone"))
            await gone.next(wire.Status, state="loading")
        async with calling(address) as peer:
            peer.send(wire.AskStatus())
            await peer.next(wire.Status, state="loading")
            gate.set()
            await peer.next(wire.Status, state="ready")
            assert worker.runs == []


async def test_a_worker_that_stops_hangs_up(address: Address, fixed: MaskedBackend) -> None:
    async with serving(address, lambda *_: Engine(fixed)) as worker, calling(address) as peer:
        worker.stop()
        await peer.rest()
    assert not address.path.exists()


# --- who may talk -----------------------------------------------------------------------------------


async def test_the_socket_is_the_users_alone(address: Address, worker: Worker) -> None:
    assert stat.S_IMODE(address.path.stat().st_mode) == 0o600


async def test_a_second_worker_at_the_same_address_makes_way(
    address: Address, worker: Worker, fixed: MaskedBackend, one: Peer
) -> None:
    await Worker(Options("tiny"), lambda *_: Engine(fixed)).serve(address)
    one.send(wire.AskStatus())
    assert (await one.next(wire.Status)).state == "off"


async def test_what_a_dead_worker_left_is_no_obstacle(
    address: Address, fixed: MaskedBackend
) -> None:
    address.path.write_text("left")
    async with serving(address, lambda *_: Engine(fixed)), calling(address) as peer:
        assert (await peer.next(wire.Status)).state == "off"


@pytest.mark.parametrize(
    ("hello", "sentence"),
    [
        (
            wire.Hello(protocol=99),
            "this worker speaks protocol 1, not 99; "
            "restart the editor so that both are of one version",
        ),
        (wire.Load(), "the first message has to be Hello"),
        (wire.Hello(token="guessed"), "the token is wrong"),
        (wire.Hello(token="gückt"), "the token is wrong"),
        (wire.Done("x", "converged"), "the other side sent something unreadable"),
    ],
    ids=["protocol", "no-hello", "token", "odd-token", "wrong-direction"],
)
async def test_who_does_not_greet_properly_hears_why_and_is_left(
    address: Address, worker: Worker, hello: wire.Message, sentence: str
) -> None:
    async with calling(address, hello) as peer:
        peer.send(infill("a"))
        heard = await peer.rest()
    assert [type(message) for message in heard] == [wire.Failed]
    assert heard[0].message.startswith(sentence)
    assert worker.runs == []
    assert worker.talks == set()


@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xff", b"\0\0\0\3abc", b"GET / HTTP/1.1\r\n"])
async def test_garbage_ends_the_talk_with_a_sentence_and_no_other(
    one: Peer, two: Peer, garbage: bytes
) -> None:
    one.writer.write(garbage)
    failed = await one.next(wire.Failed)
    assert (failed.id, failed.code) == ("", "wire")
    assert failed.message.startswith("the other side ")
    assert await one.rest() == []
    two.send(wire.AskStatus())
    assert (await two.next(wire.Status)).state == "off"


async def test_where_there_are_no_sockets_a_token_is_asked_for(
    tmp_path: Path, fixed: MaskedBackend
) -> None:
    address = Address(tmp_path / "w.json", tcp=True)
    async with serving(address, lambda *_: Engine(fixed)):
        assert stat.S_IMODE(address.path.stat().st_mode) == 0o600
        async with calling(address) as peer:
            peer.send(infill("a"))
            assert (await peer.next(wire.Done)).outcome == "converged"
        for token in ("", "guessed", "0" * 64):
            async with calling(address, wire.Hello(token=token)) as peer:
                assert [message.message for message in await peer.rest()] == ["the token is wrong"]
    assert not address.path.exists()
