"""The local stack itself, on the real emulator with the real app."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from infra.stage import load_stage
from ops.local import logs, processes, stack, state
from ops.local.clients import Clients
from ops.local.compare import assert_deployed
from ops.local.fingerprint import fingerprint
from ops.local.state import StackState
from ops.local.template import StackTemplate, load
from shared.contract import names
from tests.e2e.paths import LANE, LocalStage, hold_cap, let_cap_go
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

STAGE = "local"


@pytest.fixture(scope="module")
def templates(local_stack: StackState) -> tuple[StackTemplate, ...]:
    return load(state.folder(local_stack.name) / "cdk.out")


def _run(clients: Clients, schedule: str) -> dict[str, Any]:
    """Run a scheduled function now, as its schedule would."""
    event = {"schedule": schedule, "scheduled_at": datetime.now(UTC).isoformat()}
    reply = clients.of("lambda").invoke(
        FunctionName=names.function(STAGE, schedule), Payload=json.dumps(event).encode()
    )
    answer: dict[str, Any] = json.loads(reply["Payload"].read())
    assert "FunctionError" not in reply, answer
    return answer


def test_up_again_returns_at_once(local_stack: StackState) -> None:
    """A running stack with an unchanged app is not deployed a second time."""
    told: list[str] = []
    record = state.read(local_stack.name)
    assert record is not None
    if fingerprint(state.ROOT) != record.fingerprint:
        pytest.skip("somebody changed the app since this session began")
    assert stack.up(name=local_stack.name, app_dir=state.ROOT, progress=told.append) == local_stack
    assert told == []


def test_the_environment_leads_boto3_to_the_stack(local_stack: StackState) -> None:
    """A plain client, made from the environment alone, sees the tables of the stage."""
    found = boto3.client("dynamodb").list_tables()["TableNames"]
    assert {names.table(STAGE, name) for name in names.TABLES} <= set(found)


def test_nothing_listens_beyond_loopback(local_stack: StackState, local_clients: Clients) -> None:
    """No process of the stack, functions included, can be reached from another machine."""
    _run(local_clients, "sweeper")  # so that a function's process is among them
    if not Path("/proc/net/tcp").exists():
        pytest.skip("reads the kernel's socket table")
    listening = dict(_listeners())
    ours = [
        listening[inode]
        for pid in (*processes.group(local_stack.emulator_pid), *processes.group(local_stack.vendor_pid))
        for inode in _sockets(pid)
        if inode in listening
    ]
    assert len(ours) >= 2
    assert {address.rpartition(":")[0] for address in ours} == {"0100007F"}  # 127.0.0.1, as the kernel writes it


def _listeners() -> Iterator[tuple[str, str]]:
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                yield fields[9], fields[1]


def _sockets(pid: int) -> Iterator[str]:
    for handle in Path("/proc", str(pid), "fd").iterdir():
        try:
            target = os.readlink(handle)
        except OSError:
            continue
        if target.startswith("socket:["):
            yield target.removeprefix("socket:[").removesuffix("]")


@pytest.fixture
def _caps_as_deployed(stage: LocalStage) -> Iterator[None]:
    """The governor moves caps while tests make jobs wait: held at the baseline, they stay where a deploy puts them."""
    governed = [lane for lane in stage.lanes.values() if lane.run is None]
    for lane in governed:
        hold_cap(stage, lane.name, lane.baseline)
    yield
    for lane in governed:
        let_cap_go(stage, lane.name)


@pytest.mark.usefixtures("_caps_as_deployed")
def test_deployed_equals_template(templates: tuple[StackTemplate, ...], local_clients: Clients) -> None:
    """Every property the templates set is as they set it, after what the emulator left out was said again."""
    assert [str(one) for one in assert_deployed(templates, local_clients)] == []


def test_the_emulator_still_leaves_things_out(local_stack: StackState) -> None:
    """The repair is needed: recovery and expiry of the jobs table were among what was said again."""
    said = (state.folder(local_stack.name) / "repairs.log").read_text()
    assert "PointInTimeRecoverySpecification" in said
    assert "TimeToLiveSpecification" in said


def _visibility(stage: LocalStage) -> Callable[[], None]:
    sqs = stage.clients.of("sqs")
    url = sqs.get_queue_url(QueueName=names.queue(STAGE, "support"))["QueueUrl"]
    before = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "7"})
    return lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes=before)


def _concurrency(stage: LocalStage) -> Callable[[], None]:
    """By a pin: whatever else is written there, the governor's next look takes back."""
    lane = stage.lanes[LANE]
    hold_cap(stage, lane.name, lane.ceiling)
    return lambda: hold_cap(stage, lane.name, lane.baseline)


def _expiry(stage: LocalStage) -> Callable[[], None]:
    dynamodb = stage.clients.of("dynamodb")
    table = names.table(STAGE, "jobs")
    before = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]["AttributeName"]

    def set_to(enabled: bool) -> None:
        specification = {"Enabled": enabled, "AttributeName": before}
        dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=specification)

    set_to(False)
    return lambda: set_to(True)


def _timeout(stage: LocalStage) -> Callable[[], None]:
    client = stage.clients.of("lambda")
    name = names.function(STAGE, "triage")
    before = client.get_function_configuration(FunctionName=name)["Timeout"]
    client.update_function_configuration(FunctionName=name, Timeout=before + 1)
    return lambda: client.update_function_configuration(FunctionName=name, Timeout=before)


