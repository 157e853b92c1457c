"""What a model cannot do is said, and not passed over."""

from pathlib import Path

import pytest

from frostline.errors import WorkerRefused
from frostline.models import registry
from frostline.wire import messages as wire
from frostline.worker.engine import Engine
from frostline.worker.main import Options, Worker
from models import tiny


def test_an_instruction_to_a_model_that_follows_none_is_refused(tmp_path: Path) -> None:
    engine = Engine(registry.load(str(tiny.make(tmp_path)), "cpu"))
    segments = (wire.Text("def f():\n    return "), wire.Gap(0, room=4), wire.Text("\n"))
    with pytest.raises(WorkerRefused, match="tiny does not follow instructions; leave it out"):
        list(engine.alone(wire.Infill("run", segments, instruction="shorter")))
    *_, done = engine.alone(wire.Infill("run", segments))
    assert isinstance(done, wire.Done)


def test_the_status_of_a_loaded_model_says_what_it_cannot_do(tmp_path: Path) -> None:
    folder = str(tiny.make(tmp_path, length={"kind": "fixed"}))
    worker = Worker(Options(folder))
    assert worker._status().cannot == ()
    worker._engine = Engine(registry.load(folder, "cpu"))
    assert worker._status().cannot == (
        "tiny does not follow instructions.",
        "tiny does not choose how long a text gets: a hole is filled to its last slot.",
    )
    assert worker._status().message == ""
