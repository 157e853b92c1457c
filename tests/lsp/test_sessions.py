"""The main job over stdio with the real worker, and the ways in which it ends otherwise."""

import os
from pathlib import Path

import psutil
import pytest

from frostline.cli.client import EditorClient, editor
from frostline.config import Settings
from frostline.core.text import Document, Span
from frostline.errors import FrostlineError
from frostline.lsp import extension as ext
from lsp.conftest import SERVER, Scripted

pytestmark = pytest.mark.e2e

URI = "file:///nowhere/area.py"
TEXT = """import math


def area(radius):
    return 3.14 * radius * radius


def perimeter(radius):
    return 2 * math.pi * radius
"""
HOLE = Span(TEXT.index("3.14"), TEXT.index("3.14") + len("3.14 * radius * radius"))


def opened(client: EditorClient, uri: str = URI) -> Document:
    return client.open(uri, "python", TEXT)


async def ready(
    client: EditorClient, document: Document, updates: int = 1, **options: object
) -> str:
    """Return a session that is ready, after so many drafts shown at least.

    A small model may need another seed to write what parses, or more than a word.
    """
    for seed in range(12):
        begun = await client.begin(document, HOLE, intent="rewrite", seed=seed, **options)
        told = await client.state(begun["session"], "ready", "refused")
        if told["state"] == "ready" and "refusal" not in told:
            if len(client.shown(begun["session"])) >= updates:
                return str(begun["session"])
            continue
        assert told["refusal"]["code"] == "unsound", told
    raise AssertionError("twelve drafts in a row did not parse")


async def test_begin_watch_ready_accept(client: EditorClient) -> None:
    document = opened(client)
    session = await ready(client, document, updates=4)
    shown = client.shown(session)
    assert len(shown) >= 4
    assert [one["version"] for one in shown] == [1] * len(shown)
    assert {piece["state"] for one in shown for piece in one["holes"][0]["pieces"]} >= {
        "open",
        "stable",
    }
    assert client.buffers[URI].document is document
    answer = await client.accept(session)
    (change,) = answer["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": URI, "version": 1}
    after = client.apply(answer["edit"])
    client.applied(session, after)
    told = await client.state(session, "committed")
    assert after.text.startswith(TEXT[: HOLE.start])
    assert after.text.endswith(TEXT[HOLE.end :])
    final = "".join(piece["text"] for piece in shown[-1]["holes"][0]["pieces"])
    assert after.text == TEXT[: HOLE.start] + final + TEXT[HOLE.end :]
    assert client.undo(URI).text == TEXT
    for name in ("time_to_first_useful_block_ms", "time_to_complete_ms", "forwards", "regret"):
        assert told["metrics"][name] is not None


async def test_a_change_in_the_hole_makes_the_draft_stale(client: EditorClient) -> None:
    document = opened(client)
    session = await ready(client, document)
    client.type(URI, Span(HOLE.start, HOLE.start + 4), "3.15")
    answer = await client.accept(session)
    assert answer["refusal"]["code"] == "stale"
    # It is drafted again, around what was typed.
    await client.told(
        ext.PROVISIONAL, lambda shown: shown["session"] == session and shown["version"] == 2
    )


@pytest.mark.complaint(1)
async def test_several_holes_are_one_edit(client: EditorClient) -> None:
    text = "def move(point, dx, dy):\n    point.x += 0\n    point.y += 0\n"
    document = client.open(URI, "python", text)
    first, second = (text.index("0"), text.rindex("0"))
    spans = Span(first, first + 1), Span(second, second + 1)
    for seed in range(12):
        begun = await client.begin(document, *spans, seed=seed)
        told = await client.state(begun["session"], "ready", "refused")
        if told["state"] == "ready" and "refusal" not in told:
            break
    assert len(client.shown(begun["session"])[-1]["holes"]) == 2
    answer = await client.accept(begun["session"])
    after = client.apply(answer["edit"])
    assert len(client.buffers[URI].undo) == 1
    assert after.text.startswith("def move(point, dx, dy):\n    point.x += ")
    assert "\n    point.y += " in after.text


