"""What the DynamoDB adapters ask for: one call each, the law's conditions, and no answer means Unavailable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from infra.grants import Resource, granted
from shared.adapters import rows
from shared.adapters.aws import conditions
from shared.adapters.aws.clients import settings
from shared.adapters.aws.content import S3ContentStore
from shared.adapters.aws.control import DynamoDbControlStore
from shared.adapters.aws.effects import DynamoDbEffectStore
from shared.adapters.aws.history import DynamoDbHistory
from shared.adapters.aws.jobs import CLAIM, CLAIM_CONDITION, CLAIM_IN_RUN, DynamoDbJobStore
from shared.adapters.aws.ledger import DynamoDbLedger
from shared.contract import names, table
from shared.core import lifecycle
from shared.core.capacity import CapacityState
from shared.core.errors import Unavailable, UnreadableRow
from shared.core.history import HistoryEvent
from shared.core.schedule import RunRecord
from shared.core.switches import Level, Switch
from tests.builders import NOW, a_job, a_lane, a_switch, an_effect_row
from tests.contract.tables import create_tables

LANES = {"support": a_lane()}


class Recorder:
    """A client that notes what is asked and answers as told."""

    def __init__(self, answer: Any = None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self._answer = answer

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**asked: Any) -> Any:
            self.calls.append((name, asked))
            if isinstance(self._answer, Exception):
                raise self._answer
            return self._answer or {}

        return call


@pytest.mark.req("R8")
def test_the_claim_condition_is_the_lifecycles() -> None:
    """The sentence of the law, clause by clause: queued, and no time of its own or one within two seconds."""
    assert lifecycle.CLAIM_CONDITION == "status = queued and (not_before_at is null or not_before_at <= now + 2 s)"
    assert f"{conditions.STILL_QUEUED} AND {conditions.DUE}" == CLAIM_CONDITION
    before = rows.job_item(a_job())
    client = Recorder({"Attributes": before})
    store = DynamoDbJobStore(client=client, table_name="t", lanes=LANES)  # type: ignore[arg-type]
    store.claim(a_job().job_id, by="w1/a", now=NOW)
    ((operation, asked),) = client.calls
    assert operation == "update_item"
    values = asked["ExpressionAttributeValues"]
    assert values[":queued"] == {"S": "queued"}
    assert values[":due_until"] == {"S": "2026-01-01T00:00:02.000Z"}
    assert asked["ConditionExpression"] == CLAIM_CONDITION


def _expressions() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every request the job and effect stores make in a job's life."""
    job, row = a_job(due=NOW), an_effect_row()
    client = Recorder({"Attributes": rows.job_item(a_job()), "Items": []})
    store = DynamoDbJobStore(client=client, table_name="t", lanes=LANES)  # type: ignore[arg-type]
    store.put(job)
    store.claim(job.job_id, by="w1/a", now=NOW)
    store.move(job, lifecycle.canceled(job, LANES["support"], "ops", NOW))
    store.move(a_job(), lifecycle.held(a_job(), "capacity:support", NOW))
    store.waiting(LANES["support"], due_before=NOW, limit=5)
    effects_client = Recorder({"Attributes": rows.effect_item(row), "Items": []})
    effects = DynamoDbEffectStore(client=effects_client, table_name="t")  # type: ignore[arg-type]
    effects.intend(row)
    effects.take_over(row, fence=2, now=NOW)
    effects.record(row, row)
    effects.of_job(row.job_id)
    yield from (*client.calls, *effects_client.calls)


def test_every_name_and_value_of_a_request_is_defined_and_used() -> None:
    """DynamoDB refuses an undefined or an unused placeholder; emulators do not all."""
    for operation, asked in _expressions():
        text = " ".join(value for name, value in asked.items() if name.endswith("Expression"))
        used_names, used_values = set(re.findall(r"#\w+", text)), set(re.findall(r":\w+", text))
        assert set(asked.get("ExpressionAttributeNames", {})) == used_names, operation
        assert set(asked.get("ExpressionAttributeValues", {})) == used_values, operation


def test_no_two_parts_of_an_update_touch_one_attribute() -> None:
    """DynamoDB refuses overlapping paths; a claim and a move write each attribute once."""
    for _, asked in _expressions():
        update = asked.get("UpdateExpression", "")
        sets, _, removes = update.removeprefix("SET ").partition(" REMOVE ")
        written = [*re.findall(r"(#\w+) =", sets), *re.findall(r"#\w+", removes)]
        assert len(written) == len(set(written))


