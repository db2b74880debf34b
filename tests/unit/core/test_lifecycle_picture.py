"""The picture in the docs is drawn from the table, so it cannot say anything else."""

from __future__ import annotations

import pytest

from ops import lifecycle_picture
from shared.core.job import Status
from shared.core.lifecycle import MOVES


@pytest.mark.req("R1")
def test_the_page_is_what_the_table_says() -> None:
    """docs/lifecycle.md equals a fresh drawing; `python -m ops.lifecycle_picture` makes it so again."""
    written = lifecycle_picture.PAGE.read_text(encoding="utf-8")
    assert written == lifecycle_picture.picture(), "run: python -m ops.lifecycle_picture"
    assert lifecycle_picture.main(["--check"]) == 0


def test_every_move_and_state_is_drawn() -> None:
    """Nothing is left out: each move has its row and its word on an arrow."""
    page = lifecycle_picture.picture()
    for rule in MOVES:
        assert f"| `{rule.was}` | `{rule.to}` | `{rule.reason}` | {rule.when} |" in page
        (arrow,) = [line for line in page.splitlines() if line.startswith(f"    {rule.was} --> {rule.to}: ")]
        assert rule.reason in arrow.partition(": ")[2].split(", ")
    assert all(f"| `{status}` |" in page for status in Status)


def test_a_changed_table_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one move less the page no longer fits, and the check says so."""
    monkeypatch.setattr(lifecycle_picture, "MOVES", MOVES[1:])
    assert lifecycle_picture.main(["--check"]) == 1
