"""`frostline bench`: what denoising costs here, and what comes of it, beside the field's plain loop."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from frostline.cli import settings_from
from frostline.cli.doctor import missing_for_models
from frostline.errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from frostline.evals.bench import Report


def run(args: argparse.Namespace) -> int:
    """Run `frostline bench`."""
    if missing := missing_for_models():
        raise UsageError(f"no model can be run here yet: {missing}")
    import torch
    from rich.console import Console

    from frostline.evals import bench
    from frostline.models import registry

    settings = settings_from(args)
    settings = replace(settings, threads=settings.threads or 1)
    torch.set_num_threads(settings.threads)
    plan = bench.QUICK if args.quick else bench.Plan()
    plan = replace(
        plan,
        holes=args.holes or plan.holes,
        folder=args.folder,
        reference=args.reference,
        seed=args.seed,
    )
    console = Console(stderr=True)
    with console.status("loading") as status:
        backend = registry.load(settings.model, settings.device)
        report = bench.measure(backend, settings, plan, status.update)
    if not args.json:
        _show(report)
    print(json.dumps(_rounded(report.plain())))
    return 0


def _show(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"{report.model} on {report.device}, {report.threads} thread(s). "
        f"{'Processor' if report.device == 'cpu' else 'Wall'} time."
    )
    table = Table("window", "hole", "whole step, ms", "cached step, ms", "ratio")
    for one in report.looks:
        table.add_row(
            str(one.window),
            str(one.hole),
            f"{one.whole_ms:.1f}",
            f"{one.cached_ms:.1f}",
            f"{one.speedup:.1f}",
        )
    if report.looks:
        console.print(table)
    table = Table("windows in a pass", "one by one, ms", "packed, ms", "share")
    for batch in report.batches:
        share = batch.packed_ms / batch.alone_ms
        table.add_row(
            str(batch.together), f"{batch.alone_ms:.1f}", f"{batch.packed_ms:.1f}", f"{share:.0%}"
        )
    if report.batches:
        console.print(table)
    _show_rows(report, console)
    if report.together is not None:
        console.print(
            f"{report.together.sessions} requests at once take {report.together.share:.0%} of their time "
            f"one by one; a new one waits for {report.together.waited} pass(es)."
        )
    if report.same_as_whole is not None:
        console.print(
            f"{report.same_as_whole:.1%} of the texts are those of whole steps"
            + (
                "."
                if report.doubted is None
                else f"; of the others the last look doubts {report.doubted:.0%}."
            )
        )
    console.print(
        f"A cancel is through after {report.cancel_ms:.0f} ms. Memory {report.memory / 2**20:.0f} MiB, "
        f"of which kept keys and values {report.kept / 2**20:.0f} MiB."
    )


def _show_rows(report: Report, console: Console) -> None:
    from rich.table import Table

    names = ("exact", "right", "ms", "passes", "a token", "tok/s")
    console.print(
        f"{report.rows[0].holes} holes. exact: just the text that stood there; right: tokens that are, "
        "each where it stands;\nlead: steps from a stable mark to the end; agreed: texts that the last "
        "look would write again."
    )
    table = Table("texts", *names, "regret", "lead", "agreed", padding=(0, 0))
    for row in report.rows:
        table.add_row(
            row.name,
            f"{row.exact:.1%}",
            f"{row.accuracy:.1%}",
            f"{row.ms:.0f}",
            f"{row.forwards:.1f}",
            f"{row.forwards_per_token:.2f}",
            f"{row.tokens_per_second:.0f}",
            f"{row.regret:.1%}",
            f"{row.lead:.1f}",
            f"{row.verified:.0%}",
        )
    console.print(table)


def _rounded(value: object) -> object:
    match value:
        case float():
            return round(value, 4)
        case dict():
            return {key: _rounded(one) for key, one in value.items()}
        case list():
            return [_rounded(one) for one in value]
    return value
