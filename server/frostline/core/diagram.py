"""The state table as a picture: `python -m frostline.core.diagram` draws it into ARCHITECTURE.md.

Mermaid, which code hosts render; one arrow for each pair of states, with the events that lead there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from frostline.core.events import State
from frostline.core.session import MOVES

START, END = "<!-- states -->\n", "<!-- /states -->"


def drawn() -> str:
    """Return the table as a Mermaid state diagram; moves that stay where they are, are left out."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, event), move in MOVES.items():
        for to in sorted(move.to, key=list(State).index):
            if to is not state:
                arrows.setdefault((state, to), []).append(event.__name__)
    lines = ["```mermaid", "stateDiagram-v2", "    [*] --> drafting: Begun"]
    for (state, to), events in arrows.items():
        lines.append(f"    {state.value} --> {to.value}: {', '.join(events)}")
    lines += [f"    {state.value} --> [*]" for state in State if state.ended]
    return "\n".join([*lines, "```", ""])


def into(page: str) -> str:
    """Return a page with the diagram between its marks.

    Raises:
        ValueError: the page has no marks.
    """
    head, mark, rest = page.partition(START)
    _, end, tail = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"the page has no {START.strip()} … {END}")
    return head + mark + drawn() + end + tail


def main() -> None:
    """Draw into the page that is named, or the one of this checkout."""
    default = Path(__file__).parents[2] / "ARCHITECTURE.md"
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    path.write_text(into(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
