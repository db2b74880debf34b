"""`penstock audit`: counts that add up, findings in sentences, repairs with a name to them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.core.job import Status
from shared.core.message import dead_letter_of
from tests.builders import a_job


@pytest.fixture
def stranded(deployed: Stage) -> Stage:
    """One job that lost its message, one that is fine."""
    long_ago = deployed.clock.now() - timedelta(hours=3)
    deployed.jobs.put(a_job(key="lost", created_at=long_ago, updated_at=long_ago))
    now = deployed.clock.now()
    deployed.jobs.put(a_job(key="fine", created_at=now, updated_at=now))
    return deployed


def test_a_stage_in_order(penstock: Any, deployed: Stage) -> None:
    """Nothing found: conserved, exit code 0."""
    deployed.jobs.put(a_job(status=Status.COMPLETED))
    document = penstock("audit", "--json").document
    assert (document["jobs"], document["by_status"], document["conserved"]) == (1, {"completed": 1}, True)
    assert "conserved: yes" in penstock("audit", "--segments", "3").out


def test_what_is_found_is_said(penstock: Any, stranded: Stage) -> None:
    """A finding names the job, what is wrong and what a repair would do; the end is 1."""
    said = penstock("audit", code=1)
    for part in ("untouched for an hour", "its message is sent again", "conserved: no", "--repair"):
        assert part in said.out
    (finding,) = penstock("audit", "--json", code=1).document["findings"]
    assert (finding["fault"], finding["repaired"]) == ("no_message", False)
    assert stranded.queues.depth("support").visible == 0
    assert stranded.history.of("audit", limit=5) == []


def test_repair_mends_and_is_kept(penstock: Any, stranded: Stage) -> None:
    """With --repair the message is sent, the end is 0, and the history names who did it."""
    assert "conserved: again" in penstock("audit", "--repair").out
    assert stranded.queues.depth("support").visible == 1
    (event,) = stranded.history.of("audit", limit=5)
    assert (event.kind, event.detail["repaired"]) == ("repair", 1)
    assert event.by.endswith("user/moto")


def test_patience_is_an_option(penstock: Any, stranded: Stage) -> None:
    """--untouched-s says how long a job may stand before it is suspect."""
    assert penstock("audit", "--untouched-s", "86400", "--json").document["findings"] == []
    assert len(penstock("audit", "--untouched-s", "0", "--json", code=1).document["findings"]) == 2


def test_what_cannot_be_repaired_stays_a_finding(penstock: Any, deployed: Stage) -> None:
    """A row nobody can read and a job of an unknown lane are left alone, and the end is 1."""
    deployed.jobs.put(a_job(lane="gone", task="x", key="1"))
    deployed.client("dynamodb").put_item(
        TableName="penstock-dev-jobs", Item={"pk": {"S": "JOB#strange"}, "status": {"S": "sideways"}}
    )
    said = penstock("audit", "--repair", code=1)
    assert "left alone" in said.out
    faults = {one["fault"] for one in penstock("audit", "--json", code=1).document["findings"]}
    assert faults == {"unreadable", "unknown_lane"}


@pytest.mark.parametrize("option", [("--segments", "0"), ("--untouched-s", "-1"), ("--segments", "x")])
def test_bad_options(penstock: Any, option: tuple[str, str]) -> None:
    """Numbers out of range are usage errors."""
    penstock("audit", *option, code=2)


@pytest.mark.fault("F9")
def test_what_could_not_be_checked_is_said(penstock: Any, deployed: Stage) -> None:
    """While somebody has its letter in hand a failed job is neither found nor conserved: the end is 3."""
    long_ago = deployed.clock.now() - timedelta(hours=3)
    job = a_job(status=Status.FAILED, updated_at=long_ago)
    deployed.jobs.put(job)
    deployed.dead_letters.send([dead_letter_of(job)])
    deployed.dead_letters.receive("support", limit=10, hide_s=3600)
    document = penstock("audit", "--repair", "--wait-s", "0", "--json", code=3).document
    assert (document["conserved"], document["checked"]) == (False, False)
    assert (document["unchecked"], document["findings"]) == ({"support": 1}, [])
    said = penstock("audit", "--wait-s", "0", code=3)
    assert "conserved: unchecked" in said.out
    assert "in hand" in said.err
    assert deployed.dead_letters.depth("support").total == 1
