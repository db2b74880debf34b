"""`penstock jobs`: every answer for people and for programs, and who did what."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.contract import names, references
from shared.core import rate
from shared.core.account import AccountSpec
from shared.core.effects import EffectState
from shared.core.job import Category, Job, Status
from shared.core.moment import iso
from shared.core.rate import Want
from shared.core.switches import Level
from tests.builders import a_job, a_lane, a_switch, an_account, an_effect_row
from tests.unit.ops.cli.conftest import deploy_lanes, feed

CALLER = "arn:aws:sts::123456789012:user/moto"


def stored(stage: Stage, **values: Any) -> Job:
    """A job in the table, made now."""
    now = stage.clock.now()
    job = a_job(created_at=now, updated_at=now, **values)
    assert stage.jobs.put(job) is None
    return job


# --------------------------------------------------------------------------------------------------- list
def test_list_filters(penstock: Any, deployed: Stage) -> None:
    """Lane, status, tenant and category narrow the list; each line is a whole job."""
    stored(deployed, key="1")
    stored(deployed, key="2", status=Status.FAILED)
    stored(deployed, key="3", lane="mail", task="sync", tenant="globex")

    def keys(*options: str) -> set[str]:
        return {one["key"] for one in penstock("jobs", "list", "--json", *options).lines}

    assert keys() == {"1", "2", "3"}
    assert keys("--lane", "support") == {"1", "2"}
    assert keys("--status", "failed") == {"2"}
    assert keys("--tenant", "globex") == {"3"}
    assert keys("--category", "retries_exhausted") == {"2"}
    assert keys("--category", "poison") == set()


def test_list_for_people(penstock: Any, deployed: Stage) -> None:
    """Whole ids, and why each job is as it is; an empty list says so."""
    assert "No job matches." in penstock("jobs", "list").out
    failed = stored(deployed, key="1", status=Status.FAILED)
    stored(deployed, key="2", status=Status.COMPLETED)
    text = penstock("jobs", "list").out
    assert failed.job_id in text
    assert "retries_exhausted: vendor_unavailable" in text
    assert "replied" in text


def test_list_ids_are_whole_in_a_narrow_terminal(
    penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id is never cut or folded: it is there to be copied."""
    monkeypatch.setenv("COLUMNS", "60")
    job = stored(deployed)
    assert job.job_id in penstock("jobs", "list").out


def test_list_stops_at_its_limit(penstock: Any, deployed: Stage) -> None:
    """With more than asked for, it says that it stopped."""
    for number in range(3):
        stored(deployed, key=str(number))
    assert "Stopped at 2; more match" in penstock("jobs", "list", "-n", "2").err
    assert penstock("jobs", "list", "-n", "3").err == ""
    assert len(penstock("jobs", "list", "-n", "2", "--json").lines) == 2


def test_list_shows_rows_nobody_can_read(penstock: Any, deployed: Stage) -> None:
    """A row of an unknown status is named and left alone; the others are listed."""
    job = stored(deployed)
    deployed.client("dynamodb").put_item(
        TableName="penstock-dev-jobs", Item={"pk": {"S": "JOB#strange"}, "status": {"S": "sideways"}}
    )
    assert "JOB#strange" in penstock("jobs", "list").err
    assert {"unreadable", "job_id"} <= {name for one in penstock("jobs", "list", "--json").lines for name in one}
    assert job.job_id in penstock("jobs", "list").out


def test_list_of_an_unknown_lane(penstock: Any, deployed: Stage) -> None:
    """A lane that does not exist is refused with those that do."""
    assert "known lanes: mail, support" in penstock("jobs", "list", "--lane", "nope", code=1).err


# --------------------------------------------------------------------------------------------------- show
def test_show_has_fields_effects_and_history(penstock: Any, deployed: Stage) -> None:
    """One page: every field, every effect, and moves and people's decisions in order of time."""
    job = stored(deployed, key="1", not_before_at=None)
    deployed.effects.intend(an_effect_row(job_id=job.job_id, state=EffectState.INTENT))
    penstock("jobs", "schedule", job.job_id, "--in", "2h", "--why", "vendor asked for it")

    document = penstock("jobs", "show", job.job_id, "--json").document
    assert document["job"]["job_id"] == job.job_id
    assert document["effects"][0]["name"] == "reply"
    assert [entry["what"] for entry in document["history"]] == ["queued", "queued", "schedule"]
    assert document["history"][-1]["by"] == CALLER
    assert "vendor asked for it" in document["history"][-1]["reason"]

    text = penstock("jobs", "show", job.job_id).out
    for part in (job.job_id, "helpdesk", "intent", "vendor asked for it", CALLER, "priority"):
        assert part in text


