"""The sweep itself: it finds a leak in every channel through which this kind of system is known to leak."""

from __future__ import annotations

import base64
import json
import logging
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from shared.core.job import Status
from shared.core.lifecycle import signature_of
from tests.builders import a_job
from tests.functions.stage import LambdaContext
from tests.leaks.sweep import CANARY, Sweep, holds, quoted, sweeping

log = logging.getLogger("a.library")


def said(error: BaseException) -> None:
    """The commonest mistake of all: an error's text in a log line."""
    log.error("failed: %s", error)


def failing(act: Callable[[], Any]) -> BaseException:
    """The error that an act raises."""
    try:
        act()
    except Exception as exc:
        return exc
    raise AssertionError("it did not fail")


def a_client(service: str) -> Any:
    import boto3

    return boto3.client(service, "eu-central-1")  # type: ignore[call-overload]


def stubbed(service: str, operation: str, code: str, **response: Any) -> BaseException:
    """The SDK's error for an answer that carries a row."""
    from botocore.exceptions import ClientError

    return ClientError({"Error": {"Code": code, "Message": "x"}, **response}, operation)


# ------------------------------------------------------------------------------- one planted leak a channel
def param_validation(sweep: Sweep) -> None:
    said(failing(lambda: a_client("dynamodb").get_item(TableName="t", Key=CANARY)))


def type_serializer(sweep: Sweep) -> None:
    from boto3.dynamodb.types import TypeSerializer

    said(failing(lambda: TypeSerializer().serialize({"a": ValueError(CANARY)})))


def condition_failed(sweep: Sweep) -> None:
    error = stubbed("dynamodb", "PutItem", "ConditionalCheckFailedException", Item={"text": {"S": CANARY}})
    log.error("failed: %s", error.response)  # type: ignore[attr-defined]


def transaction_canceled(sweep: Sweep) -> None:
    reasons = [{"Code": "ConditionalCheckFailed", "Item": {"text": {"S": CANARY}}}]
    error = stubbed("dynamodb", "TransactWriteItems", "TransactionCanceledException", CancellationReasons=reasons)
    log.error("failed", extra={"response": error.response})  # type: ignore[attr-defined]


def botocore_debug(sweep: Sweep) -> None:
    from moto import mock_aws

    with mock_aws(), pytest.MonkeyPatch.context() as patch:
        for name in ("botocore", "boto3"):
            patch.setattr(logging.getLogger(name), "level", logging.DEBUG)
            logging.getLogger(name).manager._clear_cache()  # type: ignore[attr-defined]
        with suppress(Exception):
            a_client("dynamodb").put_item(TableName="t", Item={"pk": {"S": CANARY}})
    logging.root.manager._clear_cache()  # type: ignore[attr-defined]


def json_document(sweep: Sweep) -> None:
    log.error("failed", extra={"doc": failing(lambda: json.loads(f'{{"a": {CANARY}')).doc})  # type: ignore[attr-defined]


def key_error(sweep: Sweep) -> None:
    said(failing(lambda: {}[CANARY]))


def int_error(sweep: Sweep) -> None:
    said(failing(lambda: int(CANARY)))


def time_error(sweep: Sweep) -> None:
    said(failing(lambda: datetime.fromisoformat(CANARY)))


def enum_error(sweep: Sweep) -> None:
    said(failing(lambda: Status(CANARY)))


def dataclass_repr(sweep: Sweep) -> None:
    @dataclass
    class Event:
        text: str

    log.info("got %r", Event(CANARY))


def log_event(sweep: Sweep) -> None:
    from aws_lambda_powertools import Logger

    @Logger(service="triage").inject_lambda_context(log_event=True)
    def handler(event: Any, context: Any) -> None: ...

    handler({"text": CANARY}, a_context())


def log_event_by_environment(sweep: Sweep) -> None:
    from aws_lambda_powertools import Logger

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POWERTOOLS_LOGGER_LOG_EVENT", "true")

        @Logger(service="triage").inject_lambda_context
        def handler(event: Any, context: Any) -> None: ...

        handler({"text": CANARY}, a_context())


def a_context() -> Any:
    class Context(LambdaContext):
        function_name = "f"
        memory_limit_in_mb = 128
        invoked_function_arn = "arn"

    return Context()


def logger_exception(sweep: Sweep) -> None:
    try:
        raise ValueError(CANARY)
    except ValueError:
        log.exception("failed")


def powertools_exception(sweep: Sweep) -> None:
    from aws_lambda_powertools import Logger

    try:
        raise ValueError(CANARY)
    except ValueError:
        Logger(service="triage").exception("failed")


def extra_payload(sweep: Sweep) -> None:
    log.info("got it", extra={"payload": {"text": CANARY}})


def emf_dimension(sweep: Sweep) -> None:
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

    metrics = EphemeralMetrics(namespace="n", service="s")
    metrics.add_dimension(name="tenant", value=CANARY)
    metrics.add_metric(name="m", unit=MetricUnit.Count, value=1)
    metrics.flush_metrics()


def emf_metadata(sweep: Sweep) -> None:
    from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

    metrics = EphemeralMetrics(namespace="n", service="s")
    metrics.add_metadata(key="text", value=CANARY)
    metrics.add_metric(name="m", unit=MetricUnit.Count, value=1)
    metrics.flush_metrics()


def printed(sweep: Sweep) -> None:
    print(CANARY)


def printed_to_stderr(sweep: Sweep) -> None:
    print(CANARY, file=sys.stderr)


