"""`penstock cost`: from counted calls and list prices, with everything it rests on."""

from __future__ import annotations

from typing import Any

import pytest

from ops.cli.prices import DEFLATED, ROW_BYTES, Load, bill
from ops.cli.stage import Stage
from ops.cli.standing import counted
from shared.adapters import content_rows
from shared.adapters.meter import item_size, read_units, write_units
from shared.contract.references import payload_row, row_key
from shared.core.job import job_id_of
from tests.builders import NOW
from tests.unit.adapters.test_content_rows import LETTER
from tests.unit.ops.cli.cloud import Cloud


def quantity(load: Load, what: str) -> float:
    """One line of the bill."""
    (found,) = [item.quantity for item in bill(load) if item.what == what]
    return found


@pytest.mark.parametrize(
    ("load", "units"),
    [
        (Load(jobs=1, effects=0, waits=0), 3),
        (Load(jobs=1, effects=0, waits=1), 8),
        (Load(jobs=1, effects=1, waits=0), 5),
        (Load(jobs=1000, effects=2, waits=0.5), 9500),
    ],
)
def test_write_units_are_the_engines(load: Load, units: float) -> None:
    """3 units for a job that runs at once, 8 for one that waits, 2 for each effect."""
    assert quantity(load, "write units") == pytest.approx(units)


def test_a_million_jobs(penstock: Any) -> None:
    """The items add up to the total, and the assumptions are there."""
    document = penstock("cost", "--jobs", "1e6", "--json").document
    assert document["total_usd"] == pytest.approx(sum(item["usd"] for item in document["items"]), abs=1e-4)
    assert document["per_million_usd"] == document["total_usd"]
    assert document["region"] == "us-east-1"
    assert len(document["assumptions"]) >= 4
    text = penstock("cost", "--jobs", "1e6").out
    for part in ("DynamoDB", "SQS", "Lambda", "1,000,000 jobs: $", "not counted"):
        assert part in text


def test_a_million_jobs_with_a_kilobyte_each(penstock: Any) -> None:
    """At most 5.50 $, told with what it rests on; the same as objects, or without any, for comparison."""
    told = penstock("cost", "--jobs", "1e6", "--json").document
    assert told["per_million_usd"] <= 5.5
    assert any("1,024 bytes are rows of one write unit" in sentence for sentence in told["assumptions"])
    services = [(item["service"], item["what"]) for item in told["items"]]
    assert not any(service == "S3" for service, _ in services)
    larger = penstock("cost", "--payload-bytes", "4097", "--json").document
    assert [item["what"] for item in larger["items"] if item["service"] == "S3"] == [
        "payloads written",
        "payloads read",
    ]
    none = penstock("cost", "--payload-bytes", "0", "--json").document
    assert not any("payloads" in item["what"] for item in none["items"])
    assert none["total_usd"] < told["total_usd"] < larger["total_usd"]


@pytest.mark.parametrize("size_bytes", [200, 500, 1024, 2000, 3000, 4096])
def test_units_of_a_payload_are_no_fewer_than_counted(size_bytes: int) -> None:
    """The row that the adapter writes of so much prose, by the rules that meter it."""
    prose = (LETTER + " " + LETTER.replace("boots", "tents").replace("Friday", "the weekend").upper()) * 3
    data = prose.encode()[:size_bytes]
    job_id = job_id_of("support", "workspace-00417", "answer_event", "k")
    key = row_key(payload_row("workspace-00417", job_id, "0" * 32))
    assert key is not None
    size = item_size(content_rows.payload_item(key, data, NOW))
    assert size <= ROW_BYTES + DEFLATED * size_bytes or size_bytes < 1000
    told = Load(jobs=1, payload_bytes=size_bytes).payload_units
    assert told[0] >= write_units(size)
    assert told[1] >= read_units(size, consistent=True)


