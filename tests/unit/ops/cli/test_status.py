"""`penstock status` and `penstock runs`: what waits, runs and failed, and what the schedules did."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ops.cli import status
from ops.cli.stage import Stage
from shared.adapters.aws.clock import SystemClock
from shared.contract import names
from shared.core.job import Status
from shared.core.message import dead_letter_of, message_of
from shared.core.schedule import RunRecord
from shared.core.switches import Level
from tests.builders import a_job, a_lane, a_switch
from tests.unit.ops.cli.conftest import LANES, deploy_lanes


def lane(document: dict[str, Any], name: str) -> dict[str, Any]:
    """One lane's part of a status."""
    (found,) = [one for one in document["lanes"] if one["lane"] == name]
    return dict(found)


@pytest.fixture
def busy(deployed: Stage) -> Stage:
    """A stage at work: two messages, one waiting job due for hours, one for tomorrow, one dead letter."""
    now = deployed.clock.now()
    past, later = now - timedelta(hours=3), now + timedelta(days=1)
    for number, due in enumerate((None, None, past, later)):
        job = a_job(key=f"k{number}", created_at=past, updated_at=past, not_before_at=due, due=due)
        deployed.jobs.put(job)
        if due is None:
            deployed.queues.send([message_of(job)])
    dead = a_job(key="dead", status=Status.FAILED)
    deployed.jobs.put(dead)
    deployed.dead_letters.send([dead_letter_of(dead)])
    return deployed


def test_status_counts_cheaply(penstock: Any, busy: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queue attributes and the waiting index say it all; the jobs table is not scanned."""

    def scanned(*_: Any, **__: Any) -> None:
        raise AssertionError("scanned")

    monkeypatch.setattr("shared.adapters.aws.jobs.DynamoDbJobStore.scan", scanned)
    support = lane(penstock("status", "--json").document, "support")
    assert (support["due"], support["later"], support["at_least"]) == (1, 1, False)
    assert (support["queue"]["visible"], support["dead_letters"]) == (2, 1)
    assert (support["cap"], support["ceiling"]) == (2, 10)
    assert support["oldest_due_at"] is not None
    text = penstock("status").out
    assert "3 h" in text
    assert "2 of 10" in text
    assert "dispatcher never" in text


def test_status_of_one_lane(penstock: Any, busy: Stage) -> None:
    """A lane given: that lane alone; an unknown one is refused."""
    assert [one["lane"] for one in penstock("status", "mail", "--json").document["lanes"]] == ["mail"]
    assert "known lanes" in penstock("status", "nope", code=1).err


def test_status_counts_everything_when_asked(penstock: Any, busy: Stage) -> None:
    """--count reads every job: counts by status, also of lanes nobody deployed."""
    busy.jobs.put(a_job(lane="gone", task="x", key="1"))
    document = penstock("status", "--count", "--json").document
    assert lane(document, "support")["counts"] == {"queued": 4, "failed": 1}
    assert document["unknown"] == {"gone": {"queued": 1}}
    assert "gone (not deployed)" in penstock("status", "--count").out


def test_status_says_when_there_are_more(penstock: Any, busy: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog beyond the bound is shown as so many and a plus, never as all there is."""
    monkeypatch.setattr(status, "WAITING_LIMIT", 1)
    assert lane(penstock("status", "--json").document, "support")["at_least"]
    assert "1+" in penstock("status").out


def test_status_shows_what_is_closed(penstock: Any, deployed: Stage) -> None:
    """Every switch that is not normal, with who and why, and its mark on the lanes it touches."""
    deployed.control.set_switch(a_switch("lane/mail", Level.DRAIN, why="vendor is down"))
    deployed.control.set_switch(a_switch("tenant/support/acme", Level.HALT))
    text = penstock("status").out
    for part in ("drain", "vendor is down", "halt (tenant/support/acme)"):
        assert part in text
    closed = penstock("status", "--json").document["switches"]
    assert {one["scope"]: one["level"] for one in closed} == {"lane/mail": "drain", "tenant/support/acme": "halt"}


def test_status_of_a_fair_lane(penstock: Any, deployed: Stage) -> None:
    """A lane whose waiting jobs stand by tenant cannot be counted cheaply, and says so."""
    deploy_lanes((*LANES[:1], a_lane(name="mail", admission="fair")))
    assert lane(penstock("status", "--json").document, "mail")["due"] is None
    assert "?" in penstock("status").out


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["people", "programs"])
def test_watch_looks_again_until_interrupted(
    penstock: Any, busy: Stage, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    """--watch looks every two seconds; Ctrl-C is its ordinary end."""
    waits: list[float] = []

    def wait(_: SystemClock, seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(SystemClock, "sleep", wait)
    said = penstock("status", "--watch", *form)
    assert waits == [2.0, 2.0]
    if form:
        assert [json.loads(line)["stage"] for line in said.out.splitlines()] == ["dev", "dev"]
    else:
        assert "support" in said.out


# --------------------------------------------------------------------------------------------------- runs
@pytest.fixture
def ran(deployed: Stage) -> Stage:
    """Two closed runs, one open for long, one open just now."""
    now = deployed.clock.now()
    for minutes, schedule, counts in (
        (1, "dispatcher", {"support.sent": 3, "support.held": 0, "mail.sent": 7}),
        (2, "triage", {"support.depth": 1}),
    ):
        start = now - timedelta(minutes=minutes)
        run = RunRecord(schedule=schedule, slot=f"slot-{minutes}", run_id=f"r{minutes}", started_at=start)
        deployed.ledger.open_run(run)
        closed = RunRecord(
            schedule=schedule,
            slot=run.slot,
            run_id=run.run_id,
            started_at=start,
            finished_at=start + timedelta(seconds=1.5),
            counts=counts,
        )
        deployed.ledger.close_run(closed)
    for schedule, age in (("auditor", timedelta(hours=2)), ("sweeper", timedelta(seconds=3))):
        deployed.ledger.open_run(RunRecord(schedule=schedule, slot="s", run_id="r", started_at=now - age))
    return deployed


def test_runs_of_everything_newest_first(penstock: Any, ran: Stage) -> None:
    """Without a name: every schedule's runs, newest first, each with what it counted."""
    lines = penstock("runs", "--json").lines
    assert [one["schedule"] for one in lines] == ["sweeper", "dispatcher", "triage", "auditor"]
    text = penstock("runs").out
    for part in ("1.5 s", "running", "never ended", "mail.sent 7", "support.sent 3"):
        assert part in text
    assert "support.held" not in text


def test_runs_of_a_schedule_and_of_a_lane(penstock: Any, ran: Stage) -> None:
    """A schedule's own runs; a lane's counts of all schedules, under their own names."""
    (line,) = penstock("runs", "triage", "--json").lines
    assert line["counts"] == {"support.depth": 1}
    counts = {one["schedule"]: one["counts"] for one in penstock("runs", "support", "--json").lines}
    assert counts["dispatcher"] == {"sent": 3, "held": 0}
    assert len(penstock("runs", "-n", "1", "--json").lines) == 1


def test_runs_of_nothing(penstock: Any, deployed: Stage) -> None:
    """No run yet says so; a name that is neither lane nor schedule is refused with those that are."""
    assert "No run is recorded" in penstock("runs").out
    known = ", ".join((*names.SCHEDULED, "mail", "support"))
    assert known in penstock("runs", "nope", code=1).err
