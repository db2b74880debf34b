"""A customer's words in every field that can hold them, through every handler: found in the content store alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from shared.adapters import rows
from shared.adapters.vendors.helpdesk import HelpDesk
from shared.core.errors import BadInput, EnqueueConflict
from shared.core.job import Status, canonical_payload
from shared.core.switches import Level
from shared.core.vendor import VendorSpec
from shared.runtime.door import DoorFailed
from shared.usecases.set_switch import set_switch
from tests.builders import NOW, a_job
from tests.functions.stage import HANDLERS, Stage, a_stage, sqs_record, stream_event
from tests.leaks.strange_tasks import TASKS
from tests.leaks.sweep import CANARY, Sweep, holds, sweeping
from tests.unit.vendors import sockets
from tests.unit.vendors.sockets import RawServer
from tests.vendors_and_tasks import VendorKind

SCHEDULED = ("dispatcher", "sweeper", "triage", "auditor", "redriver", "governor")
PAYLOAD = {"text": CANARY, CANARY: [CANARY, {"deep": CANARY}], "conversation_id": "c-1"}


def look(sweep: Sweep, stage: Stage, *, but: frozenset[str] = frozenset()) -> None:
    """Every row and message of a stage in memory, except rows that were planted with the word in them."""
    desk = stage.desk
    changes = [record.new.item for record in desk.jobs.stream.since(0, 10_000) if record.new is not None]
    sweep.look_at(
        tables={
            "jobs": [row.item for pk, row in desk.jobs._rows.items() if pk not in but],
            "stream": [item for item in changes if item["pk"]["S"] not in but],
            "effects": list(desk.effects._rows.values()),
            "control": [desk.control._target._item, desk.control._target._caps],
            "ledger": list(desk.ledger._rows.values()),
            "history": list(desk.history._rows.values()),
        },
        queues={
            "lane": [f"{m.body} {m.group}" for m in desk.queues.queue(desk.lane.name).messages()],
            "dlq": [f"{m.body} {m.group}" for m in desk.dead_letters.queue(desk.lane.name).messages()],
        },
    )


def invoke(sweep: Sweep, stage: Stage, function: str, event: Any) -> None:
    """One invocation; what Lambda would print of its failure is swept, too."""
    try:
        answer = stage.invoke(function, event)
        sweep.export(f"{function}-answer.json", json.dumps(answer))
    except DoorFailed as exc:
        sweep.lambda_prints(exc)


def settle_down(sweep: Sweep, stage: Stage, rounds: int = 3) -> None:
    """Let every handler run over what stands there, several times: changes, dead letters, retries."""
    seen = 0
    for _ in range(rounds):
        records = stage.desk.jobs.stream.since(seen, 10_000)
        seen = records[-1].sequence if records else seen
        for record in records:
            if record.new is not None:
                invoke(sweep, stage, "stream", stream_event(record.new.item))
        lane = stage.desk.lane.name
        for one in stage.desk.queues.receive(lane, limit=100):
            body = {"messageId": one.delivery.message_id, "body": one.delivery.body, "attributes": {}}
            invoke(sweep, stage, lane, {"Records": [body]})
        stage.desk.clock.advance(3600)
        for function in SCHEDULED:
            invoke(sweep, stage, function, {"text": CANARY})


@contextmanager
def swept(tmp_path: Path, **stage: Any) -> Iterator[tuple[Sweep, Stage]]:
    with sweeping(tmp_path) as sweep, a_stage(**stage) as built:
        yield sweep, built


def clean(sweep: Sweep) -> None:
    """Nothing leaked, nothing forged."""
    assert sweep.hits() == []
    assert sweep.forged() == []


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I6", "I8")
def test_a_payload_stays_in_the_content_store(tmp_path: Path) -> None:
    """Answered, withheld, refused and unknown: text in the payload reaches the task and nothing else."""
    with swept(tmp_path) as (sweep, stage):
        stage.enqueue("a", payload=PAYLOAD)
        stage.enqueue("b", payload={**PAYLOAD, "topic": "legal"})
        stage.enqueue("c", payload={**PAYLOAD, "conversation_id": CANARY})
        stage.enqueue("d", payload={**PAYLOAD, "topic": [CANARY]})
        stage.enqueue("e", payload={**PAYLOAD, "topic": CANARY})
        settle_down(sweep, stage)
        stage.desk.close("all", Level.ROUTE_ONLY)
        stage.enqueue("f", payload=PAYLOAD)
        settle_down(sweep, stage)
        look(sweep, stage)
        clean(sweep)
        assert {job.status for job in stage.jobs()} == {Status.COMPLETED, Status.FAILED}
        assert any(holds((stage.desk.content.get(ref) or b"").decode()) for ref in stage.desk.content.refs())


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I8")
def test_a_task_cannot_leak_by_failing(tmp_path: Path) -> None:
    """Whatever it raises or returns, by whatever mistake: types, codes and places, never the words."""
    with swept(tmp_path, kind=VendorKind.DEDUPES, tasks=TASKS) as (sweep, stage):
        for task in TASKS:
            stage.desk.enqueue(task, key=task, payload=PAYLOAD)
        settle_down(sweep, stage, rounds=5)
        look(sweep, stage)
        clean(sweep)
        assert {job.task for job in stage.jobs()} >= set(TASKS)
        assert not [job for job in stage.jobs() if job.status is Status.PROCESSING]
        assert "task_fault" in sweep.stdout.getvalue()


REPLIES = {
    "accepted": sockets.reply("201 Created", json.dumps({"id": "r-1", "text": CANARY}).encode()),
    "text as id": sockets.reply("200 OK", json.dumps({"id": CANARY}).encode()),
    "object as id": sockets.reply("200 OK", json.dumps({"id": {"text": CANARY}}).encode()),
    "not json": sockets.reply("200 OK", CANARY.encode()),
    "permanent": sockets.reply("422 No", CANARY.encode()),
    "rate limit": sockets.reply("429 Wait", CANARY.encode(), f"Retry-After: {CANARY.splitlines()[0]}"),
    "unauthorised": sockets.reply("401 Who", CANARY.encode()),
    "server error": sockets.reply("500 Oops", CANARY.encode()),
    "reason phrase": sockets.reply(f"503 {CANARY.splitlines()[0]}", CANARY.encode()),
    "redirect": sockets.reply("302 Found", b"", f"Location: http://127.0.0.1/{CANARY.split()[1]}"),
    "not http": CANARY.encode(),
    "garbled": sockets.reply("200 OK", CANARY.encode(), "Content-Encoding: gzip"),
    "broken": sockets.reply("200 OK", CANARY.encode(), length=9000),
}


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I3", "I8")
@pytest.mark.parametrize("answer", REPLIES.values(), ids=REPLIES)
def test_a_vendor_cannot_leak_by_answering(tmp_path: Path, answer: bytes) -> None:
    """Over real sockets, at DEBUG: reply bodies, error bodies, headers and ids that are text."""
    with RawServer(lambda request: [answer]) as server, swept(tmp_path) as (sweep, stage):
        spec = VendorSpec(name="helpdesk", kind="helpdesk", base_url=server.url, lookup="exact", read_timeout_s=60)
        with closing(HelpDesk(spec, token=lambda fresh: f"token-{CANARY.split()[1]}")) as desk:
            stage.desk.vendor = desk  # type: ignore[assignment]
            job = stage.enqueue("a", payload=PAYLOAD)
            invoke(sweep, stage, "support", {"Records": [sqs_record(job)]})
            settle_down(sweep, stage, rounds=1)
        look(sweep, stage)
        clean(sweep)
        assert server.requests


BODIES = {
    "text": CANARY,
    "json text": json.dumps(CANARY),
    "unclosed": f'{{"v": 1, "job": "{CANARY}',
    "text as job": json.dumps({"v": 1, "job": CANARY, "lane": "support"}),
    "text as lane": json.dumps({"v": 1, "job": a_job().job_id, "lane": CANARY.replace("\n", " ")[:32]}),
    "text as version": json.dumps({"v": CANARY, "job": a_job().job_id, "lane": "support"}),
    "text as field": json.dumps({"v": 1, CANARY: CANARY, "job": a_job().job_id, "lane": "support"}),
    "twice": f'{{"v":1,"{CANARY.split()[1]}":1,"{CANARY.split()[1]}":2}}',
    "number": '{"v": 1, "job": ' + "9" * 50 + f', "x": "{CANARY.split()[1]}"}}',
}


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I5", "I6")
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_malformed_message_is_kept_without_being_shown(tmp_path: Path, body: str) -> None:
    """Returned by the worker, quarantined by triage: its bytes stand in the content store, its row says a code."""
    with swept(tmp_path) as (sweep, stage):
        record = {"messageId": "m-1", "body": body, "attributes": {"ApproximateReceiveCount": CANARY, CANARY: CANARY}}
        invoke(sweep, stage, "support", {"Records": [record], CANARY: CANARY})
        stage.desk.dead_letters.add("support", body)
        settle_down(sweep, stage)
        look(sweep, stage)
        clean(sweep)
        (kept,) = [job for job in stage.jobs() if job.tenant == "quarantine"]
        assert stage.desk.content.get(kept.payload_ref or "") == body.encode()


SHAPES: tuple[dict[str, Any], ...] = (
    {"S": CANARY},
    {"L": [{"S": CANARY}]},
    {"M": {CANARY: {"S": CANARY}}},
    {"N": CANARY},
)


def strange_rows(status: Status) -> Iterator[dict[str, Any]]:
    """Rows of jobs, each with the word in another field or of another type."""
    due = NOW if status is Status.QUEUED else None
    more = {"last_error", "result", "category", "signature", "claimed_by", "routing_decision", "blocked_by", CANARY}
    names = {*rows.job_item(a_job(status=status, due=due), "support#0#2"), *more, "wpk", "wsk"} - {"pk"}
    for name, (number, shape) in product(sorted(names), enumerate(SHAPES)):
        if "S" in shape or name not in ("wpk", "wsk"):  # An index takes text only.
            key = f"{name.split()[0]}-{number}"
            job = a_job(task="answer_event", key=key, status=status, due=due, last_error="x", signature="x")
            yield {**rows.job_item(job, "support#0#2"), name: shape}


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I5", "K1")
@pytest.mark.parametrize("status", [Status.QUEUED, Status.PROCESSING, Status.FAILED, Status.COMPLETED])
def test_a_malformed_row_is_not_shown(tmp_path: Path, status: Status) -> None:
    """Read by every handler: no log, metric, message or other row repeats what stands in it, whichever field it is."""
    planted = [item for item in strange_rows(status) if ("wpk" in item) == ("wsk" in item)]
    keys = [item["pk"]["S"] for item in planted]
    with swept(tmp_path) as (sweep, stage):
        for item in planted:
            stage.desk.jobs.plant(item)
        tickets = [sqs_record(a_job(job_id=key.removeprefix("JOB#"), task="answer_event")) for key in keys]
        for ticket in tickets:
            stage.desk.dead_letters.add("support", ticket["body"])
        for _ in range(2):
            images = [row.item for row in stage.desk.jobs._rows.values()]
            invoke(sweep, stage, "stream", stream_event(*images))
            invoke(sweep, stage, "support", {"Records": tickets})
            stage.desk.clock.advance(4000)
            for function in SCHEDULED:
                invoke(sweep, stage, function, {})
        look(sweep, stage, but=frozenset(keys))
        clean(sweep)
        assert len(planted) > 80
        assert not sweep.raised


@pytest.mark.fault("I1")
@pytest.mark.parametrize("function", HANDLERS)
def test_what_is_no_event_is_not_shown(tmp_path: Path, function: str) -> None:
    """A code at most."""
    records: list[Any] = [CANARY, [CANARY], {CANARY: CANARY}, None]
    events: list[Any] = [CANARY, [CANARY], {CANARY: CANARY}, *({"Records": strange} for strange in records)]
    with swept(tmp_path) as (sweep, stage):
        for event in events:
            invoke(sweep, stage, function, event)
        look(sweep, stage)
        clean(sweep)


@pytest.mark.fault("I1")
@pytest.mark.parametrize("function", HANDLERS)
def test_a_broken_store_is_not_shown(tmp_path: Path, function: str) -> None:
    """Whatever a library's error says, the door says its type."""

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(CANARY)

    with swept(tmp_path) as (sweep, stage):
        job = stage.enqueue(payload=PAYLOAD)
        item = stage.desk.jobs.item(job.job_id)
        for name in ("jobs", "queues", "dead_letters", "effects", "ledger", "viewer", "board"):
            setattr(stage.desk, name, Broken())
        records = {"stream": stream_event(item), "support": {"Records": [sqs_record(job)]}}
        with suppress(RuntimeError):
            invoke(sweep, stage, function, records.get(function, {}))
        clean(sweep)


