"""What the change feed's part of the Control stack promises: the second reader of the stream, and the last."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from infra import naming
from infra.control import SIZES, STREAM_BATCH, feed_filters
from infra.grants import GRANTS, Resource, granted
from infra.rules.stores import MAX_READERS
from shared.adapters.aws.clients import CONNECT_TIMEOUT_S, READ_TIMEOUT_S
from shared.adapters.aws.feed import BATCH
from shared.contract import env, names
from shared.core import lifecycle
from shared.core.job import Status
from shared.usecases.publish_changes import FIRST_WAIT_S, TRIES
from tests.infra.conftest import Synthesized
from tests.infra.test_control import passes, reader_of_the_stream

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]


@pytest.mark.req("R15")
@pytest.mark.parametrize(
    ("was", "now"), [(None, now) for now in Status] + [(r.was, r.to) for r in lifecycle.MOVES], ids=str
)
def test_the_feed_is_started_by_changes_of_state_alone(was: Status | None, now: Status) -> None:
    """Every new job and every edge of the lifecycle that leads to another state; none that stays."""
    image = {"status": {"S": now.value}, "wpk": {"S": "s#0#2"}}
    assert passes(image, was and was.value, feed_filters()) is (was is not now)


@pytest.mark.req("R15")
@pytest.mark.parametrize("was", Status)
def test_a_removal_starts_nobody(was: Status) -> None:
    """Expired or deleted: its end was told when it ended."""
    assert not passes(None, was.value, feed_filters())


@pytest.mark.parametrize("was", [None, "x"])
def test_a_row_that_is_no_job_starts_nobody(was: str | None) -> None:
    """Ring rows change all the time."""
    assert not passes({"wpk": {"S": "RING#a"}}, was, feed_filters(), pk="RING#a#b")


def test_the_filters_fit() -> None:
    """Lambda takes five filters of 4,096 characters without being asked for more."""
    assert len(feed_filters()) <= 5
    assert all(len(pattern) <= 4096 for pattern in feed_filters())


@pytest.mark.fault("B12")
def test_the_second_reader_is_as_safe_as_the_first(every_stage: Synthesized) -> None:
    """From the oldest record, bisected, finite retries, a failure queue of its own; it tells where to go on."""
    first, second = (reader_of_the_stream(every_stage, name) for name in ("stream", "feed"))
    own = {"FunctionName", "FilterCriteria", "DestinationConfig", "FunctionResponseTypes", "Tags"}
    assert {k: v for k, v in first.items() if k not in own} == {k: v for k, v in second.items() if k not in own}
    assert second["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert [one["Pattern"] for one in second["FilterCriteria"]["Filters"]] == feed_filters()
    failures = every_stage.assembly.queue_of("Control", second["DestinationConfig"]["OnFailure"]["Destination"])
    assert failures is not None
    assert failures.properties["QueueName"] == naming.failure_queue(every_stage.spec.name, "feed")


@pytest.mark.fault("B12")
def test_nobody_else_reads_the_stream(every_stage: Synthesized) -> None:
    """Two readers, as many as a shard bears."""
    of_streams = [
        mapping
        for mapping in every_stage.assembly.resources("AWS::Lambda::EventSourceMapping")
        if "StartingPosition" in mapping.properties
    ]
    assert len(of_streams) == MAX_READERS
    assert len({json.dumps(one.properties["EventSourceArn"], sort_keys=True) for one in of_streams}) == 1


def test_a_batch_of_the_stream_is_one_call() -> None:
    """As many records as PutEvents takes entries."""
    assert STREAM_BATCH == BATCH


def test_every_try_fits_into_one_invocation() -> None:
    """A bus that answers nobody is told as such by the feed itself, before Lambda ends it."""
    pauses_s = sum(FIRST_WAIT_S * 2**number for number in range(TRIES - 1))
    assert TRIES * (CONNECT_TIMEOUT_S + READ_TIMEOUT_S) + pauses_s < SIZES["feed"].timeout_s - 5


def test_the_feed_may_publish_on_the_stages_own_bus_and_nothing_else(every_stage: Synthesized) -> None:
    """No table, no queue, no secret, no content; and nobody else may publish."""
    assert granted("feed", to_code=True) == {(Resource.EVENT_BUS, "events:PutEvents")}
    may = {name for name, grants in GRANTS.items() for grant in grants if grant.on is Resource.EVENT_BUS}
    assert may == {"feed"}
    bus = every_stage.the("AWS::Events::EventBus")
    assert bus.properties["Name"] == names.event_bus(every_stage.spec.name)
    statements = [
        statement
        for policy in every_stage.assembly.resources("AWS::IAM::Policy")
        for statement in policy.properties["PolicyDocument"]["Statement"]
        if "events:PutEvents" in statement["Action"]
    ]
    (statement,) = statements
    assert str(statement["Resource"]).endswith(f":event-bus/{names.event_bus(every_stage.spec.name)}']]}}")


def test_the_feed_is_told_its_bus_and_nothing_else(every_stage: Synthesized) -> None:
    """It reads no row and needs no lane."""
    told: dict[str, Any] = every_stage.function("feed").properties["Environment"]["Variables"]
    ours = {name: value for name, value in told.items() if name.startswith("PENSTOCK_")}
    assert ours == {env.STAGE: every_stage.spec.name, env.EVENT_BUS: names.event_bus(every_stage.spec.name)}


def test_every_state_can_follow_every_other_without_being_missed() -> None:
    """Also an edge the lifecycle does not have today: the filters know of states, not of edges."""
    for was, now in product(Status, Status):
        if was is not now:
            assert passes({"status": {"S": now.value}}, was.value, feed_filters())
