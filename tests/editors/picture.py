"""Make .github/neovim.svg: a real Neovim, the real server and the model in the package, photographed.

    python tests/editors/picture.py

Needs what the tests need. Three moments of one draft are taken from what Neovim drew, cell by cell.
"""

from __future__ import annotations

import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from editors.neovim import PLUGIN, Neovim  # noqa: E402
from editors.screen import Look, Screen  # noqa: E402
from frostline.cli.demo import MOST_TRIES, PAGE, marked  # noqa: E402

OUT = ROOT / ".github" / "neovim.svg"
WIDTH, HEIGHT = 84, 14
CELL, LINE, EDGE = 8.4, 19, 12


def film() -> list[Screen]:
    """Return what was drawn of the first draft that parses."""
    text, spans = marked(PAGE)
    with tempfile.TemporaryDirectory(prefix="frostline-picture-") as name:
        folder = Path(name)
        init = folder / "init.lua"
        start = f"vim.opt.rtp:prepend('{PLUGIN}')\nvim.lsp.enable('frostline')\n"
        look = "vim.o.number = true\nvim.o.termguicolors = true\nvim.o.laststatus = 2\n"
        line = "vim.o.statusline = [[ %t %m %= %{v:lua.require'frostline'.status()} ]]\n"
        init.write_text(start + look + line + "vim.o.ruler = false\nvim.o.scrolloff = 0\n")
        neovim = Neovim(folder, init)
        neovim.attach(WIDTH, HEIGHT)
        neovim.open("circle.py", text)
        neovim.configure({"threads": 1})
        neovim.command("normal! 11Gzt")
        holes = []
        for span in spans:
            row = text.count("\n", 0, span.start)
            column = span.start - text.rfind("\n", 0, span.start) - 1
            holes.append((row, column, row, column + span.end - span.start))
        try:
            for seed in range(MOST_TRIES):
                neovim.drawn().film = []
                neovim.begin(*holes, strength=1.0, seed=seed)
                neovim.until(lambda: _ended(neovim), "a draft")
                if neovim.words() == "draft ready":
                    return list(neovim.drawn().film or [])
        finally:
            neovim.close()
    raise SystemExit("the model found no draft that parses; train it, or try another seed")


def _ended(neovim: Neovim) -> bool:
    ready = (neovim.words() or "").startswith("draft ready")
    return ready or neovim.state().get("state") == "refused"


def drawn(picture: Screen, top: float) -> str:
    """Return a picture's cells as SVG, from `top` down."""
    parts = []
    for number in range(HEIGHT - 1):
        column, y = 0, top + number * LINE
        for text, look in picture.runs(number):
            x = EDGE + column * CELL
            if look.background is not None:
                size = f'width="{len(text) * CELL:.1f}" height="{LINE}"'
                parts.append(f'<rect x="{x:.1f}" y="{y}" {size} fill="#{look.background:06x}"/>')
            if text.strip():
                parts.append(
                    f'<text x="{x:.1f}" y="{y + 14}" textLength="{len(text) * CELL:.1f}"'
                    f"{style(look, picture)}>{cells(text)}</text>"
                )
            column += len(text)
    return "\n".join(parts)


def cells(text: str) -> str:
    """Return text whose blanks a picture keeps."""
    return escape(text.replace(" ", "\u00a0"))


def style(look: Look, picture: Screen) -> str:
    colour = look.foreground if look.foreground is not None else picture.colours[0]
    words = f' fill="#{colour:06x}"'
    if "bold" in look.attributes:
        words += ' font-weight="bold"'
    if "italic" in look.attributes:
        words += ' font-style="italic"'
    if "strikethrough" in look.attributes:
        words += ' text-decoration="line-through"'
    return words


def main() -> None:
    """Write the picture."""
    pictures = [one for one in film() if one.find("drafting ") >= 0 or one.find("draft ready") >= 0]
    moments = [pictures[index] for index in (0, len(pictures) // 2, len(pictures) - 1)]
    tall = (HEIGHT - 1) * LINE + EDGE
    width, height = WIDTH * CELL + 2 * EDGE, len(moments) * tall + EDGE
    body = "\n".join(drawn(one, EDGE + index * tall) for index, one in enumerate(moments))
    OUT.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}"'
        ' font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="14"'
        ">\n"
        "<title>A draft in Neovim getting clearer, at three moments</title>\n"
        f'<rect width="100%" height="100%" fill="#{moments[0].colours[1]:06x}"/>\n{body}\n</svg>\n',
        encoding="utf-8",
    )
    print(f"wrote {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
