"""The walk of a job on the local stack: real functions, real queues, a vendor with a record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import uuid
from collections import Counter
from pathlib import Path

import pytest

from ops.local import logs, stack
from ops.local.judge import judge
from ops.local.state import ROOT
from shared.contract import names
from shared.core.effects import effect_id_of
from shared.core.job import Category, Status
from shared.core.switches import Level
from tests.e2e.paths import LANE, STAGE, VENDOR, LocalStage
from tests.waiting import until

REPORT = ROOT / "build" / "reports" / "local-stack.json"


@pytest.mark.req("C1")
def test_the_same_event_twice_is_answered_once(stage: LocalStage) -> None:
    """One cause, enqueued twice: one job, one accept at the vendor."""
    key = f"evt-{uuid.uuid4().hex[:12]}"
    first, second = stage.enqueue(key), stage.enqueue(key)
    assert first == second
    (job,) = stage.ended(first)
    assert (job.status, job.result) == (Status.COMPLETED, "replied")
    assert stage.vendor.accepted_keys(VENDOR).count(effect_id_of(first, "reply")) == 1


@pytest.mark.req("C8")
def test_a_malformed_event_fails_under_its_category_and_leaves_a_dead_letter(stage: LocalStage) -> None:
    """Its neighbours complete; its dead letter stands in the queue by itself."""
    bad, good = stage.enqueue(payload={"topic": "general"}), stage.enqueue()
    failed, completed = stage.ended(bad, good)
    assert (failed.status, failed.category) == (Status.FAILED, Category.MALFORMED)
    assert Status.COMPLETED is completed.status
    sqs = stage.clients.of("sqs")
    url = sqs.get_queue_url(QueueName=names.dead_letter_queue(STAGE, LANE))["QueueUrl"]
    seen: set[str] = set()

    def letter_stands() -> bool:
        reply = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1)
        seen.update(json.loads(m["Body"]).get("job", "") for m in reply.get("Messages", ()) if m["Body"][0] == "{")
        return bad in seen

    until(letter_stands, "the dead letter")


@pytest.mark.req("C2")
def test_safe_mode_withholds_the_reply_and_nothing_is_sent_later(stage: LocalStage) -> None:
    """A change of the switch is felt within ten seconds, without a deploy; the job completes as withheld."""
    stage.switch(Level.ROUTE_ONLY)
    try:
        thrown, sent_at, result = time.monotonic(), 0.0, None
        while result != "withheld":
            assert sent_at < thrown + 10, "a job that came ten seconds after the switch was answered"
            sent_at = time.monotonic()
            (job,) = stage.ended(stage.enqueue())
            result = job.result
        job_id = stage.enqueue()
        (job,) = stage.ended(job_id)
    finally:
        stage.switch(Level.NORMAL)
        until(lambda: stage.ended(stage.enqueue())[0].result == "replied", "the switch to open again")
    assert job.result == "withheld"
    assert effect_id_of(job_id, "reply") not in stage.vendor.accepted_keys(VENDOR)


def test_a_thousand_jobs_one_by_one(stage: LocalStage) -> None:
    """Each with one effect, judged by the vendor's record: all completed, none doubled, none lost."""
    stage.ended(*[stage.enqueue() for _ in range(20)])  # workers are warm
    burst, began = uuid.uuid4().hex[:8], time.monotonic()
    job_ids = [stage.enqueue(f"{burst}-{number}", tenant=f"t-{number % 12}") for number in range(1000)]
    enqueued_s = time.monotonic() - began

    def standings() -> Counter[tuple[str, str | None]]:
        mine = [job for job in stage.rows() if job.key.startswith(burst)]
        return Counter((job.status.value, None if job.status.ended else job.blocked_by) for job in mine)

    # On a busy machine a cold worker puts jobs back for want of time, and they wait for the next dispatch.
    until(lambda: standings()[("completed", None)] == 1000, "a thousand jobs to complete")
    seconds = time.monotonic() - began
    mine = {effect_id_of(job_id, "reply") for job_id in job_ids}
    # Other tests plant violations at the same vendor.
    accepted = [key for key in stage.vendor.accepted_keys(VENDOR) if key in mine]
    closing = judge(job_ids, stage.rows(), accepted)
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps({"jobs": 1000, "enqueued_s": round(enqueued_s, 1), "completed_s": round(seconds, 1)}))
    print(f"1,000 jobs enqueued one by one in {enqueued_s:.1f} s, completed after {seconds:.1f} s")
    assert (closing.completed, closing.duplicates, closing.lost) == (1000, 0, 0)
    assert set(accepted) == mine


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I6")
def test_customer_text_is_in_the_content_store_and_nowhere_else(stage: LocalStage) -> None:
    """A canary in every free-text field of an event is in no log, table, queue or vendor record of this stack."""
    canary = f"canary-{uuid.uuid4().hex}"
    stage.vendor.configure(VENDOR, script=[{"match": {"method": "POST"}, "do": "status:503"}])
    text = {"topic": canary, "text": canary, "note": {"deep": [canary]}}
    good = stage.enqueue(payload={"conversation_id": "c-canary", **text})
    bad = stage.enqueue(payload={"conversation_id": f"{canary} with blanks", **text})
    until(lambda: stage.job(bad).status.ended, "the malformed job to end")
    until(lambda: stage.job(good).status.ended or stage.job(good).waits, "the good job to end or wait")
    found = [
        line.function for name in logs.functions(stage.state) for line in _lines(stage, name) if canary in line.text
    ]
    for kind in names.TABLES:
        pages = stage.clients.of("dynamodb").get_paginator("scan").paginate(TableName=names.table(STAGE, kind))
        found += [kind for page in pages for item in page["Items"] if canary in json.dumps(item, default=str)]
    sqs = stage.clients.of("sqs")
    for url in sqs.list_queues()["QueueUrls"]:
        reply = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1)
        found += [url for message in reply.get("Messages", ()) if canary in message["Body"]]
    assert found == []
    assert canary in (stage.content.get(stage.job(good).payload_ref or "") or b"").decode()


def _lines(stage: LocalStage, function: str) -> list[logs.LogLine]:
    return list(stack.logs(stage.state.name, function))


def test_the_contract_suites_hold_on_the_local_stack(stage: LocalStage) -> None:
    """What memory and moto promise, the emulator's DynamoDB, SQS and S3 keep: the same suites, unchanged."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-o", "cache_dir=.cache/contract", "-m", "e2e"]
    done = subprocess.run(
        [*command, "tests/contract"],
        cwd=Path(ROOT),
        env={**os.environ, "PENSTOCK_E2E": stage.state.endpoint},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