def warned(sweep: Sweep) -> None:
    sys.stderr.write(warnings.formatwarning(UserWarning(CANARY), UserWarning, "f", 1))


def uncaught(sweep: Sweep) -> None:
    sweep.lambda_prints(ValueError(CANARY))


def uncaught_cause(sweep: Sweep) -> None:
    try:
        try:
            raise KeyError(CANARY)
        except KeyError as exc:
            raise RuntimeError("a code") from exc
    except RuntimeError as exc:
        sweep.lambda_prints(exc)


def in_table(name: str) -> Callable[[Sweep], None]:
    return lambda sweep: sweep.look_at(tables={name: [{"pk": {"S": "x"}, "note": {"S": CANARY}}]}, queues={})


def table_signature(sweep: Sweep) -> None:
    sweep.look_at(tables={"jobs": [{"signature": {"S": signature_of(CANARY)}}]}, queues={})


def queue_message(sweep: Sweep) -> None:
    sweep.look_at(tables={}, queues={"support": [json.dumps({"v": 1, "text": CANARY})]})


def dead_letter(sweep: Sweep) -> None:
    sweep.look_at(tables={}, queues={"support-dlq": [json.dumps({"error": CANARY})]})


def message_group(sweep: Sweep) -> None:
    sweep.look_at(tables={}, queues={"support groups": [CANARY]})


def export_file(sweep: Sweep) -> None:
    sweep.export("jobs.jsonl", json.dumps({"job": a_job().job_id, "text": CANARY}))


def encoded(sweep: Sweep) -> None:
    log.info("body=%s", base64.b64encode(CANARY.encode()).decode())


def in_an_address(sweep: Sweep) -> None:
    log.info("GET /search?q=%s", quoted(CANARY))


PLANTED: dict[str, tuple[Callable[[Sweep], None], str]] = {
    "botocore ParamValidationError": (param_validation, "log record"),
    "boto3 TypeSerializer": (type_serializer, "log record"),
    "ConditionalCheckFailed with ALL_OLD": (condition_failed, "log record"),
    "CancellationReasons with items": (transaction_canceled, "log record"),
    "botocore at DEBUG": (botocore_debug, "log record"),
    "JSONDecodeError.doc": (json_document, "log record"),
    "KeyError": (key_error, "log record"),
    "int()": (int_error, "log record"),
    "fromisoformat()": (time_error, "log record"),
    "Enum()": (enum_error, "log record"),
    "dataclass repr": (dataclass_repr, "log record"),
    "Powertools log_event": (log_event, "stdout"),
    "POWERTOOLS_LOGGER_LOG_EVENT": (log_event_by_environment, "stdout"),
    "logger.exception": (logger_exception, "log record"),
    "Powertools logger.exception": (powertools_exception, "stdout"),
    "extra=payload": (extra_payload, "log record"),
    "EMF dimension": (emf_dimension, "stdout"),
    "EMF metadata": (emf_metadata, "stdout"),
    "print": (printed, "stdout"),
    "print to stderr": (printed_to_stderr, "stderr"),
    "a warning": (warned, "stderr"),
    "an uncaught error": (uncaught, "raised"),
    "an uncaught error's cause": (uncaught_cause, "raised"),
    **{
        f"a row of {name}": (in_table(name), f"table {name}")
        for name in ("jobs", "effects", "control", "ledger", "history")
    },
    "an error's signature": (table_signature, "table jobs"),
    "a queue message": (queue_message, "queue support"),
    "a dead letter": (dead_letter, "queue support-dlq"),
    "a message group": (message_group, "queue support groups"),
    "an export": (export_file, "export jobs.jsonl"),
    "base64": (encoded, "log record"),
    "an address": (in_an_address, "log record"),
}


@pytest.mark.fault("I1", "I2", "I3", "I4", "I5")
@pytest.mark.parametrize(("plant", "channel"), PLANTED.values(), ids=PLANTED)
def test_a_planted_leak_is_found(tmp_path: Path, plant: Callable[[Sweep], None], channel: str) -> None:
    """Nothing before, and this channel after: the sweep that guards the real handlers sees each of these."""
    with sweeping(tmp_path) as sweep:
        assert sweep.hits() == []
        plant(sweep)
        assert channel in sweep.hits()


@pytest.mark.fault("I7")
def test_a_forged_line_is_found(tmp_path: Path) -> None:
    """A line break through a plain logger makes a line of its own; through ours it cannot."""
    with sweeping(tmp_path) as sweep:
        plain = logging.StreamHandler(sys.stdout)
        log.addHandler(plain)
        try:
            log.error("tenant=%s", 'x\n{"level":"INFO","message":"all is well"}')
        finally:
            log.removeHandler(plain)
        assert len(sweep.forged()) == 2


def test_what_is_clean_is_clean(tmp_path: Path) -> None:
    """No false alarm: ids, codes and the masks of sensitive values are not the customer's words."""
    from shared.core.sensitive import Sensitive
    from shared.runtime.telemetry import PowertoolsTelemetry

    with sweeping(tmp_path) as sweep:
        PowertoolsTelemetry("triage", stage="dev").event("a_thing", job_id=a_job().job_id)
        log.info("%s %r", Sensitive(CANARY), {"text": Sensitive(CANARY)})
        assert (sweep.hits(), sweep.forged()) == ([], [])
    assert holds(CANARY)
    assert not holds(a_job().job_id)
