"""What editors/README.md tells a person to press is what the set-ups have."""

import re

from editors.neovim import ROOT, SETUP

README = (ROOT / "editors" / "README.md").read_text()


def test_every_key_of_the_neovim_setup_is_in_the_readme():
    maps = re.search(r"local maps = \{\n(.*?)\n\}", SETUP.read_text(), re.DOTALL)
    assert maps
    keys = re.findall(r"= '(.+?)',", maps[1])
    assert len(keys) == 7
    assert [key for key in keys if f"`{key}`" not in README] == []


def test_every_key_of_the_emacs_setup_is_in_the_readme():
    setup = (ROOT / "editors" / "emacs" / "frostline-eglot.el").read_text()
    keys = re.findall(r'\(define-key map "(.)"', setup)
    assert len(keys) == 5
    assert [key for key in keys if f"`C-c i {key}`" not in README] == []


def test_every_file_that_the_readme_links_to_is_there():
    links = re.findall(r"\]\((?!http)(.+?)\)", README)
    assert links
    assert [link for link in links if not (ROOT / "editors" / link).is_file()] == []
