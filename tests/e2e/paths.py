"""Every path of every function, driven on the local stack: what is recorded then is what the code really needs."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import pytest

from infra import settings
from infra.stage import load_stage
from ops.local import stack
from ops.local.clients import Clients
from ops.local.state import StackState
from ops.local.ticks import run_now
from ops.local.vendor_control import VendorControl
from shared.adapters import rows
from shared.adapters.aws.budgets import DynamoDbBudgetLedger
from shared.adapters.aws.clients import client
from shared.adapters.aws.clock import SystemClock
from shared.adapters.aws.content import ContentByReference, DynamoDbContentStore, S3ContentStore
from shared.adapters.aws.control import DynamoDbControlStore
from shared.adapters.aws.effects import DynamoDbEffectStore
from shared.adapters.aws.jobs import DynamoDbJobStore
from shared.adapters.aws.ledger import DynamoDbLedger
from shared.adapters.budget_rows import budget_key
from shared.client import Penstock
from shared.contract import env, envelope, names, table
from shared.core.capacity import CapacityState, Pin, pinned, unpinned
from shared.core.effects import EffectRow, EffectState, effect_id_of
from shared.core.errors import UnreadableRow
from shared.core.feedback import OUTAGE, changed, shut_down
from shared.core.job import Category, Job, Status, job_id_of
from shared.core.lane import LaneSpec
from shared.core.moment import whole_ms
from shared.core.rate import SECOND, us_of
from shared.core.switches import Level, Switch
from tests.e2e.events import send_event
from tests.settings import settings_file
from tests.waiting import until

STAGE, LANE, TASK, VENDOR = "local", "support", "answer_event", "helpdesk"
GOVERNOR = names.function(STAGE, "governor")
EXTRACTION = "extraction"


@dataclass(frozen=True, kw_only=True)
class LocalStage:
    """A running stack, as its producers, its operators and its tests reach it."""

    state: StackState
    clients: Clients

    @cached_property
    def lanes(self) -> dict[str, LaneSpec]:
        told = self.clients.of("ssm").get_parameter(Name=names.lanes_parameter(STAGE))["Parameter"]["Value"]
        return {name: LaneSpec.from_mapping(name, values) for name, values in json.loads(told).items()}

    @cached_property
    def penstock(self) -> Penstock:
        """A producer's client on the SDK clients a producer has, made as if this stack stood in its environment."""
        with pytest.MonkeyPatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("AWS_")]:
                patch.delenv(name)
            for name, value in stack.environment(self.state).items():
                patch.setenv(name, value)
            return Penstock(
                STAGE,
                lanes=self.lanes,
                jobs=DynamoDbJobStore(
                    client=client("dynamodb"), table_name=names.table(STAGE, "jobs"), lanes=self.lanes
                ),
                content=self._content(client("s3"), client("dynamodb")),
            )

    @property
    def bucket(self) -> str:
        return names.bucket(STAGE, self.state.account, self.state.region)

    @cached_property
    def content(self) -> ContentByReference:
        return self._content(self.clients.of("s3"), self.clients.of("dynamodb"))

    def _content(self, s3: Any, dynamodb: Any) -> ContentByReference:
        table_name = names.table(STAGE, names.CONTENT_TABLE)
        rows = DynamoDbContentStore(client=dynamodb, table_name=table_name, clock=SystemClock(), kept_days=90)
        return ContentByReference(rows=rows, objects=S3ContentStore(client=s3, bucket=self.bucket))

    @cached_property
    def jobs(self) -> DynamoDbJobStore:
        return DynamoDbJobStore(
            client=self.clients.of("dynamodb"), table_name=names.table(STAGE, "jobs"), lanes=self.lanes
        )

    @cached_property
    def effects(self) -> DynamoDbEffectStore:
        return DynamoDbEffectStore(client=self.clients.of("dynamodb"), table_name=names.table(STAGE, "effects"))

    @cached_property
    def control(self) -> DynamoDbControlStore:
        return DynamoDbControlStore(client=self.clients.of("dynamodb"), table_name=names.table(STAGE, "control"))

    @cached_property
    def ledger(self) -> DynamoDbLedger:
        return DynamoDbLedger(client=self.clients.of("dynamodb"), table_name=names.table(STAGE, "ledger"))

    @cached_property
    def vendor(self) -> VendorControl:
        return VendorControl(self.state.vendor_url)

    def enqueue(self, key: str = "", *, payload: dict[str, Any] | None = None, **more: Any) -> str:
        """One support event; its conversation is its key."""
        key = key or f"evt-{uuid.uuid4().hex[:12]}"
        body = {"conversation_id": f"c-{key}"} if payload is None else payload
        tenant = more.pop("tenant", "acme")
        return self.penstock.enqueue(LANE, TASK, tenant, key, body, **more).job_id

    def job(self, job_id: str) -> Job:
        job = self.jobs.get(job_id)
        assert job is not None, f"no row for {job_id}"
        return job

    def ended(self, *job_ids: str) -> list[Job]:
        """The jobs, once all of them have ended."""
        until(lambda: all(self.job(job_id).status.ended for job_id in job_ids), "the jobs to end")
        return [self.job(job_id) for job_id in job_ids]

    def ended_in_turn(self, *job_ids: str) -> list[Job]:
        """The jobs, once all of them have ended; dispatcher runs follow one another, as the schedule has them, without
        waiting for a whole minute to begin."""

        def all_ended() -> bool:
            self.run("dispatcher")
            return all(self.job(job_id).status.ended for job_id in job_ids)

        until(all_ended, "the jobs to end")
        return [self.job(job_id) for job_id in job_ids]

    def rows(self) -> list[Job]:
        return [row for row in self.jobs.scan() if not isinstance(row, UnreadableRow)]

    def run(self, schedule: str) -> dict[str, Any]:
        """Run a scheduled function now."""
        return run_now(self.clients, STAGE, schedule)

    def plant(self, job: Job, wpk: str | None = None) -> Job:
        """Write a row as a crash would have left it."""
        item = rows.job_item(job, wpk or table.ordered_wpk(job.lane, 0, job.priority))
        self.clients.of("dynamodb").put_item(TableName=names.table(STAGE, "jobs"), Item=item)
        return job

    def plant_unseen(self, job: Job) -> Job:
        """Write a queued row that the stream does not carry on: as if its record and its message were lost."""
        item = rows.job_item(job)
        item["status"] = {"S": "pending"}  # an older spelling: read everywhere, passed by the stream's filter
        self.clients.of("dynamodb").put_item(TableName=names.table(STAGE, "jobs"), Item=item)
        return job

    def send(self, body: str, *, dead_letters: bool = False) -> None:
        """A message straight into the lane's queue or its dead-letter queue."""
        queue = names.dead_letter_queue(STAGE, LANE) if dead_letters else names.queue(STAGE, LANE)
        sqs = self.clients.of("sqs")
        sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName=queue)["QueueUrl"], MessageBody=body)

    def source(self, lane: str = LANE) -> dict[str, Any]:
        """The event source of a lane's worker."""
        worker = f"{names.function(STAGE, names.worker(lane))}:{names.LIVE}"
        found = self.clients.of("lambda").list_event_source_mappings(FunctionName=worker)["EventSourceMappings"]
        whole: dict[str, Any] = self.clients.of("lambda").get_event_source_mapping(UUID=found[0]["UUID"])
        return whole

    def switch(self, level: Level, scope: str = f"lane/{LANE}") -> None:
        self.control.set_switch(Switch(scope=scope, level=level, by="test", why="a test", at=datetime.now(UTC)))


