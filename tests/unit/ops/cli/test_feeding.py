"""A lane whose workers are not fed: `jobs why` and `status` say so, beside gates that are all open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ops.cli.feeding import trouble_of
from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.contract import names
from shared.core.job import Job
from shared.core.message import message_of
from shared.core.switches import Switches
from tests.builders import a_job
from tests.unit.ops.cli.cloud import Cloud, Service, failure
from tests.unit.ops.cli.conftest import STAGE, feed

WORKER = names.function(STAGE, names.worker("support"))


class Source:
    """The event source of lane `support`, and who changes it."""

    def __init__(self, stage: Stage) -> None:
        self.lambda_ = client("lambda")
        feed("support")
        (mapping,) = self.lambda_.list_event_source_mappings()["EventSourceMappings"]
        self.id = mapping["UUID"]
        self.now = stage.clock.now

    def enabled(self, yes: bool) -> None:
        self.lambda_.update_event_source_mapping(UUID=self.id, Enabled=yes)

    def reserve(self, workers: int) -> None:
        self.lambda_.put_function_concurrency(FunctionName=WORKER, ReservedConcurrentExecutions=workers)

    def refuse(self, starts: int) -> None:
        point = {
            "MetricName": "Throttles",
            "Dimensions": [{"Name": "FunctionName", "Value": WORKER}],
            "Timestamp": self.now() - timedelta(minutes=2),
            "Value": starts,
        }
        client("cloudwatch").put_metric_data(Namespace="AWS/Lambda", MetricData=[point])


@pytest.fixture
def job(deployed: Stage) -> Job:
    """A job in its queue, with every gate open."""
    now = deployed.clock.now()
    job = a_job(created_at=now, updated_at=now)
    deployed.jobs.put(job)
    deployed.queues.send([message_of(job)])
    return job


def told(penstock: Any, job: Job) -> tuple[str | None, bool]:
    """What `jobs why` and `status` say of it, in one voice; whether the job can run."""
    why = penstock("jobs", "why", job.job_id, "--json").document
    (support, _) = penstock("status", "--json").document["lanes"]
    assert support["troubles"] == ([] if why["trouble"] is None else [why["trouble"]])
    text = " ".join((penstock("jobs", "why", job.job_id).out + penstock("status").out).split())
    assert why["trouble"] is None or text.count(why["trouble"]) >= 2
    assert (why["earliest"] is not None) == why["runs_now"]
    return why["trouble"], why["runs_now"]


@pytest.mark.fault("B10")
def test_a_lane_that_nothing_feeds_is_explained(penstock: Any, deployed: Stage, job: Job) -> None:
    """No source; one that somebody disabled; a worker that may not start, or is refused now and then."""
    assert told(penstock, job) == ("nothing feeds its workers: deploy the lane's stack", False)
    source = Source(deployed)
    assert told(penstock, job) == (None, True)
    source.enabled(False)
    trouble, runs = told(penstock, job)
    assert "disabled by somebody" in str(trouble)
    assert not runs
    source.enabled(True)
    source.reserve(0)
    trouble, runs = told(penstock, job)
    assert "reserved concurrency is 0" in str(trouble)
    assert not runs
    source.reserve(2)
    assert told(penstock, job) == (None, True)
    source.refuse(12)
    trouble, runs = told(penstock, job)
    assert "refused 12 starts" in str(trouble)
    assert runs


@pytest.mark.fault("B10")
def test_a_lane_stopped_on_purpose_says_what_ends_that(penstock: Any, deployed: Stage, job: Job) -> None:
    """A pin of 0 closes no gate: the only place where it shows is its event source."""
    source = Source(deployed)
    source.enabled(False)
    penstock("capacity", "pin", "support", "0", "--for", "1h", "--why", "stop")
    trouble, runs = told(penstock, job)
    assert "by a halt or a pin of 0" in str(trouble)
    assert not runs
    penstock("capacity", "unpin", "support", "--reset", "--why", "over")
    penstock("control", "set", "lane/support", "halt", "--why", "stop")
    assert "by a halt or a pin of 0" in str(told(penstock, job)[0])


@pytest.mark.fault("B10")
def test_what_may_not_be_looked_at_is_told_and_stops_no_page() -> None:
    """Whoever may read jobs and not the platform sees the gates all the same."""

    class Closed(Cloud):
        def client(self, service: str) -> Any:
            return Service(list_event_source_mappings=failure("AccessDeniedException", "ListEventSourceMappings"))

    cloud = Closed()
    trouble = trouble_of(cloud, cloud.lanes["support"], Switches())
    assert trouble is not None
    assert "access denied" in trouble.sentence
    assert not trouble.stops
