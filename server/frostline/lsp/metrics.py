"""The numbers that go with a draft to the editor: what a reader saw, and what it cost the worker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from frostline.core.meter import Meter
from frostline.core.session import Session
from frostline.wire import messages as wire


def told(session: Session, meter: Meter, figures: Sequence[wire.Figures]) -> dict[str, Any]:
    """Return the numbers of a session whose run has ended (DESIGN, section 7).

    Args:
        figures: what the worker says of each run of it, in order.
    """
    numbers = meter.numbers(meter.last or time.monotonic(), session.drafts)
    forwards = sum(one.forwards for one in figures)
    tokens = sum(one.tokens for one in figures)
    regrets = [one.regret for one in figures if one.regret is not None]
    leads = [one.lead for one in figures if one.lead is not None]
    return {
        "time_to_first_useful_block_ms": _rounded(numbers.time_to_first_useful_block_ms),
        "time_to_complete_ms": _rounded(numbers.time_to_complete_ms),
        "revision_churn": round(numbers.revision_churn, 4),
        "provisional_updates": numbers.provisional_updates,
        "steps": sum(one.steps for one in figures),
        "forwards": forwards,
        "tokens": tokens,
        "forwards_per_token": round(forwards / tokens, 3) if tokens else None,
        "regret": round(max(regrets), 4) if regrets else None,
        "lead": round(sum(leads) / len(leads), 2) if leads else None,
        "verified": bool(figures) and figures[-1].verified,
        "repairs": session.repairs,
        "cpu_s": round(sum(one.cpu_s for one in figures), 3),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)
