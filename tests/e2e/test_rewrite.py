"""Lane `rewrite` on the local stack: real runs, a provider that takes its time, and what either of them loses."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ops.local import logs, stack
from shared.contract import names, table
from shared.core.job import Job, Status
from shared.core.moment import iso, whole_ms
from shared.core.ports import Claimed
from shared.core.run import Mode
from shared.core.schedule import RunRecord, slot_at
from tests.e2e.paths import STAGE, LocalStage
from tests.unit.usecases.rewriting import facts
from tests.waiting import until

LANE, PROVIDER = "rewrite", "openai"
SUBMITTER, COLLECTOR, WORKER = (names.run(LANE, role) for role in ("batch_submitter", "batch_collector", "worker"))
QUIET_SLOTS = 30


@dataclass(frozen=True, kw_only=True)
class Rewriting:
    """The lane, with its runs one call away and its own schedules out of the way."""

    stage: LocalStage

    def enqueue(self, count: int = 1, *, text: str = "you never do the dishes", **overrides: Any) -> list[str]:
        """So many new rewrites, as a producer asks for them."""
        made = []
        for _ in range(count):
            given = facts(uuid.uuid4().int, **overrides)
            key = (given["rewrite_request_id"], given["recipient_user_id"])
            ref = self.stage.penstock.enqueue(LANE, "complaint_rewrite", "home-1", key, {"text": text}, facts=given)
            made.append(ref.job_id)
        return made

    def run(self, name: str) -> dict[str, int]:
        """One run out of its turn, as `penstock runs start` does; its counts."""
        answer = self.invoke(name, {"manual": uuid.uuid4().hex})
        assert answer["ran"], answer
        counts: dict[str, int] = answer["counts"]
        return counts

    def invoke(self, name: str, event: dict[str, Any]) -> dict[str, Any]:
        reply = self.stage.clients.of("lambda").invoke(
            FunctionName=names.function(STAGE, name), Payload=json.dumps(event).encode()
        )
        answer: dict[str, Any] = json.loads(reply["Payload"].read())
        assert "FunctionError" not in reply, answer
        return answer

    def collected(self, *job_ids: str) -> list[Job]:
        """The jobs, once a collector has ended or sent back each of them."""

        def none_is_out() -> bool:
            self.run(COLLECTOR)
            return not any(self.stage.job(job_id).status is Status.BATCH_SUBMITTED for job_id in job_ids)

        until(none_is_out, "the batches to be collected")
        return self.jobs(job_ids)

    def all_ended(self, job_ids: list[str]) -> bool:
        return all(job.status.ended for job in self.jobs(job_ids))

    def jobs(self, job_ids: list[str] | tuple[str, ...]) -> list[Job]:
        return [self.stage.job(job_id) for job_id in job_ids]

    def batches_of(self, *job_ids: str) -> Counter[str]:
        """In how many of the provider's batches each job was."""
        wanted = set(job_ids)
        told = self.stage.vendor.batches(PROVIDER)["batches"]
        named = [name.partition(".")[0] for batch in told for name in batch["custom_ids"]]
        return Counter(name for name in named if name in wanted)

    def paid(self, *job_ids: str) -> dict[str, int]:
        """How often each job was paid for, whichever claim it was under."""
        told: Counter[str] = Counter()
        for name, count in self.stage.vendor.batches(PROVIDER)["paid"].items():
            told[name.partition(".")[0]] += count
        return {job_id: told[job_id] for job_id in job_ids}

    def text_of(self, job: Job) -> str:
        data = self.stage.content.get(job.result_ref or "")
        assert data is not None, job
        return str(json.loads(data)["text"])

    def said(self, function: str, words: str) -> list[dict[str, Any]]:
        """The lines of a function whose message is exactly this."""
        lines = stack.logs(self.stage.state.name, names.function(STAGE, function))
        told = [json.loads(line.text) for line in lines if line.text.startswith("{")]
        return [line for line in told if line.get("message") == words]


@pytest.fixture
def rewriting(stage: LocalStage) -> Iterator[Rewriting]:
    """The schedules of the next minutes find their slots taken: nothing runs but what a test runs."""
    now = whole_ms(datetime.now(UTC))
    for name in (SUBMITTER, COLLECTOR, WORKER):
        for ahead in range(QUIET_SLOTS):
            slot = iso(slot_at(now, 60) + timedelta(minutes=ahead))
            taken = RunRecord(schedule=name, slot=slot, run_id="quiet", started_at=now, finished_at=now)
            if stage.ledger.open_run(taken):
                stage.ledger.close_run(taken)
        until(lambda: _idle(stage, name), f"{name} to be idle")  # noqa: B023
    stage.vendor.configure(PROVIDER, batches={"takes_s": 1.0}, script=[])
    lane = Rewriting(stage=stage)
    # What others left behind is worked off first.
    lane.run(SUBMITTER)
    until(lambda: _drained(lane), "the lane to be empty")
    until(lambda: bool(lane.run(WORKER).get("no_pending_items")), "the worker to be idle")
    yield lane
    stage.vendor.configure(PROVIDER, batches={}, script=[])