def a_row(key: str, *, age: timedelta = timedelta(hours=3), **changes: Any) -> Job:
    """A job's row of some time ago."""
    then = whole_ms(datetime.now(UTC) - age)
    job = Job(
        job_id=job_id_of(LANE, "planted", TASK, key),
        lane=LANE,
        tenant="planted",
        task=TASK,
        key=key,
        created_at=then,
        updated_at=then,
    )
    return replace(job, **changes)


def walk_every_path(stage: LocalStage) -> None:
    """Drive every function through every call it can make."""
    _open_path_and_retry(stage)
    _event(stage)
    _document(stage)
    _account_not_kept(stage)
    _line_ahead(stage)
    _closed_switch(stage)
    _dead_worker(stage)
    _dead_letters(stage)
    _sweep(stage)
    _audit(stage)
    _govern(stage)
    _trip(stage)


def _open_path_and_retry(stage: LocalStage) -> None:
    done = stage.enqueue()
    future = stage.enqueue(not_before=datetime.now(UTC) + timedelta(seconds=4))
    malformed = stage.enqueue(payload={"topic": "general"})
    stage.run("dispatcher")
    jobs = stage.ended(done, future, malformed)
    assert [job.status for job in jobs] == [Status.COMPLETED, Status.COMPLETED, Status.FAILED]


