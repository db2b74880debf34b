"""Every command that knows lanes, with one that has no queue: each says what is true, and none asks for the queue."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.core import lifecycle
from shared.core.job import Category, Status
from shared.core.message import dead_letter_of
from shared.core.outcome import Fail, Submitted
from shared.core.schedule import RunRecord
from tests.unit.ops.cli.cloud import Cloud
from tests.unit.ops.cli.run_stage import REWRITE, deploy_runs, put
from tests.unit.usecases.rewriting import TEXT, facts


@pytest.fixture
def stage(deployed: Stage) -> Stage:
    return deploy_runs(deployed)


def test_status_shows_what_waits_for_runs(penstock: Any, stage: Stage) -> None:
    """Due and later from the index; no queue and no cap, what a run takes instead, and when its runs were."""
    put(stage, 1)
    put(stage, 2, surface="direct_message")
    started = stage.clock.now() - timedelta(minutes=3)
    run = RunRecord(schedule="rewrite_worker", slot="s", run_id="r", started_at=started)
    stage.ledger.open_run(run)
    document = penstock("status", "rewrite", "--json").document
    (lane,) = document["lanes"]
    assert (lane["due"], lane["queue"], lane["cap"], lane["a_run"]) == (2, None, None, 25)
    assert "rewrite_worker" in [one["schedule"] for one in document["runs"]]
    text = penstock("status", "--count").out
    assert "25 a run" in text
    assert "rewrite_batch_submitter never" in text


def test_forecast_counts_runs(penstock: Any, stage: Stage) -> None:
    """By the next slots; a cap is no answer there."""
    put(stage)
    document = penstock("forecast", "rewrite", "--json").document
    assert (document["forecast"]["outlook"], document["forecast"]["limited_by"]) == ("clears", "max_jobs_per_run")
    assert "Clears by" in penstock("forecast", "rewrite").out
    assert "is not what limits lane rewrite" in penstock("forecast", "rewrite", "--what-if", "cap=4", code=1).err


def test_capacity_is_for_lanes_with_workers(penstock: Any, stage: Stage) -> None:
    """Not listed, and refused by name, saying what limits it and what stops it."""
    listed = [one["lane"] for one in penstock("capacity", "show", "--json").document["lanes"]]
    assert sorted(listed) == ["mail", "support"]
    for words in (("show", "rewrite"), ("pin", "rewrite", "4", "--for", "1h", "--why", "x")):
        told = penstock("capacity", *words, code=1).err
        assert "rewrite has no cap" in told
        assert "no_new_starts" in told


def test_switches_work_like_anywhere(penstock: Any, stage: Stage) -> None:
    """Checked, closed, opened with its checklist."""
    penstock("control", "set", "lane/rewrite", "halt", "--why", "wrong texts")
    checked = penstock("control", "check", "lane/rewrite", "--json").document
    assert [one["lane"] for one in checked["checklist"]] == ["rewrite"]
    assert "none: each of its runs takes 25 jobs" in json.dumps(checked)
    penstock("control", "set", "lane/rewrite", "normal", "--why", "fixed")
    assert "normal" in penstock("control", "show", "lane/rewrite").out


@pytest.mark.req("F9")
def test_why_names_the_next_run(penstock: Any, stage: Stage) -> None:
    """Which schedule, about when, in step with its last start; one that a person started says nothing about it."""
    job = put(stage)
    now = stage.clock.now()
    for slot, ago in (("2026-01-01T00:00:00.000Z", 5), ("2026-01-01T00:03:00.000Z+abc", 2)):
        started = now - timedelta(minutes=ago)
        stage.ledger.open_run(RunRecord(schedule="rewrite_batch_submitter", slot=slot, run_id=slot, started_at=started))
    document = penstock("jobs", "why", job.job_id, "--json").document
    assert (document["standing"], document["runs_now"]) == ("waiting", False)
    assert document["waits_for_run"] == "rewrite_batch_submitter"
    assert document["earliest"][:16] == f"{now + timedelta(minutes=10):%Y-%m-%dT%H:%M}"
    assert "the next run of rewrite_batch_submitter" in penstock("jobs", "why", job.job_id).out
    penstock("control", "set", "lane/rewrite", "no_new_starts", "--why", "x")
    assert penstock("jobs", "why", job.job_id, "--json").document["earliest"] is None


@pytest.mark.req("R2")
def test_show_has_facts_decision_and_the_contracts_record(penstock: Any, stage: Stage) -> None:
    """Readable for people, the whole record for programs; no text in either."""
    job = put(stage)
    document = penstock("jobs", "show", job.job_id, "--json").document
    assert document["record"]["language_pair"] == {"from": "de-AT", "to": "en-GB"}
    assert document["record"]["routing_decision"]["model"] == "model-a"
    text = penstock("jobs", "show", job.job_id).out
    for part in ("language_pair de-AT → en-GB", "surface weekly_harmony", "model model-a", "execution_mode batch"):
        assert part in text
    assert TEXT not in text + json.dumps(document)


def test_a_job_in_a_batch_is_explained(penstock: Any, stage: Stage) -> None:
    """Since when, and who looks next."""
    job = put(stage)
    (entry,) = stage.jobs.waiting(REWRITE, due_before=stage.clock.now(), limit=5)
    claim = stage.jobs.claim_in_run(REWRITE, entry, by="run-1", now=stage.clock.now())
    claimed = claim.job
    assert claimed is not None
    stage.jobs.move(
        claimed, lifecycle.settled(claimed, Submitted("penstock/dev/run-1/001"), REWRITE, stage.clock.now())
    )
    document = penstock("jobs", "why", job.job_id, "--json").document
    assert (document["standing"], document["waits_for_run"]) == ("in_batch", "rewrite_batch_collector")
    found = penstock("audit", "--json", code=1).document["findings"]
    assert [(one["job_id"], one["fault"]) for one in found] == [(job.job_id, "no_batch")]
    penstock("audit", "--repair")
    back = stage.jobs.get(job.job_id)
    assert back is not None
    assert (back.status, back.last_error) == (Status.QUEUED, "batch_lost")


def test_dead_letters_and_plans_need_no_queue(penstock: Any, stage: Stage) -> None:
    """Listed, planned with an estimate in runs, watched; a native move has nowhere to go."""
    job = put(stage)
    (entry,) = stage.jobs.waiting(REWRITE, due_before=stage.clock.now(), limit=5)
    claimed = stage.jobs.claim_in_run(REWRITE, entry, by="run-1", now=stage.clock.now()).job
    assert claimed is not None
    failed = lifecycle.settled(claimed, Fail(Category.AUTH, "vendor:401"), REWRITE, stage.clock.now())
    stage.jobs.move(claimed, failed)
    stage.dead_letters.send([dead_letter_of(failed)])
    assert "auth" in penstock("dlq", "list", "rewrite").out
    assert penstock("dlq", "show", job.job_id, "--json").code == 0
    cause = ("--cause", "the key had expired; renewed")
    planned = penstock("redrive", "plan", "rewrite", *cause)
    assert "one step a run of its lane, not sooner: batch_submitter every 15 min" in planned.out
    plan_id = penstock("redrive", "plan", "rewrite", *cause, "--json").document["plan"]["plan_id"]
    assert "It goes one step a run of its lane" in penstock("redrive", "watch", plan_id).out
    assert "its runs take jobs from the table" in penstock("redrive", "plan", "rewrite", "--native", *cause, code=1).err


@pytest.mark.req("R2", "R3")
def test_facts_are_enqueued_from_options_and_files(penstock: Any, stage: Stage, tmp_path: Path) -> None:
    """One job from options, many from a file; the record has what was given."""
    given = facts(7)
    keys = ["-k", given["rewrite_request_id"], "-k", given["recipient_user_id"]]
    words = ("enqueue", "rewrite", "complaint_rewrite", "-t", "home-1", *keys, "-p", json.dumps({"text": TEXT}))
    (tmp_path / "facts.json").write_text(json.dumps(given))
    job_id = penstock(*words, "--facts", f"@{tmp_path / 'facts.json'}", "--json").document["job_id"]
    assert penstock("jobs", "show", job_id, "--json").document["record"]["surface"] == "weekly_harmony"
    lines = [_line(facts(n)) for n in (8, 9)] + [_line(facts(10, surface=TEXT)), _line(None)]
    (tmp_path / "jobs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    told = penstock("enqueue", "--file", str(tmp_path / "jobs.jsonl"), "--json", code=1)
    assert [line.get("created") for line in told.lines[:2]] == [True, True]
    assert [line["error"]["field"] for line in told.lines[2:4]] == ["facts.surface", "facts"]
    assert TEXT not in told.out + told.err


@pytest.mark.req("R3")
@pytest.mark.parametrize("given", ['{"surface": "TEXT"}', '["TEXT"]', '"TEXT"', '{"TEXT": 1, "TEXT": 2}', "TEXT"])
def test_facts_that_are_none_are_refused_without_their_text(penstock: Any, stage: Stage, given: str) -> None:
    """The field is named, and nothing of what it held."""
    words = ("enqueue", "rewrite", "complaint_rewrite", "-t", "home-1", "-k", "a", "-k", "b", "--facts")
    told = penstock(*words, given.replace("TEXT", "CANARY"), code=1)
    assert "facts" in told.err
    assert "CANARY" not in told.out + told.err
    refused = penstock("enqueue", "support", "reply", "-t", "a", "-k", "b", "--facts", "{}", code=1).err
    assert "are not asked for by lane support" in refused


def test_doctor_looks_at_schedules_and_at_no_event_source() -> None:
    """A lane with runs is healthy when its schedules are enabled and ran; nothing feeds it from a queue."""
    from ops.cli.checks import deployed, working

    cloud = Cloud()
    cloud.told["rewrite"] = replace(REWRITE, router=None)
    assert [line.about for line in deployed.workers(cloud)] == ["worker support", "worker mail"]
    missing = [line.found for line in working.schedules(cloud) if "rewrite" in line.found]
    assert len(missing) == 3
    assert {line.about for line in working.runs(cloud)} >= {"runs rewrite_worker"}


def _line(given: dict[str, Any] | None) -> dict[str, Any]:
    known = given or facts(11)
    keys = [known["rewrite_request_id"], known["recipient_user_id"]]
    line = {"lane": "rewrite", "task": "complaint_rewrite", "tenant": "home-1", "key": keys, "payload": {"text": "x"}}
    return line if given is None else {**line, "facts": given}
