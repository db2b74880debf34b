"""The scheduled doors: any event will do, one run per slot, and bad rows or messages stop none of them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.contract import env, envelope
from shared.core.errors import BadInput
from shared.core.job import CANARY, Category, Job, Status
from shared.runtime import wiring
from shared.runtime.door import DoorFailed
from shared.runtime.engine_settings import EngineSettings
from shared.runtime.settings import WorkerSettings
from tests.builders import NOW, a_job
from tests.functions.stage import ENVIRONMENT, LANE, Stage, a_stage
from tests.settings import settings_file, settings_text
from tests.unit.core.strategies import few, json_values
from tests.unit.usecases.desk import Flaky

SCHEDULED = ("dispatcher", "sweeper", "triage", "auditor", "redriver", "governor")


def tick(stage: Stage, function: str, event: Any = None) -> dict[str, int]:
    """A run in a slot of its own; its counts."""
    stage.desk.clock.advance(60)
    answer = stage.invoke(function, {} if event is None else event)
    assert answer["ran"]
    counts: dict[str, int] = answer["counts"]
    return counts


@pytest.mark.req("F8")
@pytest.mark.fault("D1")
@pytest.mark.parametrize("function", SCHEDULED)
def test_fired_three_times_it_runs_once(function: str) -> None:
    """The others answer that they did not run, which is no error."""
    with a_stage() as stage:
        answers = [stage.invoke(function, {}) for _ in range(3)]
        assert [answer["ran"] for answer in answers] == [True, False, False]
        (run,) = stage.desk.ledger.runs(function, limit=5)
        assert run.finished_at is not None
        assert dict(run.counts) == answers[0]["counts"]


@few
@given(event=json_values, function=st.sampled_from(SCHEDULED))
def test_what_fires_it_does_not_matter(event: Any, function: str) -> None:
    """Nothing of a scheduled event is read: a slot is derived from the time."""
    with a_stage() as stage:
        assert stage.invoke(function, event)["ran"]


rows = st.lists(
    st.tuples(
        st.sampled_from(["good", "unknown status", "no fields", "bad time", "bad lane"]), st.sampled_from(Status)
    ),
    max_size=5,
)


@pytest.mark.fault("K1")
@few
@given(planted=rows, bodies=st.lists(st.text(max_size=20), max_size=3))
def test_no_row_and_no_message_stops_a_run(planted: list[tuple[str, Status]], bodies: list[str]) -> None:
    """Each runs over any mixture of good, strange and unreadable rows and dead messages, and finishes."""
    with a_stage() as stage:
        for n, (kind, status) in enumerate(planted):
            job = stage.desk.put(a_job(key=f"event-{n}", task="answer_event", status=status, due=NOW))
            item = dict(stage.desk.jobs.item(job.job_id) or {})
            if kind == "unknown status":
                item["status"] = {"S": "hibernating"}
            elif kind == "no fields":
                item = {name: item[name] for name in ("pk", "status", "wpk", "wsk")}
            elif kind == "bad time":
                item["created_at"] = {"S": "yesterday"}
            elif kind == "bad lane":
                item["lane"] = {"S": "Not a lane"}
            stage.desk.jobs.plant(item)
            stage.desk.dead_letters.add("support", envelope.encode_ticket(job.job_id, "support"))
        for body in bodies:
            stage.desk.dead_letters.add("support", body)
        stage.desk.clock.advance(7200)
        for function in SCHEDULED:
            tick(stage, function)


def test_the_dispatcher_sends_what_is_due() -> None:
    """And counts by lane."""
    with a_stage() as stage:
        stage.enqueue(not_before=NOW + timedelta(seconds=90))
        counts = tick(stage, "dispatcher")
        assert (counts["support.nominated"], counts["support.sent"]) == (1, 1)


def test_the_sweeper_reports_what_is_overdue() -> None:
    """Counts by lane."""
    with a_stage() as stage:
        stage.enqueue(not_before=NOW + timedelta(seconds=1))
        stage.desk.clock.advance(3600)
        assert tick(stage, "sweeper")["support.overdue"] == 1


@pytest.mark.fault("F9")
def test_the_sweeper_restores_a_deleted_letter() -> None:
    """One sweep after it is gone; the next one sees it stand."""
    with a_stage() as stage:
        job = stage.desk.put(a_job(status=Status.FAILED))
        assert [tick(stage, "sweeper")["support.letters"] for _ in range(2)] == [1, 0]
        assert stage.desk.dead_letters.job_ids("support") == [job.job_id]


@pytest.mark.fault("A11", "B2")
def test_triage_names_what_died() -> None:
    """A ticket that was never claimed, and bytes nobody can read."""
    with a_stage() as stage:
        job = stage.enqueue()
        stage.desk.dead_letters.add("support", envelope.encode_ticket(job.job_id, "support"))
        stage.desk.dead_letters.add("support", "the customer's words")
        counts = tick(stage, "triage")
        assert (counts["support.infrastructure"], counts["support.quarantined"]) == (1, 1)
        assert stage.desk.job(job.job_id).category is Category.INFRASTRUCTURE


def test_triage_looks_again_only_when_the_depth_changed_or_time_has_passed() -> None:
    """Bounded work in a long incident; nothing is forgotten either."""
    with a_stage() as stage:
        job = stage.desk.put(a_job(status=Status.FAILED))
        stage.desk.admit(job)
        looked = [tick(stage, "triage")["support.looked_at"] for _ in range(12)]
        assert looked[0] == 1
        assert looked[1:].count(1) == 1
        assert stage.desk.dead_letters.depth("support").total == 1


@pytest.mark.fault("B12")
def test_the_auditor_mends() -> None:
    """A job whose message was lost is sent again."""
    with a_stage() as stage:
        job = stage.enqueue()
        stage.desk.clock.advance(3600)
        assert tick(stage, "auditor") == {"jobs": 1, "findings": 1, "repaired": 1, "unchecked": 0, "listed": 0}
        assert stage.desk.queued_messages() == [job.job_id]


@pytest.mark.fault("I1")
@pytest.mark.parametrize("function", SCHEDULED)
def test_an_outage_is_told_by_its_code(function: str) -> None:
    """The schedule's own failure queue hears of it; the next slot tries again."""
    with a_stage() as stage:
        flaky = Flaky(stage.desk.ledger, "open_run")
        flaky.down = True
        stage.desk.ledger = flaky  # type: ignore[assignment]
        with pytest.raises(DoorFailed, match=f"^{function}:unavailable$"):
            stage.invoke(function, {})
        flaky.down = False
        assert stage.invoke(function, {})["ran"]