@pytest.mark.parametrize("verb", ["show", "why", "result"])
def test_ids_that_are_none(penstock: Any, deployed: Stage, verb: str) -> None:
    """A shortened id and an id without a job are refused, each with its sentence."""
    assert "whole id" in penstock("jobs", verb, "3d0a", code=1).err
    unknown = "00000000-0000-5000-8000-000000000000"
    assert "does not exist in stage dev" in penstock("jobs", verb, unknown, code=1).err


# ---------------------------------------------------------------------------------------------------- why
@pytest.mark.req("C2")
def test_show_and_why_say_what_was_withheld(penstock: Any, deployed: Stage) -> None:
    """Which effect or call, and by which switch; for people and for programs."""
    withheld = {"chat": "all", "reply": "lane/support"}
    job = stored(deployed, status=Status.COMPLETED, result="withheld", withheld=withheld)
    assert "chat by all, reply by lane/support" in penstock("jobs", "show", job.job_id).out
    assert penstock("jobs", "show", job.job_id, "--json").document["job"]["withheld"] == withheld
    assert "reply withheld by lane/support" in " ".join(penstock("jobs", "why", job.job_id).out.split())


def test_why_of_a_job_that_may_run(penstock: Any, deployed: Stage) -> None:
    """Every gate open: it is in the queue and can run now."""
    feed("support")
    job = stored(deployed)
    document = penstock("jobs", "why", job.job_id, "--json").document
    assert [gate["gate"] for gate in document["gates"]] == ["switches", "schedule", "budget", "capacity"]
    assert all(gate["open"] for gate in document["gates"])
    assert (document["standing"], document["runs_now"], document["blocked_by"]) == ("in_queue", True, None)
    assert "about 0 ahead" in document["sentence"]


def test_why_of_a_job_with_a_time(penstock: Any, deployed: Stage) -> None:
    """The schedule gate names the earliest time and the command that would move it."""
    feed("support")
    at = deployed.clock.now() + timedelta(hours=3)
    job = stored(deployed, not_before_at=at, due=at)
    document = penstock("jobs", "why", job.job_id, "--json").document
    assert (document["standing"], document["blocked_by"]) == ("waiting", "schedule")
    assert document["earliest"] is not None
    text = penstock("jobs", "why", job.job_id).out
    assert "closed" in text
    assert "in 3 h" in text
    # On one line, whatever the terminal: it is there to be copied.
    assert f"penstock jobs schedule {job.job_id} --now" in text


def test_why_of_a_job_behind_a_switch(penstock: Any, deployed: Stage) -> None:
    """A closed switch is named by its scope, with the command that opens it; nobody knows when."""
    deployed.control.set_switch(a_switch("lane/support", Level.NO_NEW_STARTS))
    job = stored(deployed)
    document = penstock("jobs", "why", job.job_id, "--json").document
    assert (document["blocked_by"], document["earliest"]) == ("switches", None)
    text = penstock("jobs", "why", job.job_id).out
    assert "penstock control set lane/support normal" in text
    assert "not before a closed gate opens" in text


def behind(stage: Stage, **account: Any) -> AccountSpec:
    """The lane support, as deployed, spends an account."""
    spec = an_account(**account)
    deploy_lanes((a_lane(accounts=(spec.name,)),))
    client("ssm").put_parameter(
        Name=names.accounts_parameter(stage.name), Value=json.dumps({spec.name: spec.to_mapping()}), Type="String"
    )
    return spec


