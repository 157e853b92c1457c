import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.strategies import languages, texts
from frostline.context import syntax
from frostline.context.syntax import breaks, errors, parse
from frostline.core.text import Span, TextEdit, apply


@given(texts, languages)
def test_bytes_and_code_points_are_converted_exactly(text: str, language: str) -> None:
    tree = parse(text, language)
    if tree is None:
        assert language == "plaintext"
        return
    for offset in range(len(text) + 1):
        byte = len(text[:offset].encode("utf-8", "surrogatepass"))
        assert tree.byte(offset) == byte
        assert tree.offset(byte) == offset
    assert len(tree.data) == tree.byte(len(text))


def test_conversion_far_into_a_text() -> None:
    text = "x = 'é😀'\n" * 2000
    tree = parse(text, "python")
    assert tree is not None
    for offset in (0, 1023, 1024, 1025, 4096, 9999, len(text) - 1, len(text)):
        byte = len(text[:offset].encode())
        assert (tree.byte(offset), tree.offset(byte)) == (byte, offset)
    inside = len(text[: text.index("😀")].encode()) + 2
    assert tree.offset(inside) == text.index("😀")


def test_one_text_is_parsed_once() -> None:
    text = "x = 1\n"
    assert parse(text, "python") is parse("x = " + "1\n", "python")
    assert parse(text, "python") is not parse(text, "go")


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("x = (1\n", "python", ["x = (1"]),
        ("x = 1\n", "python", []),
        ("é = '😀'; x = = 1\n", "python", ["="]),
        ("if x:\r    y = 1\r", "python", []),
        ("if x:\r\n    y = 1\r\n", "python", []),
        ("\ufeffx = 1\n", "python", []),
        ("\fx = 1\n", "python", []),
        ("x = '\ud83d'\n", "python", []),
        ("f(1;\n", "javascript", [""]),
        ("int f( { }\n", "plaintext", []),
        ("", "rust", []),
    ],
)
def test_where_a_text_does_not_parse(text: str, language: str, expected: list[str]) -> None:
    found = errors(text, language)
    assert [text[span.start : span.end] for span in found] == expected


@given(texts, languages)
def test_errors_are_in_order_and_inside_the_text(text: str, language: str) -> None:
    reached = 0
    for span in errors(text, language):
        assert reached <= span.start <= span.end <= len(text)
        reached = span.end


@given(texts, languages, st.data())
def test_an_edit_that_changes_nothing_breaks_nothing(text: str, language: str, data) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    assert breaks(text, [TextEdit(Span(start, end), text[start:end])], language) == ()


@given(texts, texts, languages, st.data())
def test_what_an_edit_breaks_is_inside_the_result(text: str, new: str, language: str, data) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    edits = [TextEdit(Span(start, end), new)]
    after = apply(text, edits)
    found = breaks(text, edits, language)
    assert all(span.end <= len(after) for span in found)
    if not errors(text, language) and language != "python":
        assert found == errors(after, language)


@given(texts, st.data())
def test_old_text_is_found_again_after_edits(text: str, data) -> None:
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    edits = [
        TextEdit(Span(start, end), data.draw(texts))
        for start, end in zip(places[::2], places[1::2], strict=False)
    ]
    after, shift = apply(text, edits), syntax._Shift(edits)
    start = data.draw(st.integers(0, len(after)))
    end = data.draw(st.integers(start, len(after)))
    written = {at for span in shift.written for at in range(span.start, span.end)}
    kept = "".join(text[piece.start : piece.end] for piece in shift.kept(Span(start, end)))
    assert kept == "".join(after[at] for at in range(start, end) if at not in written)


def test_several_edits_are_judged_together() -> None:
    before = "def f():\n    pass\n\n\ndef g():\n    pass\n"
    first, second = (Span(13, 17), Span(33, 37))
    sound = [TextEdit(first, "return (1 +\n        2)"), TextEdit(second, "return f()")]
    assert breaks(before, sound, "python") == ()
    broken = [TextEdit(first, "return 1"), TextEdit(second, "return f(")]
    (span,) = breaks(before, broken, "python")
    assert "return f(" in apply(before, broken)[span.start :]