def test_a_run_stops_before_its_function_does() -> None:
    """With no time left the dispatcher begins nothing."""
    with a_stage() as stage:
        for n in range(3):
            stage.enqueue(f"event-{n}", not_before=NOW + timedelta(seconds=1))
        stage.desk.clock.advance(60)
        answer = stage.invoke("dispatcher", {}, left_s=0)
        assert answer["counts"]["support.nominated"] == 0


@pytest.mark.req("C4")
def test_the_governor_asserts_what_it_decides() -> None:
    """A job that has been due for minutes raises the cap of the lane's event source."""
    with a_stage() as stage:
        stage.desk.put(a_job(task="answer_event", due=NOW))
        stage.desk.clock.advance(240)
        counts = tick(stage, "governor")
        assert (counts["support.cap"], counts["support.severity"]) == (4, 2)
        assert stage.actuator.sources["support"].cap == 4


def test_triage_tells_of_what_no_worker_saw_die() -> None:
    """So that who judges the lane hears of it."""
    with a_stage() as stage:
        job = stage.enqueue()
        stage.desk.dead_letters.add("support", envelope.encode_ticket(job.job_id, "support"))
        tick(stage, "triage")
        assert [minute.counts.failed for minute in stage.desk.signals.minutes("support", since=NOW)] == [1]
        assert tick(stage, "governor")["support.severity"] == 3