@pytest.mark.req("X9")
def test_why_of_a_job_behind_an_account(penstock: Any, deployed: Stage) -> None:
    """It names the account, how much is missing, and the time at which the job's turn comes."""
    feed("support")
    spec = behind(deployed, tokens_per_minute=6_000)
    now_us = rate.us_of(deployed.clock.now() + timedelta(minutes=1))
    deployed.budgets.take(spec, Want(requests=1, tokens=6_000), least=Want(), now_us=now_us)
    job = stored(deployed, estimated_tokens=1_000)
    document = penstock("jobs", "why", job.job_id, "--json").document
    (gate,) = [gate for gate in document["gates"] if not gate["open"]]
    assert (document["blocked_by"], gate["gate"], gate["key"]) == ("budget", "budget", "desk_account")
    assert document["earliest"] == gate["retry_at"] == iso(rate.at_us(now_us + 60 * rate.SECOND))
    text = penstock("jobs", "why", job.job_id).out
    assert re.search(r"account desk_account: [\d,]+ tokens missing; its turn is at " + document["earliest"], text)
    # About two minutes from now; how many seconds the machine took until here is not the test's affair.
    assert re.search(r"in (2|1) min|in (120|1[01]\d) s", text)


@pytest.mark.req("X9")
def test_why_of_a_job_behind_an_account_that_had_a_429(penstock: Any, deployed: Stage) -> None:
    """The vendor asked for quiet: that is said, and until when, not that zero of something is missing."""
    spec = behind(deployed)
    quiet = rate.us_of(deployed.clock.now() + timedelta(minutes=5))
    deployed.budgets.change(spec, rate.Terms(), rate.Terms(version=1, quiet_until_us=quiet, changed_us=1))
    job = stored(deployed)
    text = penstock("jobs", "why", job.job_id).out
    assert (
        f"account desk_account: it is quiet after a 429 of the vendor; its turn is at {iso(rate.at_us(quiet))}" in text
    )
    assert " 0 " not in text.partition("opens by")[2]


@pytest.mark.parametrize(
    ("values", "standing"),
    [
        ({"status": Status.PROCESSING}, "claimed"),
        ({"status": Status.COMPLETED}, "ended"),
        ({"status": Status.FAILED}, "ended"),
    ],
    ids=lambda value: str(value),
)
def test_why_says_where_it_stands(penstock: Any, deployed: Stage, values: dict[str, Any], standing: str) -> None:
    """Claimed and ended jobs say so, with since when."""
    job = stored(deployed, **values)
    document = penstock("jobs", "why", job.job_id, "--json").document
    assert document["standing"] == standing
    assert document["since"]
    assert penstock("jobs", "why", job.job_id).out


def test_why_of_an_open_effect(penstock: Any, deployed: Stage) -> None:
    """An intent without a result: the effect is open since its intent."""
    job = stored(deployed, status=Status.PROCESSING)
    deployed.effects.intend(an_effect_row(job_id=job.job_id))
    document = penstock("jobs", "why", job.job_id, "--json").document
    assert document["standing"] == "effect_open"
    assert "'reply' is open at helpdesk" in document["sentence"]


# ------------------------------------------------------------------------------------------ cancel, schedule
def test_cancel_keeps_who_and_why(penstock: Any, deployed: Stage) -> None:
    """A canceled job is ended, and the history names the caller as AWS knows them."""
    job = stored(deployed)
    assert (
        penstock("jobs", "cancel", job.job_id, "--why", "sent by hand", "--json").document["job"]["status"]
        == "canceled"
    )
    (event,) = deployed.history.of(f"job/{job.job_id}", limit=10)
    assert (event.kind, event.by, event.detail["why"]) == ("cancel", CALLER, "sent by hand")


def test_cancel_refuses_what_began_to_send(penstock: Any, deployed: Stage) -> None:
    """A job with an open effect may have reached the vendor: it stays as it is."""
    job = stored(deployed, status=Status.PROCESSING)
    deployed.effects.intend(an_effect_row(job_id=job.job_id))
    assert "open effect" in penstock("jobs", "cancel", job.job_id, "--why", "x", code=1).err
    standing = deployed.jobs.get(job.job_id)
    assert standing is not None
    assert standing.status is Status.PROCESSING


def test_cancel_waits_until_the_worker_of_a_running_job_is_gone(penstock: Any, deployed: Stage) -> None:
    """One command: the job is held until nobody can begin to send it, then canceled; both are in the history."""
    lasts = timedelta(seconds=deployed.lanes["support"].claim_timeout_s)
    job = stored(deployed, status=Status.PROCESSING, claimed_at=deployed.clock.now() - lasts + timedelta(seconds=1))
    assert f"canceled {job.job_id}" in penstock("jobs", "cancel", job.job_id, "--why", "sent by hand").out
    assert {event.kind for event in deployed.history.of(f"job/{job.job_id}", limit=5)} >= {"cancel"}