def _event(stage: LocalStage) -> None:
    """An event from outside, one that is too long for a row, and one that somebody forged."""
    event_id = f"evt-{uuid.uuid4().hex[:12]}"
    assert send_event(stage, event_id, key="x" * 40)[0] == 401
    status, told = send_event(stage, event_id, text="A question about billing")
    assert status == 202
    status, long = send_event(stage, f"{event_id}-long", text="A question about billing. " * 300)
    assert status == 202
    # The model's account may defer them: then the next dispatcher run brings them back.
    stage.ended_in_turn(told["job_id"], long["job_id"])


def _document(stage: LocalStage) -> None:
    """A document of several chunks, each kept."""
    text = "\n\n".join(f"Engineer Name{number} met Ada at the Station. " * 40 for number in range(12))
    ref = stage.penstock.put_document("acme", f"d-{uuid.uuid4().hex[:12]}", text)
    key = ref.rpartition("/")[2]
    enqueued = stage.penstock.enqueue(EXTRACTION, "extract_document", "acme", key, {"document": ref})
    # Its account may defer a chunk: then the next dispatcher run brings it back.
    (job,) = stage.ended_in_turn(enqueued.job_id)
    assert (job.status, job.result) == (Status.COMPLETED, "extracted"), job
    found = stage.content.get(job.result_ref or "")
    assert found is not None
    result = json.loads(found)
    assert result["chunks"] > 1
    assert {"Ada", "Name0", "Name11"} <= {entity["value"] for entity in result["entities"]}


def _account_not_kept(stage: LocalStage) -> None:
    """An operator turns an account's budget off: its workers look now and then whether it is on again."""
    spec = load_stage(STAGE).accounts[VENDOR]
    ledger = DynamoDbBudgetLedger(client=stage.clients.of("dynamodb"), table_name=names.table(STAGE, "ledger"))
    for enforced in (False, None):
        seen = ledger.read(spec).terms
        ledger.change(spec, seen, changed(seen, us_of(datetime.now(UTC)), enforced=enforced))
        for _ in range(3):
            stage.ended(stage.enqueue())


def _line_ahead(stage: LocalStage) -> None:
    """Starts are promised for minutes: admission leaves a new job in the table and says so on the account."""
    spec = load_stage(STAGE).accounts["openai"]
    client, table_name = stage.clients.of("dynamodb"), names.table(STAGE, "ledger")
    ledger = DynamoDbBudgetLedger(client=client, table_name=table_name)
    ledger.reserve(spec, 600 * SECOND, not_before_us=us_of(datetime.now(UTC)))
    time.sleep(2)  # what the stream consumer has seen of the account is believed for so long
    ref = stage.penstock.put_document("acme", f"d-{uuid.uuid4().hex[:12]}", "Ada met Bob at the Station.")
    key = ref.rpartition("/")[2]
    job_id = stage.penstock.enqueue(EXTRACTION, "extract_document", "acme", key, {"document": ref}).job_id
    until(lambda: stage.job(job_id).blocked_by == "budget:openai", "the account's line to hold the job")
    until(lambda: ledger.read(spec).backlog_us > 0, "the account to be told of a backlog")
    client.update_item(
        TableName=table_name,
        Key=budget_key(spec.name),
        UpdateExpression="REMOVE line_us, backlog_us",
    )
    stage.ended_in_turn(job_id)


def _closed_switch(stage: LocalStage) -> None:
    """Held by the stream consumer at admission, and by the worker at its claim."""
    stage.switch(Level.DRAIN)
    try:
        time.sleep(6)  # a change is felt when the caches of five seconds are over: that is what is waited for
        held = stage.enqueue()
        until(lambda: stage.job(held).waits, "admission to hold the job")
        met = stage.plant_unseen(a_row(f"met-{uuid.uuid4().hex[:8]}"))
        stage.send(envelope.encode_ticket(met.job_id, LANE))
        until(lambda: stage.job(met.job_id).waits, "the worker to hold the job")
    finally:
        stage.switch(Level.NORMAL)
    time.sleep(6)
    stage.run("dispatcher")
    stage.ended(held)