def _idle(stage: LocalStage, schedule: str) -> bool:
    return all(run.finished_at is not None for run in stage.ledger.runs(schedule, limit=8))


def _drained(lane: Rewriting) -> bool:
    counts = lane.run(COLLECTOR)
    if counts.get("requeued"):
        lane.run(SUBMITTER)
    return bool(counts.get("no_pending_items"))


@pytest.mark.req("R12", "R13", "R14")
@pytest.mark.fault("I1")
def test_complaints_are_rewritten_and_their_text_is_nowhere_else(rewriting: Rewriting) -> None:
    """Thirty in a batch, four one by one, each answered with its own text; the text stands in the content store and
    in no log, row, record of a run or of a batch, and no message."""
    stage, canary = rewriting.stage, f"canary-{uuid.uuid4().hex}"
    batched = rewriting.enqueue(30, text=f"you never {canary}")
    alone = rewriting.enqueue(4, text=f"why {canary}", surface="direct_message")
    submitted = rewriting.run(SUBMITTER)
    assert (submitted["claimed"], submitted["submitted"], submitted["batches"]) == (30, 30, 1)
    assert {job.status for job in rewriting.jobs(batched)} == {Status.BATCH_SUBMITTED}
    assert rewriting.run(WORKER)["claimed"] == 4
    # The account may put one off for a second: then the next run takes it.
    until(lambda: bool(rewriting.run(WORKER).get("no_pending_items")) and rewriting.all_ended(alone), "the worker")
    jobs = rewriting.collected(*batched)
    assert {(job.status, job.result, job.attempt_count) for job in (*jobs, *rewriting.jobs(alone))} == {
        (Status.COMPLETED, "rewritten", 0)
    }
    assert {rewriting.text_of(job) for job in jobs} == {f"[rewritten] you never {canary}"}
    assert all(canary in rewriting.text_of(job) for job in rewriting.jobs(alone))
    assert rewriting.paid(*batched) == dict.fromkeys(batched, 1)
    assert _where(stage, canary) == []


@pytest.mark.req("R13")
def test_a_runs_record_can_be_read(rewriting: Rewriting) -> None:
    """Its id, its times, what it might take and what became of it, in all and by provider and model."""
    rewriting.enqueue(3)
    answer = rewriting.invoke(SUBMITTER, {"manual": uuid.uuid4().hex})
    kept = [
        run for run in rewriting.stage.ledger.runs(SUBMITTER, limit=20 + QUIET_SLOTS) if run.run_id == answer["run_id"]
    ]
    assert len(kept) == 1
    assert kept[0].finished_at is not None
    assert kept[0].started_at <= kept[0].finished_at
    assert dict(kept[0].counts) == answer["counts"]
    most = rewriting.stage.lanes[LANE].run
    assert most is not None
    assert {
        "max_jobs_per_run": most.max_jobs_per_run,
        "claimed": 3,
        "openai/gpt-4o-mini.claimed": 3,
        "openai/gpt-4o-mini.submitted": 3,
        "failed": 0,
        "requeued": 0,
    }.items() <= dict(kept[0].counts).items()