@pytest.mark.req("C14")
def test_the_governor_takes_its_numbers_from_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A threshold and a policy that a stage sets; a policy nobody describes stops it by name."""
    with a_stage() as stage:
        rules = {"severity": {"mild_age_s": 10}, "policies": {"conservative": {"step_up": 1}}}
        monkeypatch.setenv(env.SETTINGS, settings_file(lanes={"support": LANE}, rules=rules))
        stage.desk.put(a_job(task="answer_event", due=NOW))
        stage.desk.clock.advance(15)
        assert tick(stage, "governor")["support.cap"] == 3
    with a_stage() as stage:
        monkeypatch.setenv(env.SETTINGS, settings_file(lanes={"support": {**LANE, "policy": "heroic"}}))
        with pytest.raises(DoorFailed, match="governor:bad_input"):
            stage.invoke("governor", {})


# ----------------------------------------------------------------------------------------- the environment
NEEDS = {
    "stream": (env.STAGE, env.SETTINGS),
    "feed": (env.EVENT_BUS,),
    "dispatcher": (env.STAGE, env.SETTINGS, env.LEDGER_TABLE, env.PERIOD_S),
    "triage": (env.STAGE, env.SETTINGS, env.LEDGER_TABLE, env.PERIOD_S),
    "support": (env.STAGE, env.SETTINGS, env.LANE),
}


@pytest.mark.parametrize(("function", "name"), [(f, name) for f, names in NEEDS.items() for name in names])
def test_a_missing_variable_stops_the_function(function: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that its environment is wrong, by code or by the variable's name, and runs nothing."""
    with a_stage() as stage:
        monkeypatch.delenv(name)
        with pytest.raises(Exception, match=f"bad_input|{name}"):
            stage.invoke(function, {"Records": []})
        monkeypatch.setenv(name, ENVIRONMENT[name])


@pytest.mark.parametrize(
    "variable", [env.JOBS_TABLE, env.EFFECTS_TABLE, env.CONTROL_TABLE, env.CONTENT_BUCKET, env.CONTENT_TABLE]
)
def test_a_worker_asks_for_every_name_before_its_first_job(variable: str) -> None:
    """What a worker is wired with is named when it is missing, not met in the middle of a job."""
    settings = WorkerSettings.from_env({name: value for name, value in ENVIRONMENT.items() if name != variable})
    with pytest.raises(BadInput, match=variable):
        wiring.worker(settings, {}, MemoryTelemetry())


@pytest.mark.parametrize(
    "text", ["", "not json", "[]", "{}", '{"lanes": []}', json.dumps({"lanes": {"support": {"tasks": []}}})]
)
def test_settings_that_make_no_sense_are_refused(text: str) -> None:
    """By the variable's or the setting's name; so are those that are not in the package."""
    for settings in (WorkerSettings, EngineSettings):
        with pytest.raises(BadInput, match=r"PENSTOCK_SETTINGS|lanes\.support\.tasks"):
            settings.from_env({**ENVIRONMENT, env.SETTINGS: settings_text(text)})
        with pytest.raises(BadInput, match=r"PENSTOCK_SETTINGS.*is not in the function's package"):
            settings.from_env({**ENVIRONMENT, env.SETTINGS: "settings-of-nobody.json"})


def test_a_job_travels_through_every_door() -> None:
    """Enqueued, admitted, worked on, audited: the whole way on the real handlers."""
    with a_stage() as stage:
        job = stage.enqueue()
        from tests.functions.stage import sqs_record, stream_event

        item = stage.desk.jobs.item(job.job_id)
        assert stage.invoke("stream", stream_event(item))["sent"] == 1
        assert stage.returned(sqs_record(job)) == []
        for function in SCHEDULED:
            tick(stage, function)
        (after,) = [row for row in stage.desk.jobs.scan() if isinstance(row, Job) and row.task != CANARY]
        assert (after.status, after.result, len(stage.desk.vendor.accepts)) == (Status.COMPLETED, "replied", 1)