@pytest.mark.complaint(18)
async def test_reject_leaves_everything_as_it_was(client: EditorClient) -> None:
    document = opened(client)
    begun = await client.begin(document, HOLE)
    await client.told(ext.PROVISIONAL, lambda shown: shown["session"] == begun["session"])
    await client.extension(ext.REJECT, ext.Reject(session=begun["session"]))
    told = await client.state(begun["session"], "cancelled")
    assert "refusal" not in told
    assert client.buffers[URI].document is document
    # The next one is not in its way.
    assert await ready(client, document)


async def test_a_newer_begin_replaces_the_older(client: EditorClient) -> None:
    document = opened(client)
    first = await client.begin(document, HOLE)
    second = await client.begin(document, HOLE)
    told = await client.state(first["session"], "cancelled")
    assert told["refusal"]["code"] == "replaced"
    assert (await client.state(second["session"], "ready", "refused"))["session"] == second[
        "session"
    ]


@pytest.mark.complaint(2)
async def test_the_file_is_safe_when_the_server_is_killed(
    client: EditorClient, tmp_path: Path
) -> None:
    path = tmp_path / "area.py"
    # Line ends and a byte order mark that a rewrite of the file would hardly keep.
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    before, stamped = path.read_bytes(), path.stat()
    folder = path.parent.stat().st_mtime_ns
    document = client.open(path.as_uri(), "python", before.decode())
    start = document.text.index("3.14")
    begun = await client.begin(document, Span(start, start + 4), length=100)
    await client.told(ext.PROVISIONAL, lambda shown: shown["session"] == begun["session"])
    client.process.kill()
    await client.process.wait()
    assert client.buffers[document.uri].document is document
    assert client.buffers[document.uri].undo == []
    assert path.read_bytes() == before
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (stamped.st_mtime_ns, stamped.st_ino)
    assert path.parent.stat().st_mtime_ns == folder, "nothing came or went beside it"


async def test_closing_the_file_ends_its_draft_and_no_other(scripted: Scripted) -> None:
    async with scripted([[["2"]], [["3"]]]) as client:
        closed, other = (client.open(uri, "python", "x = 1\n") for uri in (URI, URI + "i"))
        first = await client.begin(closed, Span(4, 5))
        await client.state(first["session"], "ready")
        second = await client.begin(other, Span(4, 5))
        await client.state(second["session"], "ready")
        client.close(closed.uri)
        told = await client.state(first["session"], "refused")
        assert told["refusal"]["code"] == "closed"
        assert (await client.begin(closed, Span(4, 5)))["refusal"]["code"] == "closed"
        assert "edit" in await client.accept(second["session"])


async def test_a_renamed_file_loses_its_draft_and_gets_a_new_one_by_its_new_name(
    scripted: Scripted,
) -> None:
    async with scripted([[["░", "░", "░", "2"]], [["3"]]], pause_ms=100) as client:
        begun = await client.begin(client.open(URI, "python", "x = 1\n"), Span(4, 5))
        await client.told(ext.PROVISIONAL, lambda shown: shown["session"] == begun["session"])
        # As editors say it: the old name is closed, the new one opened, then the rename is told.
        client.close(URI)
        renamed = client.open("file:///nowhere/renamed.py", "python", "x = 1\n")
        files = [{"oldUri": URI, "newUri": renamed.uri}]
        client.notify("workspace/didRenameFiles", {"files": files})
        told = await client.state(begun["session"], "refused")
        assert told["refusal"]["code"] == "closed"
        assert (await client.accept(begun["session"]))["refusal"]["code"] == "closed"
        again = await client.begin(renamed, Span(4, 5))
        await client.state(again["session"], "ready")
        assert {shown["uri"] for shown in client.shown(again["session"])} == {renamed.uri}
        after = client.apply((await client.accept(again["session"]))["edit"])
        assert after.text == "x = 3\n"


