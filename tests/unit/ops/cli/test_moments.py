"""Since when: every command takes a time or a length of time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from typer.main import get_command

from ops.cli.main import app
from ops.cli.moments import back_to
from ops.cli.show import soon
from ops.cli.stage import Stage
from shared.core.errors import BadInput
from shared.core.job import Status
from tests.builders import NOW, a_job
from tests.unit.ops.cli.test_command import every_command

THREE = NOW - timedelta(hours=3)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("3h", THREE),
        (" 180 m ", THREE),
        ("10800s", THREE),
        ("2025-12-31T21:00Z", THREE),
        ("2025-12-31T22:00+01:00", THREE),
        ("1d", NOW - timedelta(days=1)),
    ],
)
def test_a_time_or_how_long_ago(text: str, at: Any) -> None:
    """Both say the same moment."""
    assert back_to("since", text, NOW) == at


@pytest.mark.parametrize("text", ["yesterday", "3", "h", "-3h", "2025-12-31T21:00", "", "3h ago"])
def test_anything_else_says_both_forms(text: str) -> None:
    """One sentence with an example of each."""
    with pytest.raises(BadInput, match="2026-05-01T21:00Z, 3h") as refused:
        back_to("since", text, NOW)
    assert refused.value.field == "since"


def test_every_since_says_that_it_takes_both() -> None:
    """In its help; a new one cannot forget it."""
    found = [
        (words, parameter.help)
        for words, one in every_command(get_command(app))
        for parameter in one.params
        if "--since" in parameter.opts
    ]
    assert len(found) >= 4
    assert [words for words, text in found if "or how long ago: 2026-05-01T21:00Z, 3h" not in (text or "")] == []


def test_failed_jobs_of_the_last_hours(penstock: Any, deployed: Stage) -> None:
    """A span is counted back from now."""
    now = deployed.clock.now()
    for hours in (1, 5):
        at = now - timedelta(hours=hours)
        deployed.jobs.put(a_job(key=f"{hours}", status=Status.FAILED, created_at=at, updated_at=at))
    for since, count in (("3h", 1), ("1d", 2), ("30m", 0)):
        cohorts = penstock("dlq", "list", "support", "--since", since, "--json").document["cohorts"]
        assert sum(one["count"] for one in cohorts) == count
    refused = penstock("dlq", "list", "support", "--since", "lately", code=1)
    assert "how long ago" in refused.err


def test_what_was_expected_just_now_is_still_to_come() -> None:
    """A forecast is read a moment after it was made."""
    assert soon(NOW - timedelta(seconds=0.1), NOW) == "at any moment"
    assert soon(NOW + timedelta(seconds=0.5), NOW) == "at any moment"
    assert soon(NOW + timedelta(seconds=90), NOW) == "in 90 s"


def test_a_cap_below_0_is_refused_by_its_meaning(penstock: Any, deployed: Stage) -> None:
    """It is no option."""
    for before in ((), ("--json",)):
        answer = penstock("capacity", "pin", "support", "-1", "--for", "2h", "--why", "x", *before, code=1)
        assert "must be 0 (stopped) or 2 to 10" in " ".join((answer.out + answer.err).split())
    assert "No such option" in penstock("capacity", "pin", "support", "4", "--fro", "2h", code=2).err
