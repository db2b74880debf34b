"""The example subscriber against the events that are really published; and the page against the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from examples.change_feed import subscriber
from shared.adapters.aws.feed import BATCH, EventBridgeChangeFeed
from shared.contract import names
from shared.core.feed import StateChange, change_of
from shared.core.job import Status
from tests.builders import a_job

ROOT = Path(__file__).resolve().parents[2]
RULE = (ROOT / "examples" / "change_feed" / "rule.json").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "change-feed.md").read_text(encoding="utf-8")
TABLE, BUS = "status", "penstock-test"


def changes_of_one_job(lane: str = "rewrite") -> list[StateChange]:
    """Queued, claimed, failed; replayed, claimed, completed."""
    job = a_job(lane=lane)
    steps = [(0, "queued"), (1, "processing"), (1, "failed"), (2, "queued"), (3, "processing"), (3, "completed")]
    rows = [replace(job, status=Status(word), fence=fence) for fence, word in steps]
    told = [change_of(now, was and was.status) for was, now in zip([None, *rows], rows, strict=False)]
    return [change for change in told if change is not None]


@pytest.fixture
def account() -> Iterator[dict[str, Any]]:
    """An account with the subscriber's table, our bus, the example's rule, and a queue behind it."""
    with mock_aws():
        made = {name: boto3.client(name, region_name="eu-central-1") for name in ("dynamodb", "events", "sqs")}  # type: ignore[call-overload]
        made["dynamodb"].create_table(
            TableName=TABLE,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "job_id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "job_id", "AttributeType": "S"}],
        )
        made["events"].create_event_bus(Name=BUS)
        made["events"].put_rule(Name="ended", EventBusName=BUS, EventPattern=RULE)
        url = made["sqs"].create_queue(QueueName="heard")["QueueUrl"]
        arn = made["sqs"].get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        made["events"].put_targets(Rule="ended", EventBusName=BUS, Targets=[{"Id": "queue", "Arn": arn}])
        yield {**made, "url": url}


def status_of(account: dict[str, Any], job_id: str) -> str:
    row = account["dynamodb"].get_item(TableName=TABLE, Key={"job_id": {"S": job_id}})["Item"]
    return str(row["status"]["S"])


@pytest.mark.req("R15")
def test_the_rule_lets_the_ends_of_its_lane_pass(account: dict[str, Any]) -> None:
    """As EventBridge matches it: what we publish, and of that only what was asked for."""
    feed = EventBridgeChangeFeed(client=account["events"], bus=BUS)
    assert feed.publish([*changes_of_one_job("rewrite"), *changes_of_one_job("support")]) == []
    messages = account["sqs"].receive_message(QueueUrl=account["url"], MaxNumberOfMessages=10)["Messages"]
    heard = [json.loads(message["Body"])["detail"] for message in messages]
    assert [(one["lane"], one["status"]) for one in heard] == [("rewrite", "failed"), ("rewrite", "completed")]


@pytest.mark.req("R15")
@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_the_subscriber_ends_with_the_newest_state_in_any_order(
    account: dict[str, Any], order: tuple[int, ...]
) -> None:
    """Every order of the last three changes, each delivered twice."""
    last = changes_of_one_job()[-3:]
    for place in (*order, *order):
        subscriber.keep(last[place].detail(), client=account["dynamodb"], table=TABLE)
    assert status_of(account, last[-1].job_id) == "completed"


@pytest.mark.req("R15")
def test_a_repeated_event_is_no_news(account: dict[str, Any]) -> None:
    """Pushed to a browser once, however often it comes."""
    (change,) = changes_of_one_job()[-1:]
    news = [subscriber.keep(change.detail(), client=account["dynamodb"], table=TABLE) for _ in range(3)]
    assert news == [True, False, False]


def test_the_handler_keeps_what_an_event_says(account: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """As EventBridge hands it over."""
    monkeypatch.setenv("STATUS_TABLE", TABLE)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    (change,) = changes_of_one_job()[-1:]
    subscriber.handler({"version": "0", "source": "penstock", "detail": change.detail()}, None)
    assert status_of(account, change.job_id) == "completed"


# ------------------------------------------------------------------------------------------------ the page
def test_the_page_shows_an_event_as_it_is_published() -> None:
    """Field by field: what the page shows and explains is what `detail` gives."""
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    example = json.loads(shown)
    job = a_job(lane="rewrite", status=Status.FAILED)
    detail = (change_of(job, Status.PROCESSING) or pytest.fail("no change")).detail()
    assert set(example["detail"]) == set(detail)
    assert {name: type(value) for name, value in example["detail"].items()} == {
        name: str if isinstance(value, str) else int for name, value in detail.items()
    }
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)) == set(detail)
    assert (example["source"], example["detail-type"]) == (names.FEED_SOURCE, names.FEED_DETAIL_TYPE)


def test_the_page_names_what_is_there() -> None:
    """The bus, the example's files, and how many events a call may have."""
    assert names.event_bus("<stage>") in PAGE
    assert (ROOT / "examples" / "change_feed" / "stack.py").exists()
    assert BATCH == 10