@pytest.mark.fault("G1")
@pytest.mark.parametrize("lost", ["drop_after_accept", "drop_before_accept"])
def test_a_lost_answer_is_never_paid_for_twice(rewriting: Rewriting, lost: str) -> None:
    """The provider took the batch, or did not, and the connection broke: the next run asks by the tag. What is there is
    adopted; what is not stays claimed until nobody can be at it. No job is in two batches."""
    script = [{"match": {"method": "POST", "path_contains": "/batches"}, "do": lost}]
    rewriting.stage.vendor.configure(PROVIDER, script=script)
    job_ids = rewriting.enqueue(5)
    counts = rewriting.run(SUBMITTER)
    assert (counts["claimed"], counts["batches_unknown"], counts.get("submitted", 0)) == (5, 1, 0)
    assert {job.status for job in rewriting.jobs(job_ids)} == {Status.PROCESSING}
    again = rewriting.run(SUBMITTER)
    if lost == "drop_after_accept":
        assert again["batches_adopted"] == 1
        assert {job.status for job in rewriting.collected(*job_ids)} == {Status.COMPLETED}
        assert rewriting.batches_of(*job_ids) == Counter(dict.fromkeys(job_ids, 1))
        assert rewriting.paid(*job_ids) == dict.fromkeys(job_ids, 1)
    else:
        assert again.get("batches_adopted", 0) == 0
        assert rewriting.batches_of(*job_ids) == Counter()
        assert {job.status for job in rewriting.jobs(job_ids)} == {Status.PROCESSING}
        _age_intents(rewriting.stage, timedelta(minutes=5))
        rewriting.run(SUBMITTER)
        assert {(job.status, job.attempt_count) for job in rewriting.jobs(job_ids)} == {(Status.QUEUED, 1)}
        _submitted_again(rewriting, job_ids)
        assert {job.status for job in rewriting.collected(*job_ids)} == {Status.COMPLETED}
        assert rewriting.paid(*job_ids) == dict.fromkeys(job_ids, 1)


@pytest.mark.req("R12")
@pytest.mark.fault("G2")
def test_only_the_lines_without_an_end_are_submitted_again(rewriting: Rewriting) -> None:
    """Of ten, one is missing, one expired and one met an error at the provider: those three, and a second batch of
    exactly three. One is refused for good and fails alone."""
    job_ids = rewriting.enqueue(10)
    faults = dict(zip(job_ids, ("missing", "expired", "server_error", "refused"), strict=False))
    rewriting.stage.vendor.configure(
        PROVIDER, batches={"takes_s": 0.5, "line_faults": {f"{name}.1": fault for name, fault in faults.items()}}
    )
    assert rewriting.run(SUBMITTER)["submitted"] == 10
    jobs = rewriting.collected(*job_ids)
    assert [job.status for job in jobs] == [*[Status.QUEUED] * 3, Status.FAILED, *[Status.COMPLETED] * 6]
    assert {job.attempt_count for job in jobs[:3]} == {1}
    _submitted_again(rewriting, job_ids[:3])
    assert {job.status for job in rewriting.collected(*job_ids[:3])} == {Status.COMPLETED}
    assert rewriting.batches_of(*job_ids) == Counter({name: 2 if name in job_ids[:3] else 1 for name in job_ids})


@pytest.mark.req("R7")
def test_above_the_limit_the_rest_is_untouched(rewriting: Rewriting) -> None:
    """A run takes what it may, oldest first; who is over is not written to, and comes next."""
    run = rewriting.stage.lanes[LANE].run
    assert run is not None
    job_ids = rewriting.enqueue(run.max_jobs_per_run + 3)
    before = rewriting.jobs(job_ids)
    counts = rewriting.run(SUBMITTER)
    assert (counts["claimed"], counts["submitted"], counts["requeued"]) == (run.max_jobs_per_run, counts["claimed"], 0)
    oldest = sorted(before, key=lambda job: (job.created_at, job.job_id))
    rest = [job.job_id for job in oldest[run.max_jobs_per_run :]]
    assert rewriting.jobs(rest) == oldest[run.max_jobs_per_run :]
    assert rewriting.run(SUBMITTER)["claimed"] == 3
    assert {job.status for job in rewriting.collected(*job_ids)} == {Status.COMPLETED}
    assert rewriting.paid(*job_ids) == dict.fromkeys(job_ids, 1)


@pytest.mark.req("R4")
@pytest.mark.fault("D1")
def test_a_schedule_that_fires_three_times_runs_once(rewriting: Rewriting) -> None:
    """At once, in one slot: one run has the work, the others say that the slot is taken."""
    job_ids, answers = _fired_three_times(rewriting)
    while answers is None:
        job_ids, answers = _fired_three_times(rewriting)
    assert sorted(answer["ran"] for answer in answers) == [False, False, True]
    (ran,) = [answer for answer in answers if answer["ran"]]
    assert ran["counts"]["submitted"] == 5
    assert {job.status for job in rewriting.collected(*job_ids)} == {Status.COMPLETED}
    assert rewriting.batches_of(*job_ids) == Counter(dict.fromkeys(job_ids, 1))


