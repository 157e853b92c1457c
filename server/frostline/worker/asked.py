"""An instruction as a turn of a talk in front of a canvas, with the file quoted in it.

The turn says what to do and quotes the window with its holes marked; the model's own turn is begun with
the lines before the first hole, so what it writes next are the slots. Marks are tokens, never text: a
file that spells them cannot end a turn.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from frostline.errors import WorkerRefused
from frostline.models.spec import Chat, ModelSpec
from frostline.models.tokens import Tokens
from frostline.worker.canvas import Canvas

OPENS, CLOSES = "<<<", ">>>"
TASK = f"Change only what stands between {OPENS} and {CLOSES} in this file, or write what is missing there."
ANSWER = "Answer with the lines around it as they will be, without the marks."
FENCE = "```\n"
# Tokens of the text before the first hole that the answer is begun with, and the least of a quotation
# that is worth its room.
BEGUN = 128
LEAST_QUOTED = 32


def put_before(canvas: Canvas, instruction: str, spec: ModelSpec, tokens: Tokens) -> Canvas:
    """Return the canvas behind a turn that asks for `instruction`, for a model that has a `chat`.

    Of what stands before the first hole its last lines stay. What is quoted is cut at both ends where
    all would be more than the model can see.

    Raises:
        WorkerRefused: the instruction alone leaves no room.
    """
    chat = spec.chat
    assert chat is not None
    ids, first = canvas.ids.tolist(), int(canvas.slots[0])
    head = 1 if first and ids[0] == spec.begin_of_file else 0
    begun = _last_lines(ids[head:first][-min(BEGUN, spec.max_context // 8) :], first - head, tokens)
    ask = tokens.encode(f"{instruction.strip()}\n\n{TASK} {ANSWER}\n\n{FENCE}")
    end = tokens.encode(f"\n{FENCE.rstrip()}")
    turn = spoken(chat, "user", tokens), answering(chat, tokens)
    marks = len(turn[0]) + len(turn[1]) + len(ask) + len(end) + 2
    room = spec.max_context - marks - len(begun) - max(spec.block, len(ids) - first)
    if room < 0:
        raise WorkerRefused(
            "too-long",
            f"this instruction takes {len(ask)} tokens and {spec.name} sees {spec.max_context} at once; "
            "say it in fewer words",
        )
    before = [
        *([] if spec.begin_of_file is None else [spec.begin_of_file]),
        *turn[0],
        *ask,
        *_quoted(canvas, head, room, tokens),
        *end,
        *turn[1],
        *tokens.encode(FENCE),
        *begun,
    ]
    moved = torch.cat([torch.tensor(before, dtype=torch.long), canvas.ids[first:]])
    return replace(canvas, ids=moved, slots=canvas.slots - first + len(before))


def spoken(chat: Chat, who: str, tokens: Tokens) -> list[int]:
    """Return the tokens that begin somebody's turn."""
    return [chat.turn, *tokens.encode(f"{who}\n")]


def answering(chat: Chat, tokens: Tokens) -> list[int]:
    """Return the tokens that end the user's turn and begin the model's, which has nothing to think of."""
    line = tokens.encode("\n")
    begun = [chat.end, *line, *spoken(chat, "model", tokens)]
    if chat.thought is None:
        return begun
    return [*begun, chat.thought[0], *tokens.encode("thought\n"), chat.thought[1]]


def _quoted(canvas: Canvas, head: int, room: int, tokens: Tokens) -> list[int]:
    """Return the window with the old text of each hole between marks, in `room` tokens."""
    opens, closes = tokens.encode(OPENS), tokens.encode(CLOSES)
    ids, slots = canvas.ids.tolist(), canvas.slots.tolist()
    quoted, at, first = list[int](), head, 0
    for gap in canvas.gaps:
        where = slots[gap.start]
        quoted += ids[at:where]
        if gap is canvas.gaps[0]:
            first = len(quoted)
        quoted += [*opens, *gap.old, *closes]
        at = where + gap.count
    last = len(quoted)
    quoted += ids[at:]
    if len(quoted) <= room:
        return quoted
    if room < LEAST_QUOTED + last - first:
        # Only what is asked for, or nothing: the lines around it stand in the answer.
        return quoted[first:last][:room]
    spare = room - (last - first)
    behind = min(len(quoted) - last, max(spare // 3, spare - first))
    return quoted[first - (spare - behind) : last + behind]


def _last_lines(tail: list[int], of: int, tokens: Tokens) -> list[int]:
    """Return the tail of a text of so many tokens from where a line begins in it."""
    if len(tail) < of:
        for place, one in enumerate(tail):
            if tokens.spell([one]).endswith(b"\n"):
                return tail[place + 1 :]
    return tail