def test_cancel_of_an_ended_job(penstock: Any, deployed: Stage) -> None:
    """What has ended well cannot be canceled."""
    job = stored(deployed, status=Status.COMPLETED)
    error = penstock("jobs", "cancel", job.job_id, "--why", "x", "--json", code=1).document["error"]
    assert error["code"] == "illegal_move"


@pytest.mark.parametrize("verb", [("cancel",), ("schedule", "--now"), ("reset",)])
def test_why_is_asked_for(penstock: Any, deployed: Stage, verb: tuple[str, ...]) -> None:
    """Nobody steers a job without saying why; an empty reason is none."""
    job = stored(deployed)
    name, *rest = verb
    penstock("jobs", name, job.job_id, *rest, code=2)
    assert "why: is missing" in penstock("jobs", name, job.job_id, *rest, "--why", "  ", code=1).err


@pytest.mark.parametrize(
    ("option", "said"),
    [(("--in", "3h"), "in 3 h"), (("--at", "2099-01-01T00:00Z"), "in "), (("--now",), "now")],
    ids=["in", "at", "now"],
)
def test_schedule(penstock: Any, deployed: Stage, option: tuple[str, ...], said: str) -> None:
    """A queued job gets another time, by a span, a time, or now."""
    job = stored(deployed)
    assert said in penstock("jobs", "schedule", job.job_id, *option, "--why", "x").out
    after = deployed.jobs.get(job.job_id)
    assert after is not None
    assert after.not_before_at is not None
    assert after.waits


@pytest.mark.parametrize("option", [(), ("--now", "--in", "5m"), ("--in", "5m", "--at", "2099-01-01T00:00Z")])
def test_schedule_takes_one_time(penstock: Any, deployed: Stage, option: tuple[str, ...]) -> None:
    """None of the three ways, or two of them, is a usage error."""
    penstock("jobs", "schedule", stored(deployed).job_id, *option, "--why", "x", code=2)


def test_schedule_refuses_a_bad_time_and_a_job_that_runs(penstock: Any, deployed: Stage) -> None:
    """A time without a zone, a span that is none, and a job that is not queued."""
    job = stored(deployed, key="1")
    assert "at: " in penstock("jobs", "schedule", job.job_id, "--at", "2099-01-01", "--why", "x", code=1).err
    assert "in: " in penstock("jobs", "schedule", job.job_id, "--in", "soon", "--why", "x", code=1).err
    runs = stored(deployed, key="2", status=Status.PROCESSING)
    assert "only a queued job" in penstock("jobs", "schedule", runs.job_id, "--now", "--why", "x", code=1).err


@pytest.mark.parametrize("verb", ["schedule", "reset"])
def test_a_span_that_cannot_be_meant(penstock: Any, deployed: Stage, verb: str) -> None:
    """More than 400 days is a mistake, and is named as the option it stands in."""
    job = stored(deployed, status=Status.PROCESSING)
    assert "in: is more than 400 days" in penstock("jobs", verb, job.job_id, "--in", "401d", "--why", "x", code=1).err
    assert deployed.jobs.get(job.job_id) == job


# -------------------------------------------------------------------------------------------------- reset
@pytest.mark.req("X2")
@pytest.mark.parametrize(("options", "said"), [((), "it may run now"), (("--in", "3h"), "it may run in 3 h")])
def test_reset_takes_a_running_job_back(penstock: Any, deployed: Stage, options: tuple[str, ...], said: str) -> None:
    """Queued and waiting, its fence raised, with who and why in its history."""
    job = stored(deployed, status=Status.PROCESSING, attempt_count=1)
    assert said in penstock("jobs", "reset", job.job_id, *options, "--why", "its worker hangs").out
    after = deployed.jobs.get(job.job_id)
    assert after is not None
    assert (after.status, after.fence, after.attempt_count, after.waits) == (Status.QUEUED, job.fence + 1, 1, True)
    (event,) = deployed.history.of(f"job/{job.job_id}", limit=10)
    assert (event.kind, event.by, event.detail["why"]) == ("reset", CALLER, "its worker hangs")