def test_a_claim_writes_what_its_row_is_said_to_be() -> None:
    """The update and `rows.claimed_item`, which tells what it makes of a row, change the same attributes."""
    before = rows.job_item(a_job(due=NOW, blocked_by="x", not_before_at=NOW, route="native"), "support#0#2")
    for update, run in ((CLAIM, None), (CLAIM_IN_RUN, ("CLAIMED#support", "now"))):
        after = rows.claimed_item(before, by="w1/a", now=NOW, run=run)
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)} | {"updated_at"}
        assert {name[1:] for name in re.findall(r"#\w+", update)} == changed


@pytest.mark.fault("C1")
@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "InternalServerError"])
def test_a_store_that_does_not_answer_is_unavailable(code: str) -> None:
    """Every operation of every store says so in the same way, with the store's name."""
    client: Any = Recorder(ClientError({"Error": {"Code": code, "Message": ""}}, "Any"))
    jobs = DynamoDbJobStore(client=client, table_name="t", lanes=LANES)
    effects = DynamoDbEffectStore(client=client, table_name="t")
    control = DynamoDbControlStore(client=client, table_name="t")
    ledger = DynamoDbLedger(client=client, table_name="t")
    history = DynamoDbHistory(client=client, table_name="t")
    content = S3ContentStore(client=client, bucket="b")
    job, row = a_job(), an_effect_row()
    run = RunRecord(schedule="s", slot="x", run_id="r", started_at=NOW, finished_at=NOW)
    asked: dict[str, list[Callable[[], Any]]] = {
        "jobs": [
            lambda: jobs.put(job),
            lambda: jobs.get(job.job_id),
            lambda: jobs.claim(job.job_id, by="w", now=NOW),
            lambda: jobs.move(job, lifecycle.canceled(job, LANES["support"], "ops", NOW)),
            lambda: jobs.waiting(LANES["support"], due_before=NOW, limit=1),
            lambda: jobs.claimed_by_runs(LANES["support"], before=NOW, limit=1),
            lambda: list(jobs.scan()),
        ],
        "effects": [
            lambda: effects.intend(row),
            lambda: effects.take_over(row, fence=2, now=NOW),
            lambda: effects.record(row, row),
            lambda: effects.of_job(job.job_id),
        ],
        "control": [
            control.switches,
            lambda: control.set_switch(a_switch()),
            lambda: control.capacity("support"),
        ],
        "ledger": [
            lambda: ledger.open_run(run),
            lambda: ledger.close_run(run),
            lambda: ledger.runs("s", limit=1),
        ],
        "history": [
            lambda: history.append(HistoryEvent(subject="s", event_id="e", at=NOW, kind="k", by="o")),
            lambda: history.of("s", limit=1),
        ],
        "content": [lambda: content.put("r", b""), lambda: content.get("r"), lambda: content.delete("r")],
    }
    for what, operations in asked.items():
        for operation in operations:
            with pytest.raises(Unavailable, match=f"{what} is unavailable \\({code}\\)"):
                operation()


def test_one_call_an_operation() -> None:
    """Nothing is read before it is written."""
    calls = [operation for operation, _ in _expressions()]
    assert calls.count("get_item") == 0
    assert calls == ["put_item", *["update_item"] * 3, *["query"] * 4, *["update_item"] * 3, "query"]


def test_pages_are_read_to_the_end() -> None:
    """A scan and an index partition go on where the last page ended, and stop at the limit."""
    client = boto3.client("dynamodb", config=settings("dynamodb"))
    key = {"pk": {"S": "JOB#x"}}
    store = DynamoDbJobStore(client=client, table_name="t", lanes=LANES)
    jobs = [a_job(key=f"event-{n}", due=NOW, not_before_at=NOW) for n in range(4)]
    items = [rows.job_item(job, "support#0#2") for job in jobs]
    with Stubber(client) as stub:
        stub.add_response("scan", {"Items": items[:2], "LastEvaluatedKey": key})
        stub.add_response(
            "scan",
            {"Items": items[2:]},
            {"TableName": "t", "Segment": 1, "TotalSegments": 4, "ExclusiveStartKey": key},
        )
        assert list(store.scan(segment=1, segments=4)) == jobs
        for priority in range(4):
            found = {"Items": items[:3], "LastEvaluatedKey": key} if priority == 2 else {"Items": []}
            stub.add_response("query", found)
        assert len(store.waiting(LANES["support"], due_before=NOW, limit=3)) == 3
        stub.assert_no_pending_responses()


