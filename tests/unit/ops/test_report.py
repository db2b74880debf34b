"""The report as people see it: what happened in one order, what stood for how long, and their picture."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from ops.report.markdown import LISTED, page
from ops.report.timeline import bars, draw, moments
from shared.core.switches import Level
from shared.core.validation import judged, overall
from tests.unit.usecases.aftermath import ADA, Aftermath


@pytest.mark.req("C12")
def test_the_timeline_tells_changes_and_not_every_minute() -> None:
    """Severity and cap where they moved, switches with who and why, notes, and each step of a redrive."""
    after = Aftermath()
    for _ in range(5):
        after.decide("normal", 2, 0)
    told = [(one.kind, one.what, one.by) for one in moments(after.facts())]
    assert [what for kind, what, _ in told if kind == "severity"] == [
        "severe, oldest job 700 s",
        "normal, oldest job 0 s",
    ]
    assert [what for kind, what, _ in told if kind == "cap"] == ["4 (calm)", "2 (calm)"]
    assert ("switch", "lane/support route_only: replies are wrong", ADA) in told
    assert [what.split(":")[0] for kind, what, _ in told if kind == "incident"] == ["opened", "noted", "closed"]
    assert {what.split()[-1] for kind, what, _ in told if kind == "redrive"} == {
        *("planned", "approved", "started", "finished"),
    }


def test_a_switch_stands_until_it_is_changed_or_to_the_end() -> None:
    """A rung ends where the next one begins; one that is still closed reaches the end."""
    after = Aftermath()
    for level in (Level.ROUTE_ONLY, Level.HALT):
        after.switch(level, "x")
        after.clock.advance(60)
    facts = after.facts()
    rungs = [(bar.label, bar.end - bar.start) for bar in bars(facts) if bar.row == "lane/support"]
    assert rungs[1:] == [("route_only", timedelta(seconds=60)), ("halt", timedelta(seconds=60))]
    assert bars(facts)[-2].end == facts.until


def test_the_same_facts_draw_the_same_picture(tmp_path: Path) -> None:
    """Every row is named in it; nothing in it depends on when it was drawn."""
    facts = Aftermath().facts()
    for name in ("a.svg", "b.svg"):
        draw(facts, tmp_path / name)
    picture = (tmp_path / "a.svg").read_text()
    assert picture == (tmp_path / "b.svg").read_text()
    for word in ("severe", "cap", "ceiling", "incident", "lane/support", "redrive plan-event-replayed"):
        assert word in picture


def test_long_lists_are_cut_on_the_page_alone() -> None:
    """Sixty violations: fifty are shown, and where the others are is said."""
    after = Aftermath()
    for number in range(LISTED + 10):
        after.answer(f"again-{number}", replay_count=1)
    facts = after.facts()
    checks = judged(facts)
    written = page(facts, checks, overall(checks), moments(facts), stage="dev", by="arn:me")
    assert written.count("**replayed_without_plan**") == LISTED
    assert "… and 10 more, all in report.json" in written
    assert written.startswith("# Validation of lane support: fail\n")