def _dead_worker(stage: LocalStage) -> None:
    """A redelivery meets a stale claim with an open intent: its effects are read, the vendor deduplicates."""
    claimed = whole_ms(datetime.now(UTC) - timedelta(minutes=5))
    key = f"dead-{uuid.uuid4().hex[:8]}"
    ref = f"payload/{key}"
    stage.clients.of("s3").put_object(
        Bucket=names.bucket(STAGE, stage.state.account, stage.state.region),
        Key=ref,
        Body=json.dumps({"conversation_id": f"c-{key}"}).encode(),
    )
    job = a_row(key, status=Status.PROCESSING, claimed_at=claimed, claimed_by="dead", fence=1, payload_ref=ref)
    stage.plant(job)
    stage.effects.intend(
        EffectRow(
            effect_id=effect_id_of(job.job_id, "reply"),
            job_id=job.job_id,
            name="reply",
            vendor=VENDOR,
            state=EffectState.INTENT,
            fence=1,
            first_intent_at=claimed,
            intent_at=claimed,
        )
    )
    stage.send(envelope.encode_ticket(job.job_id, LANE))
    (ended,) = stage.ended(job.job_id)
    assert Status.COMPLETED is ended.status, ended


def _dead_letters(stage: LocalStage) -> None:
    """Each kind of message triage can meet."""
    unreadable = f"not ours {uuid.uuid4()}"
    never_claimed = stage.plant_unseen(a_row(f"never-{uuid.uuid4().hex[:8]}"))
    claimed_at = whole_ms(datetime.now(UTC) - timedelta(minutes=10))
    stale = stage.plant(
        a_row(
            f"stale-{uuid.uuid4().hex[:8]}",
            status=Status.PROCESSING,
            fence=1,
            claimed_at=claimed_at,
            claimed_by="dead",
        )
    )
    for body in (
        unreadable,
        envelope.encode_ticket(never_claimed.job_id, LANE),
        envelope.encode_ticket(stale.job_id, LANE),
    ):
        stage.send(body, dead_letters=True)
    stage.run("triage")
    until(lambda: stage.job(never_claimed.job_id).status is Status.FAILED, "triage to label the dead letter")
    assert Category.INFRASTRUCTURE is stage.job(never_claimed.job_id).category
    assert any(job.tenant == "quarantine" for job in stage.rows())


def _sweep(stage: LocalStage) -> None:
    """A claim made by a run, whose run died."""
    claimed_at = whole_ms(datetime.now(UTC) - timedelta(minutes=10))
    job = a_row(
        f"run-{uuid.uuid4().hex[:8]}",
        status=Status.PROCESSING,
        fence=1,
        claimed_at=claimed_at,
        claimed_by="a-run",
        due=claimed_at,
    )
    stage.plant(job, table.claimed_wpk(LANE))
    stage.run("sweeper")
    assert stage.job(job.job_id).status is not Status.PROCESSING


def _audit(stage: LocalStage) -> None:
    """A lost message, a dead claim nobody rescued, a failed job without its dead letter."""
    claimed_at = whole_ms(datetime.now(UTC) - timedelta(hours=2))
    lost = stage.plant_unseen(a_row(f"lost-{uuid.uuid4().hex[:8]}"))
    dead = a_row(
        f"claim-{uuid.uuid4().hex[:8]}",
        status=Status.PROCESSING,
        fence=1,
        claimed_at=claimed_at,
        claimed_by="dead",
    )
    stage.plant(dead)
    failed = stage.plant(
        a_row(f"failed-{uuid.uuid4().hex[:8]}", status=Status.FAILED, category=Category.POISON, signature="x")
    )
    until(lambda: letter_taken(stage, failed.job_id), "the stream to send the dead letter")
    # What triage has in hand is hidden for a while, and an audit does not take hidden letters for lost ones.
    sqs = stage.clients.of("sqs")
    sqs.purge_queue(QueueUrl=sqs.get_queue_url(QueueName=names.dead_letter_queue(STAGE, LANE))["QueueUrl"])
    stage.run("auditor")
    until(lambda: stage.job(lost.job_id).status.ended, "the lost job to run")
    assert stage.job(dead.job_id).status is not Status.PROCESSING


