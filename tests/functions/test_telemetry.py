"""Logs and metrics as they leave a function: one JSON line, ids and codes, dimensions from a closed list."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract import metrics
from shared.core.errors import BadInput, Unavailable
from shared.core.job import Status
from shared.runtime.door import DoorFailed, door
from shared.runtime.telemetry import MAX_VALUE, PowertoolsTelemetry, clean, code_of, place_of
from tests.functions.stage import a_stage, sqs_record
from tests.functions.telemetry_lines import watched

SECRET = "the customer's own words"


@pytest.mark.fault("I7")
@given(value=st.text(max_size=600))
def test_a_value_is_one_short_printable_piece(value: str) -> None:
    """No line break, no escape sequence, no separator that another reader takes for one; at most 256 characters."""
    shown = clean(value)
    assert isinstance(shown, str)
    assert len(shown) <= MAX_VALUE
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1


@pytest.mark.fault("I7")
@pytest.mark.parametrize(
    "value", ['x\n{"level":"ERROR"}', "x\r\ny", "\x1b[31mred", "x\u2028y", "x\u2029y", "x\x00y", "x\x85y"]
)
def test_no_value_can_forge_a_line(value: str) -> None:
    """However it tries, there is one line, and it parses."""
    with watched() as output:
        PowertoolsTelemetry("a-test", stage="dev").event("an_event", job_id=value)
    (line,) = output.text.strip("\n").split("\n")
    assert json.loads(line)["message"] == "an_event"
    assert len(line.splitlines()) == 1


def test_an_event_is_a_name_and_ids() -> None:
    """What is None is left out; numbers stay numbers."""
    with watched() as output:
        PowertoolsTelemetry("a-test", stage="dev").event(
            "job_done", job_id="j-1", count=3, ok=True, nothing=None, status=Status.QUEUED
        )
    (line,) = output.logs
    assert (line["message"], line["level"], line["service"]) == ("job_done", "INFO", "a-test")
    assert (line["job_id"], line["count"], line["ok"], line["status"]) == ("j-1", 3, True, "queued")
    assert "nothing" not in line


class Stranger(Exception):
    """An error of another library, with a code and arguments that hold text."""

    code = SECRET


@pytest.mark.req("R14")
@pytest.mark.fault("I1")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError(SECRET), ""),
        (KeyError(SECRET), ""),
        (Stranger(SECRET), ""),
        (SystemExit(SECRET), ""),
        (BadInput("topic", SECRET), "bad_input"),
        (Unavailable("jobs", "throttled"), "unavailable"),
    ],
)
def test_an_error_is_its_type_code_and_place(error: BaseException, code: str) -> None:
    """Never its text, its arguments, its locals or its trace; a code only if the error is ours."""
    secret_local = SECRET
    with watched() as output:
        try:
            raise error
        except BaseException as exc:
            PowertoolsTelemetry("a-test", stage="dev").error("it_failed", exc, job_id="j-1")
    (line,) = output.logs
    assert (line["error_type"], line["error_code"], line["job_id"]) == (type(error).__name__, code, "j-1")
    assert "test_telemetry.py:" in line["error_place"]
    assert secret_local not in output.text
    assert code_of(error) == code


def test_the_place_is_the_deepest_line_of_ours() -> None:
    """File and line, whatever library raised."""
    from shared.contract import strict_json

    with pytest.raises(ValueError, match="is not valid JSON") as refused:
        strict_json.loads("{")
    assert place_of(refused.value).startswith("shared/contract/strict_json.py:")
    assert place_of(ValueError()) == ""


@pytest.mark.fault("I4")
def test_metrics_are_a_closed_list_by_lane() -> None:
    """One EMF document per lane, counts added up, no dimension but the lane, the stage and the service."""
    with watched() as output:
        telemetry = PowertoolsTelemetry("a-test", stage="dev")
        telemetry.count(metrics.COMPLETED, lane="support")
        telemetry.count(metrics.COMPLETED, 2, lane="support")
        telemetry.count(metrics.RUN_SKIPPED)
        telemetry.flush()
        telemetry.flush()
    everything, support = output.metrics
    assert (support["JobsCompleted"], support["lane"], everything["lane"]) == ([3.0], "support", "all")
    dimensions = {
        name for doc in output.metrics for one in doc["_aws"]["CloudWatchMetrics"] for name in one["Dimensions"][0]
    }
    assert dimensions == {"lane", "stage", "service"}
    assert {doc["stage"] for doc in output.metrics} == {"dev"}
    with pytest.raises(ValueError, match="closed list"):
        telemetry.count(SECRET)


@pytest.mark.req("X9")
@pytest.mark.fault("I4")
def test_what_an_account_was_asked_for_is_counted_by_account() -> None:
    """Two accounts of one lane are two documents, each with the account; the lane's other counts stand apart."""
    with watched() as output:
        telemetry = PowertoolsTelemetry("a-test", stage="dev")
        for account, permits in (("openai", 3), ("helpdesk", 5), ("openai", 1)):
            telemetry.count(metrics.PERMITS, permits, lane="support", account=account)
        telemetry.count(metrics.COMPLETED, lane="support")
        telemetry.flush()
    found = {doc.get("account"): doc for doc in output.metrics}
    assert {account: doc.get("PermitsTaken") for account, doc in found.items()} == {
        None: None,
        "openai": [4.0],
        "helpdesk": [5.0],
    }
    assert found[None]["JobsCompleted"] == [1.0]
    for account, doc in found.items():
        ((dimensions,),) = [one["Dimensions"] for one in doc["_aws"]["CloudWatchMetrics"]]
        assert set(dimensions) == {"lane", "stage", "service", *(["account"] if account else [])}


@pytest.mark.fault("I3")
def test_chatty_libraries_are_kept_quiet() -> None:
    """At DEBUG they write whole requests; their level is pinned when telemetry is loaded, whatever the root says."""
    with watched(logging.DEBUG):
        for name in ("botocore", "boto3", "urllib3", "httpx", "httpcore"):
            assert logging.getLogger(name).getEffectiveLevel() >= logging.WARNING
            assert logging.getLogger(f"{name}.deep.inside").getEffectiveLevel() >= logging.WARNING


@pytest.mark.fault("I1")
def test_the_door_lets_nothing_but_a_code_out() -> None:
    """Lambda prints what is raised: a code, no cause, no text; metrics are flushed all the same."""
    with watched() as output:
        telemetry = PowertoolsTelemetry("a-test", stage="dev")

        @door(lambda: telemetry, "a-test")
        def handler(event: object, context: object) -> None:
            telemetry.count(metrics.FAILED, lane="support")
            raise Stranger(SECRET)

        with pytest.raises(DoorFailed, match=r"^a-test:Stranger$") as failed:
            handler({}, None)
    assert failed.value.__suppress_context__
    assert len(output.metrics) == 1
    assert SECRET not in output.text


def test_a_worker_flushes_its_counts_once_an_invocation() -> None:
    """One document per lane, with the service's name."""
    with watched() as output, a_stage() as stage:
        jobs = [stage.enqueue(f"event-{n}") for n in range(3)]
        stage.returned(*(sqs_record(job) for job in jobs))
    (document,) = output.metrics
    assert (document["service"], document["JobsCompleted"], document["EffectsSent"]) == ("support-worker", [3.0], [3.0])
