"""The border between the protocol's types and ours, in both directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from lsprotocol import types

from frostline.core import barrier, events, provisional, session
from frostline.core.text import Change, Document, Encoding, Position, Span, TextEdit
from frostline.lsp import extension as ext
from frostline.wire import messages as wire


def position_in(position: Any) -> Position:
    """Return our position for one of the protocol's, or of the extension's."""
    return Position(position.line, position.character)


def span_in(document: Document, range: Any, encoding: Encoding) -> Span:
    """Return the span of a range; ends that are the wrong way round are turned."""
    start = document.offset(position_in(range.start), encoding)
    end = document.offset(position_in(range.end), encoding)
    return Span(min(start, end), max(start, end))


def changes_in(changes: Sequence[Any]) -> list[Change]:
    """Return our changes for those of a didChange."""
    result = []
    for change in changes:
        range = getattr(change, "range", None)
        place = None if range is None else (position_in(range.start), position_in(range.end))
        result.append(Change(place, change.text))
    return result


def range_out(document: Document, span: Span, encoding: Encoding) -> types.Range:
    """Return the protocol's range of a span."""
    start = document.position(span.start, encoding)
    end = document.position(span.end, encoding)
    return types.Range(
        types.Position(start.line, start.character), types.Position(end.line, end.character)
    )


def ext_range(document: Document, span: Span, encoding: Encoding) -> ext.Range:
    """Return the extension's range of a span."""
    start = document.position(span.start, encoding)
    end = document.position(span.end, encoding)
    return ext.Range(
        ext.Position(start.line, start.character), ext.Position(end.line, end.character)
    )


def workspace_edit(
    document: Document, edits: Sequence[TextEdit], encoding: Encoding
) -> types.WorkspaceEdit:
    """Return the versioned edit of one document."""
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version),
                [
                    types.TextEdit(range_out(document, edit.span, encoding), edit.text)
                    for edit in edits
                ],
            )
        ]
    )


def refused(refused: barrier.Refused) -> ext.Told:
    """Return a refusal as the extension says it."""
    return told(refused.refusal, refused.message)


def told(refusal: barrier.Refusal, message: str = "") -> ext.Told:
    """Return a refusal, with its own sentence or another, as the extension says it."""
    return ext.Told(code=refusal.code, message=message or refusal.message)


def begun_out(begun: session.Session, encoding: Encoding) -> ext.Begun:
    """Return a session that was begun, with its holes as they are denoised."""
    ranges = (ext_range(begun.document, hole.span, encoding) for hole in begun.regions.holes)
    return ext.Begun(session=begun.id, holes=tuple(ext.HoleBegun(range=one) for one in ranges))


def pieces_out(draft: provisional.Draft) -> tuple[ext.Piece, ...]:
    """Return a draft's pieces as the extension says them."""
    return tuple(
        ext.Piece(text=piece.text, state=piece.state.value, confidence=round(piece.confidence, 3))
        for piece in draft.pieces
    )


def draft_in(gap: wire.GapDraft) -> provisional.Draft:
    """Return a gap's draft as the worker sent it."""
    return provisional.Draft(
        tuple(
            provisional.Piece(piece.text, provisional.PieceState(piece.state), piece.confidence)
            for piece in gap.pieces
        )
    )


def final_in(gap: wire.GapText) -> provisional.Draft:
    """Return a gap's final text as a draft that is stable all over."""
    piece = provisional.Piece(gap.text, provisional.PieceState.STABLE, gap.confidence)
    return provisional.Draft((piece,) if gap.text else (), gap.complete, gap.confidence)


def wish_in(begin: ext.Begin) -> events.Wish:
    """Return the wish of a begin."""
    return events.Wish(
        intent=events.Intent(begin.intent),
        instruction=begin.instruction,
        strength=min(max(begin.strength, 0.0), 1.0),
        length=begin.length,
        steps=begin.steps,
        seed=begin.seed,
        converged=begin.commit == "converged",
    )


def status_out(status: wire.Status) -> ext.StatusTold:
    """Return the worker's status as the extension says it."""
    return ext.StatusTold(
        worker=status.state,
        model=status.model,
        device=status.device,
        progress=status.progress,
        memory=status.memory,
        cannot=status.cannot,
        message=status.message,
    )


def plain(message: msgspec.Struct) -> Any:
    """Return a message of the extension as JSON values."""
    return msgspec.to_builtins(message)


def json_values(value: Any) -> Any:
    """Return JSON values for what pygls gives as nested named tuples."""
    if hasattr(value, "_asdict"):
        return {name: json_values(one) for name, one in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [json_values(one) for one in value]
    return value


def json_object(value: Any) -> dict[str, Any]:
    """Return a JSON object as a dict; an empty one for anything else."""
    values = json_values(value)
    return values if isinstance(values, dict) else {}
