import re
from importlib import resources

import pytest

from frostline.context import grammar
from frostline.context.grammar import LANGUAGES, for_language, language_of, path_of

VOCABULARY = set(re.findall(r"@(\w+)", grammar.__doc__ or ""))


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_language_has_a_grammar_and_a_query(language: str) -> None:
    found = for_language(language)
    assert found is not None
    assert not found.parser().parse(b"").root_node.has_error
    assert for_language(language) is found
    names = {found.query.capture_name(index) for index in range(found.query.capture_count)}
    assert {name for name in names if not name.startswith("_")} <= VOCABULARY
    assert {"function", "body", "string", "name"} <= names


def test_no_query_file_is_left_over() -> None:
    folder = resources.files("frostline.context").joinpath("queries")
    files = {entry.name for entry in folder.iterdir() if entry.name.endswith(".scm")}
    grammars = (for_language(language) for language in LANGUAGES)
    assert files == {f"{found.name}.scm" for found in grammars if found is not None}


@pytest.mark.parametrize("language", ["plaintext", "", "cobol", "Python"])
def test_no_grammar(language: str) -> None:
    assert for_language(language) is None


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("a.py", "python"),
        ("/x/y/a.PY", "python"),
        ("types.pyi", "python"),
        ("SConstruct", "python"),
        ("C:\\code\\a.rs", "rust"),
        ("file:///x/a%20b.ts", "typescript"),
        ("file:///c%3A/x/a.tsx", "typescriptreact"),
        ("vscode-remote://ssh-remote%2Bhost/x/a.go", "go"),
        ("untitled:Untitled-1", "plaintext"),
        ("untitled:new.java", "java"),
        ("a.jsx", "javascriptreact"),
        ("a.cjs", "javascript"),
        ("a.c", "c"),
        ("a.C", "cpp"),
        ("a.h", "cpp"),
        ("a.hpp", "cpp"),
        ("py", "plaintext"),
        (".py", "plaintext"),
        ("a.py.orig", "plaintext"),
        ("Makefile", "plaintext"),
        ("", "plaintext"),
        ("file:///a.py?version=2#top", "python"),
    ],
)
def test_what_a_name_says(name: str, language: str) -> None:
    assert language_of(name) == language


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ("/x/a b.py", "/x/a b.py"),
        ("/x/100%25.py", "/x/100%25.py"),
        ("file:///x/a%20b.py", "/x/a b.py"),
        ("file:///C:/x.py", "C:/x.py"),
        ("C:\\x.py", "C:\\x.py"),
        ("untitled:Untitled-1", "Untitled-1"),
        ("file://host/share/x.py", "/share/x.py"),
    ],
)
def test_the_path_in_a_uri(given: str, path: str) -> None:
    assert path_of(given) == path