async def test_a_redo_puts_back_what_was_accepted_and_asks_nobody(scripted: Scripted) -> None:
    async with scripted([[["2"]]]) as client:
        begun = await client.begin(client.open(URI, "python", "x = 1\n"), Span(4, 5))
        await client.state(begun["session"], "ready")
        after = client.apply((await client.accept(begun["session"]))["edit"])
        client.applied(begun["session"], after)
        await client.state(begun["session"], "committed")
        assert client.undo(URI).text == "x = 1\n"
        client.type(URI, Span(0, 6), after.text)
        await client.settled(begun["session"])
        states = [told["state"] for method, told in client.heard if method == ext.STATE]
        assert states[-1] == "committed"
        assert states.count("drafting") == 1
        # It was accepted once, and is not again.
        assert (await client.accept(begun["session"]))["refusal"]["code"] == "applied"


async def test_ten_thousand_lines_pasted_move_the_draft_that_is_shown(scripted: Scripted) -> None:
    async with scripted([[["2"]]]) as client:
        begun = await client.begin(client.open(URI, "python", "\n\nx = 1\n"), Span(6, 7))
        await client.state(begun["session"], "ready")
        client.type(URI, Span(0, 0), "y = 2\n" * 10_000)
        moved = await client.told(ext.PROVISIONAL, lambda shown: shown["version"] == 2)
        assert moved["holes"][0]["range"]["start"] == {"line": 10_002, "character": 4}
        await client.settled(begun["session"])
        after = client.apply((await client.accept(begun["session"]))["edit"])
        assert after.text == "y = 2\n" * 10_000 + "\n\nx = 2\n"


async def test_an_edit_of_another_server_that_overtakes_an_accept(scripted: Scripted) -> None:
    async with scripted([[["2"]]]) as client:
        begun = await client.begin(client.open(URI, "python", "\n\nx = 1\n"), Span(6, 7))
        await client.state(begun["session"], "ready")
        answer = await client.accept(begun["session"])
        client.type(URI, Span(0, 0), "import y")  # asked for by the other, made first
        with pytest.raises(FrostlineError, match="another version"):
            client.apply(answer["edit"])
        told = await client.state(begun["session"], "refused")
        assert told["refusal"]["code"] == "stale"
        assert client.buffers[URI].document.text == "import y\n\nx = 1\n"


@pytest.mark.complaint(8)
async def test_other_requests_are_answered_while_a_large_file_is_drafted(
    scripted: Scripted,
) -> None:
    text = "x = 1\n" * 20_000
    async with scripted([[["2", "2", "2"]]], pause_ms=50) as client:
        document = client.open(URI, "python", text)
        begun = await client.begin(document, Span(4, 5))
        await client.extension(ext.STATUS, {})
        states = [params["state"] for method, params in client.heard if method == ext.STATE]
        assert states == ["drafting"], "the answer came before the draft was done"
        await client.state(begun["session"], "ready")


async def test_a_draft_commits_itself_when_that_is_asked_for(scripted: Scripted) -> None:
    async with scripted([[["░", "1 + 1"]]]) as client:
        document = client.open(URI, "python", "x = 0\n")
        begun = await client.begin(document, Span(4, 5), commit="converged")
        await client.state(begun["session"], "committed")
        assert client.buffers[URI].document.text == "x = 1 + 1\n"
        assert [method for method, _ in client.asked if "applyEdit" in method] == [
            "workspace/applyEdit"
        ]
        assert len(client.buffers[URI].undo) == 1


@pytest.mark.complaint(3)
async def test_pin_keeps_what_is_pinned(scripted: Scripted) -> None:
    async with scripted([[["price * 2"]], [["+ 1"]]]) as client:
        document = client.open(URI, "python", "x = 0\n")
        begun = await client.begin(document, Span(4, 5))
        await client.state(begun["session"], "ready")
        await client.extension(ext.PIN, ext.Pin(session=begun["session"], hole=0, span=(0, 6)))
        await client.told(
            ext.PROVISIONAL,
            lambda shown: [piece["text"] for piece in shown["holes"][0]["pieces"]] == ["price + 1"],
        )


