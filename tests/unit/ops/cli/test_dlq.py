"""`penstock dlq`: cohorts with a warning before they are gone, exports without text, dismissals with a name to them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.core.job import Category, Job, Status
from tests.builders import a_job, an_effect_row


def a_failed(stage: Stage, key: str, **overrides: Any) -> Job:
    """A job that failed an hour ago."""
    then = stage.clock.now() - timedelta(hours=1)
    values: dict[str, Any] = {
        "created_at": then,
        "updated_at": then,
        "last_error_at": then,
        "expires_at": then + timedelta(days=30),
    }
    job = a_job(key=key, status=Status.FAILED, **{**values, **overrides})
    assert stage.jobs.put(job) is None
    return job


@pytest.fixture
def failed(deployed: Stage) -> list[Job]:
    """Three failed jobs in two cohorts, one of which is soon gone; and one that is fine."""
    soon = deployed.clock.now() + timedelta(days=2, hours=1)
    deployed.jobs.put(a_job(key="fine"))
    return [
        a_failed(deployed, "1"),
        a_failed(deployed, "2", tenant="tenant-2", expires_at=soon),
        a_failed(deployed, "3", category=Category.AUTH, signature="vendor_auth:helpdesk"),
    ]


@pytest.mark.req("C8")
def test_cohorts_with_counts_and_times(penstock: Any, failed: list[Job]) -> None:
    """By category and signature; a filter narrows it down, tenants can be told apart."""
    document = penstock("dlq", "list", "support", "--json").document
    assert (document["failed"], document["expires_soon"]) == (3, 1)
    first, second = document["cohorts"]
    assert (first["category"], first["signature"], first["count"]) == ("retries_exhausted", "vendor_unavailable", 2)
    assert (second["category"], second["count"]) == ("auth", 1)
    assert len(penstock("dlq", "list", "support", "--by-tenant", "--json").document["cohorts"]) == 3
    assert penstock("dlq", "list", "support", "--category", "auth", "--json").document["failed"] == 1
    assert penstock("dlq", "list", "support", "--until", "2020-01-01T00:00Z", "--json").document["failed"] == 0
    said = penstock("dlq", "list", "support")
    assert "3 failed jobs in 2 cohorts" in said.out
    assert "1 h" in said.out or "60 min" in said.out


@pytest.mark.req("M8")
def test_a_warning_before_they_are_gone(penstock: Any, failed: list[Job]) -> None:
    """Three days before a row goes, `list` and `show` say so; before that, they do not."""
    assert "1 of them go within 3 days, the first in 2 d" in " ".join(penstock("dlq", "list", "support").err.split())
    assert "go within" not in penstock("dlq", "list", "support", "--category", "auth").err
    assert "Its row goes in 2 d" in penstock("dlq", "show", failed[1].job_id).err
    assert penstock("dlq", "show", failed[0].job_id).err == ""


def test_nothing_matches(penstock: Any, deployed: Stage) -> None:
    """No failed job is a sentence, an unknown lane an error."""
    assert "No failed job of lane support matches." in penstock("dlq", "list", "support").out
    assert "known lanes: mail, support" in penstock("dlq", "list", "nope", code=1).err


def test_show_says_what_may_be_done(penstock: Any, deployed: Stage, failed: list[Job]) -> None:
    """The command that plans it, or what stands in the way; a job that is not failed is none of its."""
    assert f"penstock redrive plan support --job {failed[0].job_id}" in penstock("dlq", "show", failed[0].job_id).out
    deployed.effects.intend(an_effect_row(job_id=failed[2].job_id))
    assert "jobs resolve" in penstock("dlq", "show", failed[2].job_id).out
    assert penstock("dlq", "show", failed[2].job_id, "--json").document["replayable"] is False
    assert "no dead letter" in penstock("dlq", "show", a_job(key="fine").job_id, code=1).err


@pytest.mark.req("C10")
@pytest.mark.fault("I5")
def test_an_export_holds_ids_codes_and_times(penstock: Any, deployed: Stage, failed: list[Job], tmp_path: Path) -> None:
    """One JSON line a job; nothing a customer or a stranger's hand wrote; never over a file that is there."""
    word = "CANARY-7f3a please refund"
    a_failed(deployed, "who@example.com", signature=word, last_error=word)
    to = tmp_path / "failed.jsonl"
    assert "4 failed jobs of lane support" in penstock("dlq", "export", "support", "--to", str(to)).out
    text = to.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["job_id"] for line in lines} >= {job.job_id for job in failed}
    assert set(lines[0]) == {
        *("job_id", "lane", "tenant", "task", "category", "signature", "created_at", "failed_at", "expires_at"),
        *("attempt_count", "replay_count", "plan_id"),
    }
    assert "CANARY" not in text
    assert "example.com" not in text
    assert "exists" in penstock("dlq", "export", "support", "--to", str(to), code=1).err
    assert to.read_text() == text


def test_a_dismissal_is_kept(penstock: Any, deployed: Stage, failed: list[Job]) -> None:
    """Failed → canceled, with who and why; one that is refused stops no other, and the end is 1."""
    first, second, third = failed
    deployed.effects.intend(an_effect_row(job_id=third.job_id))
    fine = a_job(key="fine").job_id
    said = penstock("dlq", "dismiss", first.job_id, third.job_id, fine, second.job_id, "--why", "withdrawn", code=1)
    assert "only a failed job can be dismissed" in said.err
    assert "jobs resolve" in said.err
    for job in (first, second):
        row = deployed.jobs.get(job.job_id)
        assert row is not None
        assert row.status is Status.CANCELED
        (event,) = deployed.history.of(f"job/{job.job_id}", limit=5)
        assert (event.kind, event.detail["why"]) == ("dismiss", "withdrawn")
        assert event.by.endswith("user/moto")
    assert penstock("dlq", "list", "support", "--json").document["failed"] == 1
    assert "why: is missing" in penstock("dlq", "dismiss", third.job_id, "--why", " ", code=1).err
