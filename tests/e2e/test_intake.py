"""Events from outside on the local stack: a real address, a real function, a vendor with a record."""

from __future__ import annotations

import json
import time
import uuid

import pytest

from ops.local import logs, stack
from ops.local.tokens import SENDERS
from shared.contract import names
from shared.core.effects import effect_id_of
from shared.core.job import Status
from tests.e2e.events import post, send_event
from tests.e2e.paths import LANE, STAGE, VENDOR, LocalStage

QUESTION = "A question about billing"


def an_id() -> str:
    return f"evt-{uuid.uuid4().hex[:12]}"


@pytest.mark.req("C1")
@pytest.mark.fault("J2")
@pytest.mark.parametrize("content_type", ["application/json", "application/octet-stream"])
def test_a_signed_event_becomes_a_job_and_is_answered_once(stage: LocalStage, content_type: str) -> None:
    """Sent three times, as text or as bytes: one job, one reply at the vendor."""
    event_id = an_id()
    first = send_event(stage, event_id, content_type=content_type, text=QUESTION)
    assert (first[0], first[1]["outcome"]) == (202, "created")
    job_id = first[1]["job_id"]
    for _ in range(2):
        assert send_event(stage, event_id, content_type=content_type, text=QUESTION) == (
            200,
            {"outcome": "existing", "job_id": job_id},
        )
    (job,) = stage.ended(job_id)
    assert (job.status, job.result, job.tenant, job.key) == (Status.COMPLETED, "replied", "acme", event_id)
    assert stage.vendor.accepted_keys(VENDOR).count(effect_id_of(job_id, "reply")) == 1
    assert send_event(stage, event_id, topic="legal") == (409, {"outcome": "conflict", "job_id": job_id})


@pytest.mark.fault("J1", "H1")
def test_a_forged_event_is_refused(stage: LocalStage) -> None:
    """Another key, another tenant, another time or no signature: one answer, and no job."""
    event_id, refused = an_id(), (401, {"outcome": "refused"})
    assert send_event(stage, event_id, key="x" * 40) == refused
    assert send_event(stage, event_id, tenant="bolt") == refused
    assert send_event(stage, event_id, tenant="stranger") == refused
    assert send_event(stage, event_id, at=int(time.time()) - 400) == refused
    assert post(stage, "/events/acme", b"{}", {"content-type": "application/json"}) == refused
    assert not [job for job in stage.rows() if job.key == event_id]
    assert send_event(stage, event_id, tenant="bolt", key=SENDERS["bolt"])[0] == 202


def test_there_is_one_route(stage: LocalStage) -> None:
    """Every other path is nobody's."""
    for path in ("/", "/events", "/events/acme/more", "/jobs/acme"):
        assert post(stage, path, b"{}", {})[0] == 404


@pytest.mark.fault("J5")
def test_a_large_event_is_refused_by_its_size(stage: LocalStage) -> None:
    """Before anybody looks at what it says."""
    assert send_event(stage, an_id(), text="x" * 300_000) == (413, {"outcome": "too_large"})


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I6")
def test_what_an_event_says_is_in_no_log_and_no_row(stage: LocalStage) -> None:
    """A canary in a good, a malformed and a forged event is in the content store alone."""
    canary = f"canary-{uuid.uuid4().hex}"
    good = send_event(stage, an_id(), text=canary, note={"deep": [canary]})
    assert good[0] == 202
    assert send_event(stage, f"{canary} with blanks", text=canary)[0] == 400
    assert send_event(stage, an_id(), text=canary, key="x" * 40)[0] == 401
    assert send_event(stage, an_id(), text=canary, tenant=canary)[0] == 401
    (job,) = stage.ended(good[1]["job_id"])
    assert names.function(STAGE, names.intake(LANE)) in logs.functions(stage.state)
    found = [
        name
        for name in logs.functions(stage.state)
        for line in stack.logs(stage.state.name, name)
        if canary in line.text
    ]
    for kind in names.TABLES:
        pages = stage.clients.of("dynamodb").get_paginator("scan").paginate(TableName=names.table(STAGE, kind))
        found += [kind for page in pages for item in page["Items"] if canary in json.dumps(item, default=str)]
    assert found == []
    assert canary in (stage.content.get(job.payload_ref or "") or b"").decode()