@pytest.mark.req("X2")
def test_reset_refuses_an_open_effect_and_a_job_that_does_not_run(penstock: Any, deployed: Stage) -> None:
    """Both stay as they are; the sentence says why."""
    sending, waits = stored(deployed, key="1", status=Status.PROCESSING), stored(deployed, key="2")
    deployed.effects.intend(an_effect_row(job_id=sending.job_id))
    assert "has an open effect" in penstock("jobs", "reset", sending.job_id, "--why", "x", code=1).err
    assert "only a running job" in penstock("jobs", "reset", waits.job_id, "--why", "x", code=1).err
    assert deployed.jobs.get(sending.job_id) == sending


def test_reset_answers_programs(penstock: Any, deployed: Stage) -> None:
    """The job, and what its worker had just begun."""
    job = stored(deployed, status=Status.PROCESSING)
    document = penstock("jobs", "reset", job.job_id, "--why", "x", "--json").document
    assert (document["job"]["status"], document["begun"]) == ("queued", [])


# ------------------------------------------------------------------------------------------------- result
@pytest.mark.fault("I5")
def test_result_shows_the_text_and_keeps_who_looked(penstock: Any, deployed: Stage) -> None:
    """The one command that shows customer text says so, and each look is in the history."""
    ref = "result/x/answer"
    job = stored(deployed, status=Status.COMPLETED, result_ref=ref)
    deployed.content.put(ref, b"Dear customer \x1b[31m")
    said = penstock("jobs", "result", job.job_id)
    assert "Dear customer" in said.out
    assert "\x1b" not in said.out
    assert "Customer text" in said.err
    assert penstock("jobs", "result", job.job_id, "--json").document["content"] == "Dear customer \x1b[31m"
    seen = deployed.history.of(f"job/{job.job_id}", limit=10)
    assert [(one.kind, one.by, one.detail["ref"]) for one in seen] == [("content_view", CALLER, ref)] * 2


@pytest.mark.fault("I5")
def test_result_is_not_shown_when_the_look_cannot_be_kept(
    penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written down first: without the history there is no text."""
    job = stored(deployed, status=Status.COMPLETED, result_ref="result/x/answer")
    deployed.content.put("result/x/answer", b"Dear customer")

    def down(*_: Any) -> None:
        raise ConnectionError("no history")

    monkeypatch.setattr("shared.adapters.aws.history.DynamoDbHistory.append", down)
    said = penstock("jobs", "result", job.job_id, code=1)
    assert "Dear customer" not in said.out + said.err


def test_result_without_text(penstock: Any, deployed: Stage) -> None:
    """A job that kept none says so and leaves no trace; text that has expired is an error."""
    job = stored(deployed, key="1", status=Status.COMPLETED)
    assert "kept no text" in penstock("jobs", "result", job.job_id).out
    assert penstock("jobs", "result", job.job_id, "--json").document["content"] is None
    gone = stored(deployed, key="2", status=Status.COMPLETED, result_ref="result/y/answer")
    assert "no longer" in penstock("jobs", "result", gone.job_id, code=1).err
    assert deployed.history.of(f"job/{job.job_id}", limit=10) == []


def test_category_is_shown(penstock: Any, deployed: Stage) -> None:
    """A failed job's page names its category."""
    job = stored(deployed, status=Status.FAILED, category=Category.OUTCOME_UNKNOWN)
    assert "outcome_unknown" in penstock("jobs", "show", job.job_id).out


# ------------------------------------------------------------------------------------------------- erase
@pytest.mark.req("R14")
def test_erase_removes_the_texts_of_an_ended_job(penstock: Any, deployed: Stage) -> None:
    """Row and object, with a word about how many; a job that waits is ended first."""
    ref = references.payload_row("acme", "x", "d")
    job = stored(deployed, status=Status.COMPLETED, payload_ref=ref, result_ref="result/x/answer")
    deployed.content.put(ref, b"Dear vendor")
    deployed.content.put("result/x/answer", b"Dear customer")
    said = penstock("jobs", "erase", job.job_id, "--why", "the customer asked")
    assert f"erased 2 texts of {job.job_id}" in said.out
    assert (deployed.content.get(ref), deployed.content.get("result/x/answer")) == (None, None)
    assert penstock("jobs", "erase", job.job_id, "--why", "again", "--json").document["erased"] == 2
    waits = stored(deployed, key="waits")
    assert "cancel or dismiss it first" in penstock("jobs", "erase", waits.job_id, "--why", "x", code=1).err