TEMPLATE = {
    "Resources": {
        "A": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"MetricName": "Errors"}},
        "B": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {"Metrics": [{"MetricStat": {}}, {"MetricStat": {}}, {"Expression": "a + b"}]},
        },
        "K": {"Type": "AWS::KMS::Key"},
        "S": {"Type": "AWS::SecretsManager::Secret", "Properties": {}},
        "D": {"Type": "AWS::CloudWatch::Dashboard", "Properties": {}},
        "Q": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"BatchSize": 10}},
        "T": {"Type": "AWS::Lambda::EventSourceMapping", "Properties": {"StartingPosition": "TRIM_HORIZON"}},
        "R": {"Type": "AWS::Scheduler::Schedule", "Properties": {"ScheduleExpression": "rate(1 minute)"}},
        "H": {"Type": "AWS::Scheduler::Schedule", "Properties": {"ScheduleExpression": "rate(1 hour)"}},
        "O": {
            "Type": "AWS::Scheduler::Schedule",
            "Properties": {"ScheduleExpression": "rate(1 minute)", "State": "DISABLED"},
        },
    }
}


def test_what_stands_is_counted_from_templates() -> None:
    """An alarm by the metrics it looks at, a queue that is polled, a schedule by how often it fires."""
    has = counted([TEMPLATE, {}], written=7)
    assert (has.alarms, has.alarm_metrics, has.metrics) == (2, 3, 7)
    assert (has.keys, has.secrets, has.dashboards, has.polled_queues) == (1, 1, 1, 1)
    assert has.runs == 730 * 60 + 730


def test_a_month_without_jobs(penstock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the deployed stacks of the stage and of no other: line by line, with their sum."""
    cloud = Cloud()
    cloud.stacks["Penstock-prod-State"] = "UPDATE_COMPLETE"
    cloud.stacks["Penstock-dev-Lane-gone"] = "DELETE_COMPLETE"
    cloud.templates = dict.fromkeys(("Penstock-dev-State", "Penstock-prod-State", "Penstock-dev-Lane-gone"), TEMPLATE)
    cloud.written = [{}] * 4
    monkeypatch.setattr(Stage, "open", classmethod(lambda cls, name: cloud))
    told = penstock("cost", "--idle", "--json").document
    assert told["stage"] == "dev"
    assert (told["has"]["alarm_metrics"], told["has"]["keys"], told["has"]["metrics"]) == (3, 1, 4)
    assert told["monthly_usd"] == pytest.approx(sum(item["usd"] for item in told["items"]), abs=1e-4)
    assert 0.3 + 4 * 0.3 + 3 + 1 + 0.4 < told["monthly_usd"] < 7
    assert "a month without any job: $" in penstock("cost", "--idle").out
    cloud.stacks = {}
    assert "is it deployed?" in penstock("cost", "--idle", code=1).err


def test_cost_grows_with_the_load(penstock: Any) -> None:
    """Twice the jobs cost twice as much; effects, waits and small batches cost more."""

    def total(*options: str) -> float:
        return float(penstock("cost", "--json", *options).document["total_usd"])

    base = total("--jobs", "1e6")
    assert total("--jobs", "2e6") == pytest.approx(2 * base)
    for option in (("--effects", "3"), ("--waits", "0.9"), ("--batch", "1"), ("--job-s", "5"), ("--memory-mb", "2048")):
        assert total(*option) > base


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--jobs", "0"),
        ("--jobs", "-5"),
        ("--jobs", "nan"),
        ("--jobs", "inf"),
        ("--waits", "1.5"),
        ("--effects", "-1"),
        ("--batch", "11"),
        ("--job-s", "0"),
        ("--memory-mb", "64"),
        ("--payload-bytes", "-1"),
    ],
)
def test_numbers_that_make_no_sense(penstock: Any, option: str, value: str) -> None:
    """A number out of its range is refused by name."""
    assert "must be between" in penstock("cost", option, value, code=1).err


def test_no_number_at_all(penstock: Any) -> None:
    """A word is a usage error."""
    penstock("cost", "--jobs", "many", code=2)