def test_a_strange_index_key_does_not_stop_its_lane() -> None:
    """The neighbours of an entry that cannot be read are nominated."""
    job = a_job(due=NOW, not_before_at=NOW)
    good = rows.job_item(job, "support#0#2")
    strange = {"pk": {"S": "JOB#x"}, "wpk": {"S": "support#0#2"}, "wsk": {"S": "0000"}}
    client: Any = Recorder({"Items": [strange, good]})
    store = DynamoDbJobStore(client=client, table_name="t", lanes=LANES)
    entries = store.claimed_by_runs(LANES["support"], before=NOW + timedelta(hours=1), limit=5)
    assert [entry.job_id for entry in entries] == [job.job_id]


@mock_aws
def test_the_first_two_switches_ever_do_not_erase_each_other() -> None:
    """Two people set the first switch at once: both found no map, both make it, both settings stand."""
    client = boto3.client("dynamodb")
    create_tables(client, "x", ["control"])
    name = names.table("x", "control")
    other = DynamoDbControlStore(client=client, table_name=name)

    class Interleaved(DynamoDbControlStore):
        """Somebody else gets in between the look and the making of the map."""

        turns = 0

        def _set(self, switch: Switch) -> bool:
            done = super()._set(switch)
            self.turns += 1
            if self.turns == 1:
                other.set_switch(a_switch("lane/support", Level.DRAIN))
            return done

    mine = Interleaved(client=client, table_name=name)
    mine.set_switch(a_switch("all", Level.HALT))
    assert mine.turns == 2
    assert set(other.switches().entries) == {"all", "lane/support"}


def test_a_denied_object_is_not_taken_for_an_absent_one() -> None:
    """Absent is None; anything else S3 refuses is raised."""
    denied: Any = Recorder(ClientError({"Error": {"Code": "AccessDenied", "Message": ""}}, "GetObject"))
    with pytest.raises(ClientError):
        S3ContentStore(client=denied, bucket="b").get("ref")


def test_every_condition_says_when_it_is_true() -> None:
    """Each clause has a name and its sentence, and no adapter writes one of its own."""
    import inspect

    from shared.adapters.aws import control, effects, history, jobs, ledger

    source = inspect.getsource(conditions)
    clauses = [name for name in vars(conditions) if name.isupper()]
    for name in clauses:
        assert re.search(rf'^{name} = .*?\n"""[A-Z].+?\."""', source, re.MULTILINE | re.DOTALL), name
    for module in (control, effects, history, jobs, ledger):
        assert not re.search(r"attribute_(not_)?exists", inspect.getsource(module)), module.__name__
    assert table.PK == "pk"


@pytest.mark.req("C13")
@pytest.mark.fault("J7")
def test_the_governor_closes_a_lane_with_what_it_is_granted() -> None:
    """Also as the first switch ever, and beside one: it may change rows of the control table, and put none."""
    client = Recorder({"Attributes": {}})
    control = DynamoDbControlStore(client=client, table_name="t")  # type: ignore[arg-type]
    control.switches()
    control.trip(a_switch("lane/support", Level.ROUTE_ONLY))
    control.capacity("support")
    control.set_capacity("support", None, CapacityState(cap=2))
    asked = {f"dynamodb:{name.title().replace('_', '')}" for name, _ in client.calls}
    assert asked == {action for on, action in granted("governor") if on is Resource.CONTROL}


@pytest.mark.fault("E8")
def test_a_switch_for_which_the_row_has_no_room_is_told() -> None:
    """DynamoDB refuses a row above 400 KB; whoever halts begins it anew. Anything else that is refused is a defect."""

    def control(code: str) -> DynamoDbControlStore:
        refused = ClientError({"Error": {"Code": code, "Message": "Item size has exceeded"}}, "UpdateItem")
        return DynamoDbControlStore(client=Recorder(refused), table_name="t")  # type: ignore[arg-type]

    with pytest.raises(UnreadableRow, match="scopes"):
        control("ValidationException").set_switch(a_switch())
    with pytest.raises(ClientError):
        control("AccessDeniedException").set_switch(a_switch())