def _govern(stage: LocalStage) -> None:
    """A pin reaches the event source and goes again; a halted lane's source feeds nobody until it is opened."""
    for cap in (5, 2):
        hold_cap(stage, LANE, cap)
    let_cap_go(stage, LANE)
    for level, state_word in ((Level.HALT, "Disabled"), (Level.NORMAL, "Enabled")):
        stage.switch(level)
        stage.run("governor")
        until(lambda: stage.source()["State"] == state_word, f"the event source to be {state_word}")  # noqa: B023
    assert stage.run("governor")["counts"][f"{LANE}.cap"] == 2


def _trip(stage: LocalStage) -> None:
    """An account is shut: the governor closes the lane, and a person opens it again."""
    spec = load_stage(STAGE).accounts[VENDOR]
    ledger = DynamoDbBudgetLedger(client=stage.clients.of("dynamodb"), table_name=names.table(STAGE, "ledger"))

    def tripped() -> bool:
        seen, now_us = ledger.read(spec).terms, us_of(datetime.now(UTC))
        shut = shut_down(seen, OUTAGE, now_us, now_us)
        if shut is not None:
            ledger.change(spec, seen, shut)
        stage.run("governor")
        return lane_level(stage) is Level.ROUTE_ONLY

    # As if nobody had ever set a switch: who trips the first one makes their row.
    stage.clients.of("dynamodb").delete_item(TableName=names.table(STAGE, "control"), Key={"pk": {"S": table.SWITCHES}})
    with tripping(stage):
        until(tripped, "the governor to close the lane")
    seen = ledger.read(spec).terms
    ledger.change(spec, seen, changed(seen, us_of(datetime.now(UTC)), shut=None))
    stage.switch(Level.NORMAL)


@contextmanager
def tripping(stage: LocalStage) -> Iterator[None]:
    """The governor as a deploy with `trip_on_unstable` would have it; the local stage has it off."""
    client = stage.clients.of("lambda")
    before = client.get_function_configuration(FunctionName=GOVERNOR)["Environment"]
    said = settings.of_engine(load_stage(STAGE))
    said["lanes"][LANE].pop("trip_on_unstable")
    told = {**before["Variables"], env.SETTINGS: settings_file(**said)}
    client.update_function_configuration(FunctionName=GOVERNOR, Environment={"Variables": told})
    try:
        yield
    finally:
        client.update_function_configuration(FunctionName=GOVERNOR, Environment=before)


def lane_level(stage: LocalStage) -> Level:
    switch = stage.control.switches().entries.get(f"lane/{LANE}")
    return Level.NORMAL if switch is None else switch.level


def hold_cap(stage: LocalStage, lane: str, cap: int) -> None:
    """Pin it, as an operator does, beside a governor that writes the same row; wait until the lane has it."""
    now = whole_ms(datetime.now(UTC))
    pin = Pin(cap=cap, until=now + timedelta(hours=1), by="test", why="a test")
    _change_cap(stage, lane, lambda state: pinned(state, pin, now))

    def held() -> bool:
        stage.run("governor")
        return bool(stage.source(lane)["ScalingConfig"]["MaximumConcurrency"] == cap)

    until(held, f"a cap of {cap} at {lane}")


def let_cap_go(stage: LocalStage, lane: str) -> None:
    """Take the pin away."""
    _change_cap(stage, lane, unpinned)


def _change_cap(stage: LocalStage, lane: str, changed: Callable[[CapacityState], CapacityState]) -> None:
    def written() -> bool:
        seen = stage.control.capacity(lane)
        return stage.control.set_capacity(lane, seen, changed(seen or CapacityState(cap=stage.lanes[lane].baseline)))

    until(written, f"the cap of {lane} to be written")


def letter_taken(stage: LocalStage, job_id: str) -> bool:
    """Receive and delete the job's dead letter, as if retention had lost it."""
    sqs = stage.clients.of("sqs")
    url = sqs.get_queue_url(QueueName=names.dead_letter_queue(STAGE, LANE))["QueueUrl"]
    reply = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=1)
    for message in reply.get("Messages", ()):
        if job_id in message["Body"]:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return True
    return False