async def test_what_is_asked_of_a_draft_that_ended_is_refused(scripted: Scripted) -> None:
    async with scripted([[["2"]]]) as client:
        begun = await client.begin(client.open(URI, "python", "x = 0\n"), Span(4, 5))
        session = begun["session"]
        await client.state(session, "ready")
        await client.extension(ext.REJECT, ext.Reject(session=session))
        for method, asked in (
            (ext.PIN, ext.Pin(session=session, hole=0, span=(0, 1))),
            (ext.REFINE, ext.Refine(session=session)),
            (ext.BACK, ext.Back(session=session)),
        ):
            assert (await client.extension(method, asked))["refusal"]["code"] == "unknown"
        # A second reject is no mistake.
        assert await client.extension(ext.REJECT, ext.Reject(session=session)) == {}


async def test_what_is_typed_along_is_taken_off_the_draft_that_is_shown(scripted: Scripted) -> None:
    async with scripted([[["return 1"]]]) as client:
        document = client.open(URI, "python", "def f():\n    \n")
        begun = await client.begin(document, Span(13, 13))
        await client.state(begun["session"], "ready")
        client.type(URI, Span(13, 13), "ret")
        told = await client.told(ext.PROVISIONAL, lambda shown: shown["version"] == 2)
        (hole,) = told["holes"]
        assert hole["range"]["start"] == {"line": 1, "character": 7}
        assert [piece["text"] for piece in hole["pieces"]] == ["urn 1"]


@pytest.mark.complaint(23)
async def test_excluded_files_never_reach_the_worker(scripted: Scripted) -> None:
    async with scripted([[["x"]]]) as client:
        document = client.open("file:///nowhere/.env", "python", "KEY = 1\n")
        begun = await client.begin(document, Span(6, 7))
        assert begun["refusal"]["code"] == "excluded"
        assert ".env" in begun["refusal"]["message"]
        assert client.heard == []


@pytest.mark.complaint(10)
async def test_switched_off_means_that_no_worker_is_even_started() -> None:
    settings = Settings(enabled=False, threads=3)  # a worker of its own, which nobody else starts
    async with editor(settings, *SERVER, patience_s=60) as client:
        document = opened(client)
        begun = await client.begin(document, HOLE)
        assert begun["refusal"]["code"] == "off"
        answer = await client.request(
            "textDocument/inlineCompletion",
            {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}},
        )
        assert not answer.items
        assert not any("--threads 3" in " ".join(worker.cmdline()) for worker in _workers())


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "textDocument"),
        ({"textDocument": {"uri": URI}, "holes": "all"}, "holes"),
        ({"textDocument": {"uri": URI}, "holes": [], "intent": "guess"}, "intent"),
    ],
)
async def test_a_wrong_request_is_answered_with_what_is_wrong(
    scripted: Scripted, params: dict, words: str
) -> None:
    async with scripted([]) as client:
        with pytest.raises(Exception, match=words):
            await client.extension(ext.BEGIN, params)


async def test_places_that_are_not_there_are_answered(scripted: Scripted) -> None:
    async with scripted([[["x"]]]) as client:
        missing = Document.of("file:///nowhere/else.py", 1, "python", "x")
        assert (await client.begin(missing, Span(0, 1)))["refusal"]["code"] == "closed"
        document = client.open(URI, "python", "x = 1\n")
        older = Document.of(URI, 0, "python", "x = 1\n")
        assert (await client.begin(older, Span(4, 5)))["refusal"]["code"] == "stale"
        assert (await client.begin(document))["refusal"]["code"] == "nothing"
        overlapping = await client.begin(document, Span(2, 5), Span(4, 5))
        assert overlapping["refusal"]["code"] == "overlap"
        assert (await client.accept("s99"))["refusal"]["code"] == "unknown"


def _workers() -> list[psutil.Process]:
    runtime = os.environ["FROSTLINE_RUNTIME_DIR"]
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        line = process.info["cmdline"] or ()
        if process.info["status"] != psutil.STATUS_ZOMBIE and "worker" in line:
            found += [process] if any(runtime in part for part in line) else []
    return found
