"""A card keeps one table of figures, the newest, and everything else it says."""

from __future__ import annotations

from pathlib import Path

from frostline.train import card
from frostline.train.folder import Position
from frostline.train.run import Report
from frostline.train.show import described


def test_figures_take_the_place_of_the_old_ones(tmp_path: Path):
    (tmp_path / "CARD.md").write_text("# m\n\n## Figures\n\nNone yet.\n\n## Weak spots\n\nMany.\n")
    for table in ("| old |", "| new |"):
        card.write_figures(tmp_path, table, "frostline train --evaluate m")
    text = (tmp_path / "CARD.md").read_text()
    assert "| new |" in text
    assert "| old |" not in text
    assert "None yet" not in text
    assert text.startswith("# m\n")
    assert text.endswith("## Weak spots\n\nMany.\n")


def test_a_folder_without_a_card_gets_one(tmp_path: Path):
    card.write_figures(tmp_path, "| a |", "command")
    assert (
        (tmp_path / "CARD.md").read_text().endswith("## Figures\n\nMade by `command`.\n\n| a |\n")
    )


def test_a_report_is_a_line_with_loss_speed_and_time_left():
    report = Report(Position(12, 3_400_000), 0.5, 1.0, {"left": 3.2, "holes": 4.5}, 2100.4, 75.0)
    line = "step 12  3.40 M tokens  holes 4.500  left 3.200  2,100 tok/s  1:15 left"
    assert described(report) == line
