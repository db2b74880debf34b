"""`penstock runs`: what a lane's runs did, one of them whole, and one out of its turn, by somebody who is known."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from ops.cli.stage import Stage
from shared.core.batch import Batch, BatchState, Group, Member
from shared.core.schedule import RunRecord
from tests.unit.ops.cli.run_stage import FULL, Functions, deploy_runs, with_functions

SUBMITTER = "rewrite_batch_submitter"
ME = "arn:aws:sts::123456789012:user/moto"
WHY = ["--why", "the provider is back"]


@pytest.fixture
def stage(deployed: Stage) -> Stage:
    return deploy_runs(deployed)


@pytest.fixture
def functions(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Functions:
    return with_functions(stage, monkeypatch)


def a_batch(stage: Stage, run_id: str, number: int = 1) -> Batch:
    """One that a run handed over."""
    group = Group(
        provider="openai",
        model="gpt-4.1-mini",
        prompt_version="v1",
        policy_version="p1",
        lane="rewrite",
        locales="de>en",
    )
    batch = Batch(
        tag=f"penstock/dev/{run_id}/{number:03d}",
        run_id=run_id,
        group=group,
        count=2,
        tokens=812,
        intent_at=stage.clock.now(),
        state=BatchState.HANDED,
        provider_id=f"batch_{number}",
        submitted_at=stage.clock.now(),
    )
    assert stage.batches.intend(batch, [Member(job_id="j1", fence=1)]) is None
    return batch


@pytest.mark.req("R13")
def test_a_lane_with_runs_shows_its_own(penstock: Any, stage: Stage, functions: Functions) -> None:
    """All of its schedules, none of the engine's, and counts under their own names; a schedule alone by its name."""
    for role in ("batch_submitter", "batch_collector", "worker"):
        functions.run(f"rewrite_{role}", {}, run_id=f"run-{role}")
    functions.run("dispatcher", {}, run_id="engine")
    lines = penstock("runs", "rewrite", "--json").lines
    assert {line["schedule"] for line in lines} == {SUBMITTER, "rewrite_batch_collector", "rewrite_worker"}
    assert all(line["counts"] == FULL for line in lines)
    assert penstock("runs", "list", "rewrite", "--json").lines == lines
    (line,) = penstock("runs", SUBMITTER, "--json").lines
    assert line["run_id"] == "run-batch_submitter"
    assert len(penstock("runs", "--json").lines) == 4
    text = penstock("runs", "rewrite").out
    assert "claimed 3" in text
    assert "gpt-4.1-mini" not in text, "by model is for `show`"


@pytest.mark.req("R13")
def test_one_run_is_shown_whole(penstock: Any, stage: Stage, functions: Functions) -> None:
    """When, how long, by its schedule; counts in all and by model; limits; its batches, and not those of others."""
    functions.run(SUBMITTER, {}, run_id="run-1")
    a_batch(stage, "run-1")
    ended = a_batch(stage, "run-1", 2)
    stage.batches.move(ended, _ended(stage, ended))
    a_batch(stage, "run-2")
    document = penstock("runs", "show", "run-1", "--json").document
    assert document["schedule"] == SUBMITTER
    assert document["finished_at"] is not None
    assert (document["manual"], document["by"], document["why"]) == (False, None, None)
    assert document["counts"]["claimed"] == 3
    assert document["by_model"] == {
        "openai/gpt-4.1-mini": {"claimed": 2, "submitted": 2},
        "other/model-b": {"claimed": 1, "requeued": 1},
    }
    assert document["limits"] == {"rate_limited": 2, "capacity_errors": 0, "budget_empty": 0}
    seen = [(one["provider_id"], one["state"], one["ending"]) for one in document["batches"]]
    assert seen == [("batch_1", "handed", ""), ("batch_2", "ended", "completed")]
    text = penstock("runs", "show", "run-1").out
    for part in ("its schedule", "rate_limited 2", "openai/gpt-4.1-mini", "batch_2", "penstock/dev/run-1/001"):
        assert part in text
    assert "run-2" not in text
    assert "penstock runs list" in penstock("runs", "show", "run-9", code=1).err


def test_a_run_of_the_engine_can_be_shown_too(penstock: Any, stage: Stage) -> None:
    """Without models and batches; one that never ended says so."""
    started = stage.clock.now() - timedelta(hours=1)
    stage.ledger.open_run(RunRecord(schedule="sweeper", slot="s", run_id="r-1", started_at=started))
    assert penstock("runs", "show", "r-1", "--json").document["batches"] == []
    text = penstock("runs", "show", "r-1").out
    assert "never ended" in text
    assert "Nothing is counted" in text