@pytest.mark.req("R14")
def test_a_producers_mistake_does_not_repeat_their_text(tmp_path: Path) -> None:
    """Errors name fields: for every field of a request that can be given text, and for a conflict."""
    with swept(tmp_path) as (sweep, stage):
        wrong: list[dict[str, Any]] = [
            {"tenant": CANARY},
            {"key": CANARY},
            {"key": ["a", CANARY]},
            {"priority": CANARY},
            {"not_before": CANARY},
            {"payload": CANARY},
            {"payload": {CANARY: float("nan")}},
            {"payload": {CANARY: object()}},
            {"payload": {CANARY: {1: CANARY}}},
            {"payload": {"a": CANARY + "\ud800"}},
            {"payload": {CANARY: CANARY * 20_000}},
        ]
        for request in wrong:
            with pytest.raises(BadInput) as refused:
                stage.desk.enqueue("answer_event", **request)
            sweep.lambda_prints(refused.value)
        stage.enqueue("same", payload={"a": 1})
        with pytest.raises(EnqueueConflict) as conflict:
            stage.enqueue("same", payload={"a": CANARY})
        sweep.lambda_prints(conflict.value)
        look(sweep, stage)
        clean(sweep)


@pytest.mark.fault("I5")
def test_an_operators_words_stand_in_the_history_alone(tmp_path: Path) -> None:
    """Why somebody acted is theirs to write: it is kept with the act, and is in no log and no message."""
    with swept(tmp_path) as (sweep, stage):
        set_switch(
            "all",
            Level.DRAIN,
            by="operator",
            why=CANARY,
            lanes=stage.desk.lanes,
            control=stage.desk.control,  # type: ignore[arg-type]
            history=stage.desk.history,
            clock=stage.desk.clock,
        )
        stage.enqueue("a", payload=PAYLOAD)
        settle_down(sweep, stage)
        look(sweep, stage)
        assert sweep.hits() == ["table control", "table history"]
        assert sweep.forged() == []


def test_the_content_store_holds_what_it_should(tmp_path: Path) -> None:
    """The one place: the payload as it was given, and what a task kept."""
    with swept(tmp_path, tasks=TASKS) as (_, stage):
        job = stage.desk.enqueue("keep_text", payload=PAYLOAD)
        stage.returned(sqs_record(stage.desk.job(job.job_id)))
        after = stage.desk.job(job.job_id)
        assert stage.desk.content.get(after.payload_ref or "") == canonical_payload(PAYLOAD)
        assert stage.desk.content.get(after.result_ref or "") == CANARY.encode()
