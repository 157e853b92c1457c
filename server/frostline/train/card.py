"""CARD.md of a trained model: what it learnt from, how long, and how well it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frostline.train.data import Facts

FIGURES = "## Figures"


@dataclass(frozen=True, slots=True)
class Training:
    """What a card says about the run."""

    origin: str
    parameters: int
    tokens: int
    hours: float
    machine: str
    losses: dict[str, float]
    seed: int


def write(folder: Path, config: dict[str, Any], facts: Facts, training: Training) -> None:
    """Write the card, its figures still to come."""
    licences = sorted(
        {f"{one['name']} {one['version']} ({one['licence']})" for one in facts.releases}
    )
    losses = ", ".join(f"{kind} {nats:.2f}" for kind, nats in sorted(training.losses.items()))
    (folder / "CARD.md").write_text(
        f"""# frostline-embedded

{training.parameters / 1e6:.1f} M parameters (Qwen3 layout: {config["num_hidden_layers"]} layers, width {config["hidden_size"]}, {config["num_attention_heads"]} heads of {config["head_dim"]}, SwiGLU {config["intermediate_size"]}), fp16, Python only, made by `frostline train`.
One set of weights, two ways to run it, both with shift 1 (token i is read from the output at i - 1): it denoises with all-to-all
attention (`<|mask|>` in open slots, `<|pad|>` behind a text that is shorter than its room), and runs left to right with causal attention
(plain, or `<|prefix|>` before `<|suffix|>` after `<|middle|>` text `<|end|>`). Tokenizer: byte-level BPE, lossless, a line end with its
indentation is one piece.

## Training

{training.origin} {training.tokens / 1e6:.2f} M tokens in {training.hours:.2f} h on {training.machine}, seed {training.seed}.
Muon for matrices, AdamW for the rest; warm-up, stable, linear to zero. Loss at the end (nats a token, on training text): {losses}.

## Data

{facts.tokens / 1e6:.1f} M tokens of {facts.files} files ({facts.characters / 1e6:.0f} M characters): Python's standard library (PSF-2.0){" and" if licences else "."}
{", ".join(licences)}
Left out: {", ".join(f"{reason} ({count})" for reason, count in sorted(facts.refused.items()))}.

{FIGURES}

None yet: `frostline train --evaluate DIR --write-card`.
""",
        "utf-8",
    )


def write_figures(folder: Path, table: str, command: str) -> None:
    """Put a table into the card of `folder`, in place of the one that is there."""
    path = folder / "CARD.md"
    text = path.read_text("utf-8") if path.is_file() else f"# {folder.name}\n\n{FIGURES}\n"
    head, _, behind = text.partition(FIGURES)
    # Other sections behind the figures stay.
    _, mark, rest = behind.partition("\n## ")
    path.write_text(f"{head}{FIGURES}\n\nMade by `{command}`.\n\n{table}\n{mark}{rest}", "utf-8")


def shown(folders: Sequence[Path]) -> str:
    """Return the folders as a command line names them, without what leads there."""
    return " ".join(folder.name for folder in folders)