@pytest.mark.req("R4")
def test_a_run_is_started_by_somebody_who_is_known(penstock: Any, stage: Stage, functions: Functions) -> None:
    """Who AWS says it is, and why, stand in the history before the function is asked; its answer is shown."""
    kept: list[Any] = []
    functions.meanwhile = lambda: kept.extend(stage.history.of(f"run/{SUBMITTER}", limit=5))
    document = penstock("runs", "start", "rewrite", "submitter", *WHY, "--json").document
    assert functions.invoked == [f"penstock-dev-{SUBMITTER}"]
    (event,) = kept
    assert (event.kind, event.by) == ("run_asked", ME)
    assert event.detail == {"why": "the provider is back", "request": document["request_id"]}
    assert (document["schedule"], document["ran"], document["counts"]) == (SUBMITTER, True, FULL)
    shown = penstock("runs", "show", document["run_id"], "--json").document
    assert (shown["manual"], shown["by"], shown["why"]) == (True, ME, "the provider is back")
    assert "by hand" in penstock("runs", "rewrite").out


@pytest.mark.req("R4")
def test_people_see_the_run_they_started(penstock: Any, functions: Functions) -> None:
    """With its counts and their name; `--by` may say the same, whole or by its last part."""
    for by in (ME, "moto"):
        text = penstock("runs", "start", "rewrite", "batch_submitter", "--by", by, *WHY).out
        assert ME in text
        assert "submitted" in text


@pytest.mark.req("R4")
def test_nobody_starts_a_run_as_somebody_else(penstock: Any, stage: Stage, functions: Functions) -> None:
    """Another name, no reason, no such run, a lane without runs: a sentence, nothing kept and nothing started."""
    start = ("runs", "start", "rewrite")
    assert f"AWS knows you as {ME}" in penstock(*start, "submitter", "--by", "root", *WHY, code=1).err
    assert "why" in penstock(*start, "submitter", "--why", " ", code=1).err
    assert "batch_submitter, batch_collector, worker" in penstock(*start, "janitor", *WHY, code=1).err
    assert "has no runs" in penstock("runs", "start", "support", "worker", *WHY, code=1).err
    assert "nope" in penstock("runs", "start", "nope", "worker", *WHY, code=1).err
    assert functions.invoked == []
    assert stage.history.of(f"run/{SUBMITTER}", limit=5) == []


@pytest.mark.req("R4")
def test_without_the_permission_nothing_starts(penstock: Any, stage: Stage, functions: Functions) -> None:
    """AWS decides; the sentence names the permission that is missing."""
    said = f"User: {ME} is not authorized to perform: lambda:InvokeFunction on resource: x"
    functions.error = ClientError({"Error": {"Code": "AccessDeniedException", "Message": said}}, "Invoke")
    told = penstock("runs", "start", "rewrite", "submitter", *WHY, code=1).err
    assert "access denied: lambda:InvokeFunction" in told
    assert stage.ledger.runs(SUBMITTER, limit=5) == []


def test_while_a_run_is_going_none_is_started(penstock: Any, stage: Stage, functions: Functions) -> None:
    """By the ledger, or because the function has its one place taken: said, and ended with 1."""
    going = RunRecord(schedule=SUBMITTER, slot="2026", run_id="r-1", started_at=stage.clock.now())
    stage.ledger.open_run(going)
    document = penstock("runs", "start", "rewrite", "submitter", *WHY, "--json", code=1).document
    assert (document["ran"], document["because"]) == (False, "still_going")
    functions.error = ClientError({"Error": {"Code": "TooManyRequestsException", "Message": ""}}, "Invoke")
    assert "is still going" in penstock("runs", "start", "rewrite", "submitter", *WHY, code=1).out


def test_a_run_that_fails_says_its_kind_and_nothing_else(penstock: Any, functions: Functions) -> None:
    """An error's message could hold anything; its kind, a time-out and an answer of no shape each have a sentence."""
    start = ("runs", "start", "rewrite", "submitter", *WHY)
    functions.failed, secret = True, "CANARY-9"
    functions.answer = json.dumps({"errorType": "Unavailable", "errorMessage": secret}).encode()
    told = penstock(*start, code=1).err
    assert "ended with Unavailable" in told
    assert secret not in told
    for answer in (json.dumps({"errorType": secret + " !"}).encode(), b"[]", b"\xff", secret.encode()):
        functions.answer = answer
        told = penstock(*start, code=1).err
        assert "ended with an error" in told
        assert secret not in told
    functions.failed = False
    assert "no known shape" in penstock(*start, code=1).err
    functions.error = ReadTimeoutError(endpoint_url="https://lambda")
    assert "did not answer within" in penstock(*start, code=1).err


def _ended(stage: Stage, batch: Batch) -> Batch:
    from dataclasses import replace

    return replace(batch, state=BatchState.ENDED, ended_at=stage.clock.now(), ending="completed")
