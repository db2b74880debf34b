"""The client for programs: what it gives beside enqueueing, and who it says did it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from moto import mock_aws

from shared.client import NO_REASON, Penstock
from shared.core.errors import BadInput
from shared.core.job import Status
from tests.builders import NOW, a_job, an_effect_row
from tests.unit.usecases.desk import Desk

CALLER = "arn:aws:sts::123456789012:user/moto"


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def penstock(desk: Desk) -> Iterator[Penstock]:
    """A client on the desk's stores; AWS is asked for who is calling, and for nothing else."""
    stores: dict[str, Any] = {"jobs": desk.jobs, "effects": desk.effects, "history": desk.history}
    with mock_aws():
        yield Penstock("dev", lanes=desk.lanes, content=desk.content, clock=desk.clock, **stores)


@pytest.mark.req("X2")
@pytest.mark.parametrize("delay_s", [0, 0.5, 90])
def test_a_job_is_scheduled_by_its_delay(desk: Desk, penstock: Penstock, delay_s: float) -> None:
    """From now, with the reason and the caller as AWS knows them in its history."""
    job = desk.put(a_job())
    after = penstock.schedule(job.job_id, delay_s, "vendor asked for a pause")
    at = NOW + timedelta(seconds=delay_s)
    assert (after.not_before_at, after.due) == (at, at)
    assert desk.job(job.job_id) == after
    (event,) = desk.history.of(f"job/{job.job_id}", limit=5)
    assert (event.kind, event.by, event.detail["why"]) == ("schedule", CALLER, "vendor asked for a pause")


@pytest.mark.req("X2")
@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), 401 * 86_400])
def test_a_delay_that_cannot_be_meant_changes_nothing(desk: Desk, penstock: Penstock, delay: float) -> None:
    """Refused by name, for both verbs."""
    queued, running = desk.put(a_job(key="1")), desk.put(a_job(key="2", status=Status.PROCESSING))
    for verb, job in ((penstock.schedule, queued), (penstock.reset_to_pending, running)):
        with pytest.raises(BadInput) as refused:
            verb(job.job_id, delay)
        assert refused.value.field == "delay_seconds"
        assert desk.job(job.job_id) == job


@pytest.mark.req("X2")
def test_a_running_job_is_taken_back(desk: Desk, penstock: Penstock) -> None:
    """Without a delay and a reason it is due now, and the history says that none was given."""
    job = desk.put(a_job(status=Status.PROCESSING))
    after = penstock.reset_to_pending(job.job_id)
    assert (after.status, after.fence, after.due) == (Status.QUEUED, job.fence + 1, NOW)
    (event,) = desk.history.of(f"job/{job.job_id}", limit=5)
    assert (event.kind, event.by, event.detail["why"]) == ("reset", CALLER, NO_REASON)


@pytest.mark.req("X2")
def test_an_open_intent_is_refused(desk: Desk, penstock: Penstock) -> None:
    """As on the command line."""
    job = desk.put(a_job(status=Status.PROCESSING))
    desk.effects.intend(an_effect_row(job_id=job.job_id))
    with pytest.raises(BadInput, match="has an open effect"):
        penstock.reset_to_pending(job.job_id, 5, "hangs")
    assert desk.job(job.job_id) == job


@pytest.mark.fault("J7")
def test_a_tenant_with_a_slash_has_no_new_job_and_no_new_document(desk: Desk, penstock: Penstock) -> None:
    """Its room would be another tenant's, too; nothing is stored."""
    for make in (
        lambda: penstock.put_document("acme/b", "d-1", "text"),
        lambda: penstock.enqueue("support", "reply", "acme/b", "evt-1", {"text": "x"}),
    ):
        with pytest.raises(BadInput, match="may not hold /") as refused:
            make()
        assert refused.value.field == "tenant"
    assert (list(desk.jobs.scan()), desk.content.refs()) == ([], [])