def _fired_three_times(rewriting: Rewriting) -> tuple[list[str], list[dict[str, Any]] | None]:
    """Five jobs, and what three runs of this minute answered; None when the minute ended meanwhile."""
    job_ids = rewriting.enqueue(5)
    slot = iso(slot_at(datetime.now(UTC), 60))
    rewriting.stage.clients.of("dynamodb").delete_item(
        TableName=names.table(STAGE, "ledger"), Key={"pk": {"S": table.run_pk(SUBMITTER)}, "sk": {"S": slot}}
    )
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda _: rewriting.invoke(SUBMITTER, {}), range(3)))
    if iso(slot_at(datetime.now(UTC), 60)) == slot:
        return job_ids, answers
    until(lambda: bool(rewriting.run(SUBMITTER).get("no_pending_items")), "the submitter to be idle")
    rewriting.collected(*job_ids)
    return job_ids, None


@pytest.mark.req("R5")
@pytest.mark.parametrize("name", [SUBMITTER, COLLECTOR, WORKER])
def test_without_work_a_run_is_skipped_in_the_contracts_words(rewriting: Rewriting, name: str) -> None:
    """No error, no claim, no question to the provider: one event, the same each time."""
    words = f"{name} skipped: no pending items"
    asked, before = len(rewriting.stage.vendor.requests(PROVIDER)), len(rewriting.said(name, words))
    assert rewriting.run(name) == {"no_pending_items": 1}
    assert len(rewriting.stage.vendor.requests(PROVIDER)) == asked
    until(lambda: len(rewriting.said(name, words)) == before + 1, "the event in the log")
    assert rewriting.said(name, words)[-1]["level"] == "INFO"


@pytest.mark.req("R9")
def test_what_a_killed_run_had_claimed_comes_back(rewriting: Rewriting) -> None:
    """It claimed and died before it wrote anything else: the sweeper puts its jobs back, with one try used, and the
    next run takes them."""
    stage = rewriting.stage
    job_ids, lane = rewriting.enqueue(3), stage.lanes[LANE]
    then = whole_ms(datetime.now(UTC) - timedelta(seconds=lane.claim_timeout_s + 5))
    for entry in stage.jobs.waiting(lane, due_before=datetime.now(UTC), limit=10, line=lane.line(Mode.BATCH)):
        assert isinstance(stage.jobs.claim_in_run(lane, entry, by="killed", now=then, early=True), Claimed)
    assert {(job.status, job.claimed_by) for job in rewriting.jobs(job_ids)} == {(Status.PROCESSING, "killed")}
    stage.run("sweeper")
    jobs = rewriting.jobs(job_ids)
    assert {(job.status, job.attempt_count, job.last_error) for job in jobs} == {
        (Status.QUEUED, 1, "stale_claim_requeued")
    }
    _submitted_again(rewriting, job_ids)
    assert {job.status for job in rewriting.collected(*job_ids)} == {Status.COMPLETED}


def _submitted_again(rewriting: Rewriting, job_ids: list[str]) -> None:
    """Once their time has come, a run hands them over."""
    until(
        lambda: all((job.not_before_at or job.created_at) <= datetime.now(UTC) for job in rewriting.jobs(job_ids)),
        "the jobs to be due",
    )
    until(
        lambda: (
            rewriting.run(SUBMITTER).get("submitted", 0) > 0
            or all(job.status is not Status.QUEUED for job in rewriting.jobs(job_ids))
        ),
        "the jobs to be submitted again",
    )


def _age_intents(stage: LocalStage, age: timedelta) -> None:
    """As if every batch that has no answer yet had been begun so long ago."""
    client, ledger = stage.clients.of("dynamodb"), names.table(STAGE, "ledger")
    then = iso(whole_ms(datetime.now(UTC) - age))
    for page in client.get_paginator("scan").paginate(TableName=ledger):
        for item in page["Items"]:
            if item.get("state", {}).get("S") == "intended":
                client.update_item(
                    TableName=ledger,
                    Key={"pk": item["pk"], "sk": item["sk"]},
                    UpdateExpression="SET intent_at = :then",
                    ExpressionAttributeValues={":then": {"S": then}},
                )


def _where(stage: LocalStage, canary: str) -> list[str]:
    """Every log, table and queue of the stack that holds the word."""
    found = [
        name
        for name in logs.functions(stage.state)
        for line in stack.logs(stage.state.name, name)
        if canary in line.text
    ]
    for kind in names.TABLES:
        pages = stage.clients.of("dynamodb").get_paginator("scan").paginate(TableName=names.table(STAGE, kind))
        found += [kind for page in pages for item in page["Items"] if canary in json.dumps(item, default=str)]
    sqs = stage.clients.of("sqs")
    for url in sqs.list_queues()["QueueUrls"]:
        reply = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1)
        found += [url for message in reply.get("Messages", ()) if canary in message["Body"]]
    return found
