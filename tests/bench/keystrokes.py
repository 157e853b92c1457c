"""Book-keeping while somebody types: our documents beside pygls' own, on the same edits.

    python tests/bench/keystrokes.py [--lines 20000] [--edits 300] [--json]

Each edit is one typed character at a random place, followed by the position of the caret as an offset,
which is what a completion request needs. Both documents get the same edits in the same order; the
figure that counts is the ratio of their medians in this one run.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time

from lsprotocol import types
from pygls.workspace import PositionCodec, TextDocument

from frostline.core.text import Change, Document, Encoding, Position


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    text = "".join(f"    value_{n} = compute({n})  # é😀\n" for n in range(args.lines))
    chance = random.Random(0)
    places = [(chance.randrange(args.lines), chance.randrange(20)) for _ in range(args.edits)]
    ours, theirs = measure_ours(text, places), measure_theirs(text, places)
    result = {
        "lines": args.lines,
        "edits": args.edits,
        "change_us": {
            "frostline": ours[0],
            "pygls": theirs[0],
            "ratio": round(theirs[0] / ours[0], 1),
        },
        "position_us": {
            "frostline": ours[1],
            "pygls": theirs[1],
            "ratio": round(theirs[1] / ours[1], 1),
        },
    }
    if args.json:
        print(json.dumps(result))
        return
    print(f"{args.lines} lines, {args.edits} edits, median microseconds")
    for name in ("change_us", "position_us"):
        row = result[name]
        print(
            f"  {name:<12} frostline {row['frostline']:>8}  pygls {row['pygls']:>8}  x{row['ratio']}"
        )


def measure_ours(text: str, places: list[tuple[int, int]]) -> tuple[float, float]:
    document = Document.of("file:///a.py", 0, "python", text)
    changes, positions = [], []
    for version, (line, character) in enumerate(places, 1):
        at = Position(line, character)
        began = time.perf_counter()
        document = document.changed(version, [Change((at, at), "x")], Encoding.UTF16)
        changed = time.perf_counter()
        document.offset(Position(line, character + 1), Encoding.UTF16)
        positions.append(time.perf_counter() - changed)
        changes.append(changed - began)
    return _micro(changes), _micro(positions)


def measure_theirs(text: str, places: list[tuple[int, int]]) -> tuple[float, float]:
    document = TextDocument(
        "file:///a.py",
        text,
        version=0,
        sync_kind=types.TextDocumentSyncKind.Incremental,
        position_codec=PositionCodec(types.PositionEncodingKind.Utf16),
    )
    changes, positions = [], []
    for line, character in places:
        at = types.Position(line, character)
        change = types.TextDocumentContentChangePartial(types.Range(at, at), "x")
        began = time.perf_counter()
        document.apply_change(change)
        changed = time.perf_counter()
        document.offset_at_position(types.Position(line, character + 1))
        positions.append(time.perf_counter() - changed)
        changes.append(changed - began)
    return _micro(changes), _micro(positions)


def _micro(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1e6, 1)


if __name__ == "__main__":
    main()