def test_an_error_that_moves_is_not_new() -> None:
    before = "x = 1\n\n\ndef g(:\n    pass\n"
    assert errors(before, "python")
    assert breaks(before, [TextEdit(Span(0, 5), "yy = [1,\n2,\n3]")], "python") == ()


def test_one_mistake_mended_does_not_pay_for_another() -> None:
    before = "x = = 1\n\n\ndef g():\n    return 1\n"
    span = Span(before.index("return 1"), len(before) - 1)
    edits = [TextEdit(Span(4, 6), ""), TextEdit(span, "return = 1")]
    (found,) = breaks(before, edits, "python")
    assert "=" in apply(before, edits)[found.start : found.end]
    assert found.start >= 16


def test_python_that_only_newer_interpreters_read_is_left_to_the_grammar() -> None:
    before = "def f[T](x: T) -> T:\n    pass\n\n\nx = = 1\n"
    assert breaks(before, [TextEdit(Span(25, 29), "return x")], "python") == ()
    assert breaks(before, [TextEdit(Span(25, 29), "return ((x")], "python") != ()


def test_the_interpreters_word_is_final() -> None:
    # Valid, and unknown to the grammar of today.
    before = "def f():\n    pass\n"
    assert errors("match = 1\nprint(match)\n", "python") == ()
    assert breaks(before, [TextEdit(Span(13, 17), "x = 1; return x;")], "python") == ()
    (span,) = breaks(before, [TextEdit(Span(13, 17), "await x")], "python")
    assert span == Span(9, 20)


def test_compiling_executes_nothing(tmp_path) -> None:
    mark = tmp_path / "mark"
    text = f"open({str(mark)!r}, 'w')\n"
    assert breaks("x = 1\n", [TextEdit(Span(0, 6), text)], "python") == ()
    assert not mark.exists()


@pytest.mark.parametrize(
    "text", ["x = '\x00'", "(" * 500, "-" * 100_000 + "1", "[" * 500 + "]" * 500]
)
def test_what_the_interpreter_cannot_take_is_an_error_and_no_crash(text: str) -> None:
    assert breaks("x = 1\n", [TextEdit(Span(0, 5), text)], "python") != ()


def test_a_text_that_is_too_large_is_not_parsed(monkeypatch) -> None:
    monkeypatch.setattr(syntax, "LARGEST", 10)
    assert parse("x = 1\n", "python") is not None
    assert parse("x = 1000000\n", "python") is None
    assert errors("x = ((((((((\n", "python") == ()
    assert breaks("x = ((((((((\n", [TextEdit(Span(0, 1), "y")], "python") == ()
    # What could be read before must still be readable.
    assert breaks("x = 1\n", [TextEdit(Span(4, 5), "1000000")], "python") == (Span(4, 11),)


def test_a_parse_that_takes_too_long_is_given_up(monkeypatch) -> None:
    monkeypatch.setattr(syntax, "_PATIENCE", -1.0)
    assert parse("slow = 1\n" * 50_000, "python") is None


def test_an_error_of_very_many_parts_is_not_searched() -> None:
    tree = parse("(" * (syntax._MOST_PARTS + 1), "python")
    assert tree is not None
    assert tree.tangled
    assert tree.errors
    assert tree.matches() == []


def test_threads_can_parse_at_once() -> None:
    sources = [f"def f{i}(x):\n    return x + {i}\n" * 200 for i in range(8)]
    wrong: list[str] = []

    def work(text: str) -> None:
        tree = parse(text, "python")
        if tree is None or len(tree.matches()) != 200 or breaks(text, [], "python"):
            wrong.append(text)

    threads = [threading.Thread(target=work, args=(text,)) for text in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
