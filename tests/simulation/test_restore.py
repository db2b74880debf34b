"""A restore rewinds the guards: the runbook's own code, run on a world in the middle of its work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from moto import mock_aws

from shared.adapters.memory.faults import Fault
from shared.contract import names, table
from shared.core.job import Category, Status
from tests.contract.tables import create_tables
from tests.simulation.plans import once
from tests.vendors_and_tasks import VendorKind
from tests.world import World

RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "deploy.md"
pytestmark = pytest.mark.simulation


def blocks(heading: str) -> list[str]:
    """The runbook's Python code under one of its headings, as a person would paste it."""
    section = RUNBOOK.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"^( *)```python\n(.*?)^ *```", section, re.MULTILINE | re.DOTALL)
    return ["\n".join(line.removeprefix(indent) for line in code.splitlines()) for indent, code in found]


COPY_BACK, PARK = blocks("Restore")


def interrupted() -> tuple[World, str]:
    """A worker died after its send was recorded and before its job was settled; another job still waits."""
    world = World(vendor=VendorKind.NEITHER, plan=once(Fault.CRASH_AFTER, "w1", "effects", "accept"))
    job_id = world.enqueue()
    world.run_for(5)
    assert len(world.vendor.accepts) == 1
    assert world.job(job_id).status is Status.PROCESSING
    return world, job_id


def rewind_effects(world: World) -> None:
    """The effects table as it was before anything was sent."""
    world.effects._rows.clear()


def run_on_the_rows(code: str, world: World) -> None:
    """Run the runbook's code on a table with the world's rows, and take over what it wrote."""
    import boto3

    with mock_aws():
        client = boto3.client("dynamodb")
        create_tables(client, "prod", only=["jobs"])
        for job_id in world.requests:
            client.put_item(TableName=names.table("prod", "jobs"), Item=world.jobs.item(job_id) or {})
        exec(compile(code, str(RUNBOOK), "exec"), {})
        for item in client.scan(TableName=names.table("prod", "jobs"))["Items"]:
            world.jobs.plant(item)


def test_a_rewound_guard_alone_would_send_twice() -> None:
    """The danger is real: without the runbook the same customer gets the same message again."""
    world, _ = interrupted()
    rewind_effects(world)
    assert world.run_until_quiet()
    assert len(world.vendor.accepts) == 2


@pytest.mark.fault("C9")
def test_after_the_restore_drill_nothing_is_sent_twice() -> None:
    """Parked by the runbook's own code, the job waits for an operator with evidence; what is enqueued later runs."""
    world, job_id = interrupted()
    rewind_effects(world)
    run_on_the_rows(PARK, world)
    later = world.enqueue(key="event-2")
    assert world.run_until_quiet()
    assert len(world.vendor.accepted(world.vendor.accepts[0].key or "")) == 1
    assert (world.job(job_id).status, world.job(job_id).category) == (Status.FAILED, Category.OUTCOME_UNKNOWN)
    assert world.job(later).status is Status.COMPLETED
    assert world.verdict().duplicates == {}


@pytest.mark.fault("C9")
def test_copying_back_leaves_newer_rows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is missing comes back; a row that went on since the restore point stays as it is."""
    import boto3

    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with mock_aws():
        client = boto3.client("dynamodb")
        create_tables(client, "prod", only=["jobs"])
        live, restored = names.table("prod", "jobs"), f"{names.table('prod', 'jobs')}-restored"
        client.create_table(
            TableName=restored,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": table.PK, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": table.PK, "AttributeType": "S"}],
        )
        client.put_item(TableName=live, Item={"pk": {"S": "JOB#1"}, "status": {"S": "completed"}})
        for pk in ("JOB#1", "JOB#2"):
            client.put_item(TableName=restored, Item={"pk": {"S": pk}, "status": {"S": "queued"}})
        exec(compile(COPY_BACK, str(RUNBOOK), "exec"), {})
        rows = {item["pk"]["S"]: item["status"]["S"] for item in client.scan(TableName=live)["Items"]}
    assert rows == {"JOB#1": "completed", "JOB#2": "queued"}
