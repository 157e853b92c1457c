"""Rules 5 and 8 of the barrier through the real server: what may not be changed, and what is asked first."""

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from lsprotocol import types

from frostline.cli.client import EditorClient
from frostline.core.text import Document, Span
from frostline.lsp import extension as ext
from lsp.conftest import Scripted

pytestmark = pytest.mark.e2e

URI = "file:///nowhere/a.py"
LONG = "x = '" + "old " * 60 + "'\n"


def settings(client: EditorClient, **values: object) -> None:
    client.notify("workspace/didChangeConfiguration", {"settings": {"frostline": values}})


async def begun(client: EditorClient, document: Document, span: Span, **options: object) -> str:
    answer = await client.begin(document, span, **options)
    return str(answer["session"])


async def test_a_read_only_file_is_left_alone(scripted: Scripted, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("x = 1\n")
    path.chmod(stat.S_IRUSR)
    async with scripted([[["2"]]]) as client:
        document = client.open(path.as_uri(), "python", "x = 1\n")
        session = await begun(client, document, Span(4, 5))
        await client.state(session, "ready")
        answer = await client.accept(session)
        if "edit" in answer:  # root may write everywhere, and then the file is no exception
            assert os.access(path, os.W_OK)
        else:
            assert answer["refusal"]["code"] == "forbidden"


async def test_a_file_outside_the_workspace_is_left_alone(
    scripted: Scripted, tmp_path: Path
) -> None:
    inside, outside = tmp_path / "project", tmp_path / "other.py"
    inside.mkdir()
    async with scripted([[["2"]]], root=inside) as client:
        document = client.open(outside.as_uri(), "python", "x = 1\n")
        session = await begun(client, document, Span(4, 5))
        await client.state(session, "ready")
        refusal = (await client.accept(session))["refusal"]
        assert refusal["code"] == "forbidden"
        assert "outside the workspace" in refusal["message"]
        document = client.open((inside / "a.py").as_uri(), "python", "x = 1\n")
        session = await begun(client, document, Span(4, 5))
        await client.state(session, "ready")
        assert "edit" in await client.accept(session)


async def test_an_edit_over_the_limit_is_refused(scripted: Scripted) -> None:
    async with scripted([[["2"]]]) as client:
        settings(client, maxEditChars=100)
        document = client.open(URI, "python", LONG)
        session = await begun(client, document, Span(4, len(LONG) - 1))
        await client.state(session, "ready")
        refusal = (await client.accept(session))["refusal"]
        assert refusal["code"] == "forbidden"
        assert "the limit is 100" in refusal["message"]


@pytest.mark.parametrize("chosen", ["Apply", "Not now", None])
async def test_a_risky_edit_that_would_go_in_by_itself_asks(
    scripted: Scripted, chosen: str | None
) -> None:
    async with scripted([[["2"]]]) as client:
        client.choose = chosen
        document = client.open(URI, "python", LONG)
        session = await begun(client, document, Span(4, len(LONG) - 1), commit="converged")
        if chosen == "Apply":
            await client.state(session, "committed")
            assert client.buffers[URI].document.text == "x = 2\n"
            assert len(client.buffers[URI].undo) == 1
        else:
            await client.state(session, "ready")
            await client.until(lambda: bool(client.questions))
            await client.extension(ext.STATUS, {})
            assert client.buffers[URI].document is document
            # It waits for an explicit word.
            assert "edit" in await client.accept(session)
        (question,) = client.questions
        assert question.startswith("Apply the draft? The edit deletes")


async def test_protected_files_ask_too(scripted: Scripted) -> None:
    async with scripted([[["2"]]]) as client:
        client.choose = "Not now"
        settings(client, protected=["nowhere/"])
        document = client.open(URI, "python", "x = 1\n")
        await begun(client, document, Span(4, 5), commit="converged")
        await client.until(lambda: bool(client.questions))
        assert "protected" in client.questions[0]


async def test_an_accept_with_a_key_is_answered_the_same_for_ever(scripted: Scripted) -> None:
    async with scripted([[["2"]]]) as client:
        document = client.open(URI, "python", "x = 1\n")
        session = await begun(client, document, Span(4, 5))
        await client.state(session, "ready")
        first = await client.accept(session, key="a")
        assert await client.accept(session, key="a") == first
        client.applied(session, client.apply(first["edit"]))
        await client.state(session, "committed")
        assert await client.accept(session, key="a") == first
        assert (await client.accept(session, key="b"))["refusal"]["code"] == "applied"


async def test_an_editor_that_says_yes_and_does_nothing_is_not_believed(scripted: Scripted) -> None:
    async with scripted([[["2"]]]) as client:
        client.lies = True
        document = client.open(URI, "python", "x = 1\n")
        session = await begun(client, document, Span(4, 5), commit="converged")
        told = await client.state(session, "refused", "committed")
        assert told["state"] == "refused"
        assert told["refusal"]["code"] == "stale"
        assert [method for method, _ in client.asked].count(types.WORKSPACE_APPLY_EDIT) == 1


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put commands into the user's settings file."""

    def put(*commands: str, seconds: float = 10.0) -> None:
        path = tmp_path / "config.toml"
        path.write_text(f"checks = {json.dumps(commands)}\ncheck_s = {seconds}\n")
        monkeypatch.setenv("FROSTLINE_CONFIG", str(path))

    return put


SLEEPER = f"{sys.executable} -c 'import time; time.sleep(60)'"
CHECKER = """\
import sys
from pathlib import Path
path = Path(sys.argv[-1])
words = [word for line in path.read_text().splitlines() for word in line.split()]
bad = [word for word in words if word in ("bad", "worse")]
print("\\n".join(f"{path}:{n}: {word} is not allowed" for n, word in enumerate(bad)))
sys.exit(bool(bad))
"""


@pytest.mark.parametrize(("draft", "passes"), [("fine", True), ("worse", False), ("bad", True)])
async def test_a_check_complains_of_what_is_new(
    scripted: Scripted, checks: Callable[..., None], tmp_path: Path, draft: str, passes: bool
) -> None:
    checker = tmp_path / "checker.py"
    checker.write_text(CHECKER)
    checks(f"{sys.executable} {checker}")
    async with scripted([[[draft]]], own_settings=False) as client:
        document = client.open(URI, "python", "bad\nx = 1\n")
        session = await begun(client, document, Span(8, 9))
        await client.state(session, "ready")
        answer = await client.accept(session)
        if passes:
            assert "edit" in answer
        else:
            assert answer["refusal"]["code"] == "unsound"
            assert "worse is not allowed" in answer["refusal"]["message"]
            assert str(tmp_path) not in answer["refusal"]["message"].partition(": ")[2]


@pytest.mark.parametrize(
    ("command", "words"),
    [("no-such-checker", "could not be started"), (SLEEPER, "took longer than 0.2 seconds")],
)
async def test_a_check_that_does_not_run_checks_nothing(
    scripted: Scripted, checks: Callable[..., None], command: str, words: str
) -> None:
    checks(command, seconds=0.2)
    async with scripted([[["2"]]], own_settings=False) as client:
        document = client.open(URI, "python", "x = 1\n")
        session = await begun(client, document, Span(4, 5))
        await client.state(session, "ready")
        refusal = (await client.accept(session))["refusal"]
        assert refusal["code"] == "unsound"
        assert words in refusal["message"]


async def test_no_check_is_run_on_a_draft_that_still_changes(
    scripted: Scripted, checks: Callable[..., None], tmp_path: Path
) -> None:
    made = tmp_path / "made"
    checks(f"touch {made}")
    async with scripted([[["2", "░", "░", "3"]]], pause_ms=300, own_settings=False) as client:
        document = client.open(URI, "python", "x = 1\n")
        session = await begun(client, document, Span(4, 5))
        await client.told(ext.PROVISIONAL, lambda shown: shown["session"] == session)
        assert (await client.accept(session))["refusal"]["code"] == "unstable"
        assert not made.exists()


async def test_an_editor_cannot_name_a_check(scripted: Scripted, tmp_path: Path) -> None:
    made = tmp_path / "made"
    async with scripted([[["2"]]]) as client:
        settings(client, checks=[f"touch {made}"])
        await client.extension(ext.STATUS, {})
        await client.until(lambda: bool(client.messages))
        assert "is taken from" in client.messages[0]
        document = client.open(URI, "python", "x = 1\n")
        session = await begun(client, document, Span(4, 5))
        await client.state(session, "ready")
        assert "edit" in await client.accept(session)
        assert not made.exists()
