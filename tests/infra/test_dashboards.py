"""What a lane's page promises about the accounts it spends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from infra import naming
from infra.stage import load_stage
from shared.contract import metrics, names
from tests.infra.conftest import Synthesize, Synthesized
from tests.infra.test_accounts import SHARED, a_config

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]
SEARCH = re.compile(r"SEARCH\('\{(?P<dimensions>[^}]*)\} (?P<where>.*?)', '(?P<by>\w+)', 60\)")
Widget = dict[str, Any]


def widgets(stage: Synthesized, lane: str) -> dict[str, Widget]:
    """The lane's page, by the titles of its widgets."""
    name = naming.dashboard(stage.spec.name, lane)
    body = stage.the("AWS::CloudWatch::Dashboard", DashboardName=name).properties["DashboardBody"]
    text = "".join(part if isinstance(part, str) else "eu-central-1" for part in body["Fn::Join"][1])
    return {one["properties"]["title"]: one["properties"] for one in json.loads(text)["widgets"]}


def looks_at(widget: Widget) -> list[dict[str, str]]:
    """Every series of Penstock's own that a widget searches for: metric, account, lane, stage, and how it is added."""
    found = [match for line in widget["metrics"] for match in SEARCH.finditer(json.dumps(line).replace('\\"', '"'))]
    return [{**dict(re.findall(r'(\w+)="([^"]*)"', one["where"])), "by": one["by"]} for one in found]


def of_account(metric: str, account: str, **more: str) -> dict[str, str]:
    return {"MetricName": metric, "account": account, "stage": "dev", "by": "Sum", **more}


@pytest.fixture(scope="module")
def shared(synthesize: Synthesize, tmp_path_factory: pytest.TempPathFactory) -> Synthesized:
    """Support spends two accounts, one of them together with extraction."""
    folder: Path = tmp_path_factory.mktemp("config")
    return synthesize(load_stage("dev", config=a_config(folder, support=SHARED)), thorough=False)


@pytest.mark.req("X9")
def test_scheduled_stands_beside_running_and_both_are_jobs(every_stage: Synthesized) -> None:
    """Levels: what waits in the table, and what is in workers' hands; never how many were deferred in a minute."""
    stage = every_stage.spec.name
    for lane, spec in every_stage.spec.lanes.items():
        title = "Scheduled beside running, jobs" if spec.run is None else "Waiting for a run, jobs"
        widget = widgets(every_stage, lane)[title]
        (waiting,) = looks_at(widget)
        assert waiting == {"MetricName": metrics.WAITING, "lane": lane, "stage": stage, "by": "Maximum"}
        if spec.run is not None:
            continue  # its own runs are its workers, and the page shows those
        running = next(line for line in widget["metrics"] if line[0] == "AWS/SQS")
        assert running[1:4] == ["ApproximateNumberOfMessagesNotVisible", "QueueName", names.queue(stage, lane)]


@pytest.mark.req("X9")
def test_use_stands_beside_the_limit_of_the_same_account(every_stage: Synthesized) -> None:
    """Requests and tokens a minute, of everybody who spends the account, with the account's own limit as a line."""
    spec = every_stage.spec
    for lane in spec.lanes.values():
        page = widgets(every_stage, lane.name)
        for name in lane.accounts:
            account = spec.accounts[name]
            for unit, metric, limit in (
                ("requests", metrics.PERMITS, account.requests_per_minute),
                ("tokens", metrics.TOKENS, account.tokens_per_minute),
            ):
                widget = page[f"{name}: {unit} a minute"]
                assert of_account(metric, name, stage=spec.name) in looks_at(widget)
                drawn = [mark["value"] for mark in widget.get("annotations", {}).get("horizontal", [])]
                assert drawn == ([] if limit is None else [limit * 60 / account.minute_s])


@pytest.mark.req("X9")
def test_a_shared_account_shows_everybody_and_this_lane(shared: Synthesized) -> None:
    """On either lane's page the use is of both lanes together, and how much of it is this lane's."""
    for lane in ("support", "extraction"):
        page = widgets(shared, lane)
        for unit, metric in (("requests", metrics.PERMITS), ("tokens", metrics.TOKENS)):
            everybody, mine = looks_at(page[f"openai: {unit} a minute"])
            assert everybody == of_account(metric, "openai")
            assert mine == of_account(metric, "openai", lane=lane)


@pytest.mark.req("X9")
def test_two_accounts_of_a_lane_are_two_pictures(shared: Synthesized) -> None:
    """No widget of one account looks at a series of the other."""
    page = widgets(shared, "support")
    for account in ("helpdesk", "openai"):
        mine = [looks_at(widget) for title, widget in page.items() if title.startswith(f"{account}: ")]
        assert len(mine) == 4
        assert {series["account"] for widget in mine for series in widget} == {account}


@pytest.mark.req("X9")
def test_deferrals_and_the_time_to_the_next_permit_are_of_this_lane_at_this_account(shared: Synthesized) -> None:
    """The time is the mean of the waits given out: seconds over deferrals, of the same account and lane."""
    page = widgets(shared, "support")
    deferred = of_account(metrics.RATE_DEFERRED, "openai", lane="support")
    assert looks_at(page["openai: deferrals a minute"]) == [deferred]
    wait = page["openai: time to the next permit, s"]
    assert looks_at(wait) == [of_account(metrics.RATE_WAIT, "openai", lane="support"), deferred]
    assert next(line[0]["expression"] for line in wait["metrics"] if "id" not in line[0]) == "waited / deferred"


@pytest.mark.req("C15")
def test_what_a_lane_costs_stands_beside_its_threshold(every_stage: Synthesized) -> None:
    """As a level, by lane and by vendor account, in the currency of the prices."""
    spec = every_stage.spec
    for lane in spec.lanes.values():
        widget = widgets(every_stage, lane.name)[f"Cost of the vendors, {spec.prices.currency} an hour"]
        here = {"lane": lane.name, "stage": spec.name, "by": "Maximum"}
        assert looks_at(widget) == [
            {"MetricName": metrics.COST, **here},
            *({"MetricName": metrics.ACCOUNT_COST, "account": name, **here} for name in lane.accounts),
        ]
        marks = [one["value"] for one in widget.get("annotations", {}).get("horizontal", [])]
        assert marks == ([] if lane.cost_spike_per_hour is None else [lane.cost_spike_per_hour])