@pytest.mark.usefixtures("_caps_as_deployed")
@pytest.mark.parametrize(
    ("plant", "where", "what"),
    [
        (_visibility, "AWS::SQS::Queue", "VisibilityTimeout"),
        (_concurrency, "AWS::Lambda::EventSourceMapping", "ScalingConfig.MaximumConcurrency"),
        (_expiry, "AWS::DynamoDB::GlobalTable", "TimeToLiveSpecification.Enabled"),
        (_timeout, "AWS::Lambda::Function", "Timeout"),
    ],
)
def test_a_planted_difference_is_found(
    templates: tuple[StackTemplate, ...],
    stage: LocalStage,
    plant: Callable[[LocalStage], Callable[[], None]],
    where: str,
    what: str,
) -> None:
    """A property changed behind the template's back is found, and nothing else is."""
    undo = plant(stage)
    try:
        found = assert_deployed(templates, stage.clients)
    finally:
        undo()
    assert {(one.resource.type, one.property.removesuffix(".AttributeName")) for one in found} - {
        (where, "TimeToLiveSpecification")
    } == {(where, what)}
    assert assert_deployed(templates, stage.clients) == []


def test_calls_are_recorded_by_function(local_stack: StackState, local_clients: Clients) -> None:
    """What a function asks of AWS is known by its name, action and resource."""
    _run(local_clients, "sweeper")
    function = names.function(STAGE, "sweeper")
    until(lambda: function in stack.calls(local_stack.name), "the function's calls")
    where = f"{local_stack.region}:{local_stack.account}"
    index = f"arn:aws:dynamodb:{where}:table/{names.table(STAGE, 'jobs')}/index/{names.WAITING_INDEX}"
    until(lambda: ("dynamodb:Query", index) in stack.calls(local_stack.name)[function], "the query to be recorded")
    lanes = load_stage(STAGE).lanes.values()
    workers = [names.worker(lane.name) for lane in lanes if lane.run is None]
    runs = [names.run(lane.name, role) for lane in lanes for role in lane.runs]
    known = {
        names.function(STAGE, name) for name in (*names.ENGINE_FUNCTIONS, *workers, *runs, names.intake("support"))
    }
    assert set(stack.calls(local_stack.name)) <= known
    assert not [pair for pairs in stack.calls(local_stack.name).values() for pair in pairs if "unreadable" in pair[0]]


def test_a_run_out_of_turn_finds_what_the_run_before_counted(stage: LocalStage) -> None:
    """Its slot is made free for it, and the record of who had it stays: triage looks again only at what changed."""
    for _ in range(3):
        stage.run("triage")
    runs = stage.ledger.runs("triage", limit=2)
    assert len({run.run_id for run in runs}) == 2
    assert all(run.finished_at is not None and f"{LANE}.depth" in run.counts for run in runs)


def test_a_functions_log_can_be_read(local_stack: StackState, local_clients: Clients) -> None:
    """Every function has a log, what it wrote is in it, and older lines can be left out."""
    began = datetime.now(UTC) - timedelta(seconds=1)
    _run(local_clients, "sweeper")
    function = names.function(STAGE, "sweeper")
    assert function in logs.functions(local_stack)
    lines = list(stack.logs(local_stack.name, function, since=began))
    assert any(line.text.startswith("START") for line in lines)
    assert any(line.text.startswith("{") for line in lines)
    assert all(line.at >= began for line in lines)
    assert list(stack.logs(local_stack.name, function, since=datetime.now(UTC) + timedelta(hours=1))) == []


def test_the_worker_speaks_to_the_simulated_vendor(local_stack: StackState, local_clients: Clients) -> None:
    """The vendors' addresses that the stage was deployed with are the simulator's, and it answers there."""
    told = local_clients.of("ssm").get_parameter(Name=names.vendors_parameter(STAGE))["Parameter"]["Value"]
    addresses = [vendor["base_url"] for vendor in json.loads(told).values()]
    assert addresses
    assert all(address.startswith(local_stack.vendor_url) for address in addresses)
    with urllib.request.urlopen(f"{local_stack.vendor_url}/_sim/summary?vendor=helpdesk", timeout=60) as reply:
        assert reply.status == 200


def test_a_second_copy_runs_beside_and_leaves_nothing(local_stack: StackState) -> None:
    """Two stacks know nothing of each other; stopping one ends its functions too and leaves the other."""
    name = f"{local_stack.name}-second"[:48]
    try:
        second = stack.up(name=name, app_dir=state.ROOT)
        assert second.endpoint != local_stack.endpoint
        clients = Clients(endpoint=second.endpoint, access_key=second.access_key)
        _run(clients, "sweeper")
        assert len(processes.group(second.emulator_pid)) >= 2
        table = names.table(STAGE, "jobs")
        clients.of("dynamodb").put_item(TableName=table, Item=_row_for(clients, table))
        mine = boto3.client("dynamodb").scan(TableName=table, FilterExpression="attribute_exists(beside)")
        assert mine["Count"] == 0
    finally:
        assert stack.down(name=name)
    assert processes.group(second.emulator_pid) == []
    assert processes.group(second.vendor_pid) == []
    assert stack.status(name=name) is None
    assert stack.status(name=local_stack.name) == local_stack


def _row_for(clients: Clients, table: str) -> dict[str, dict[str, str]]:
    keys = clients.of("dynamodb").describe_table(TableName=table)["Table"]["KeySchema"]
    return {**{key["AttributeName"]: {"S": "x"} for key in keys}, "beside": {"S": "x"}}
