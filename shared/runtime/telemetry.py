"""Logs and metrics by Powertools: an event name and ids; counts by lane and stage. Never a text, never a payload."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from shared.contract import metrics
from shared.core.errors import PenstockError
from shared.core.ports import Value

MAX_VALUE = 256

# At DEBUG these write whole requests, texts included.
for _chatty in ("botocore", "boto3", "urllib3", "httpx", "httpcore"):
    logging.getLogger(_chatty).setLevel(logging.WARNING)


class PowertoolsTelemetry:
    """The Telemetry port of a Lambda. Counts are kept until `flush`, one EMF document per lane and account."""

    def __init__(self, service: str, *, stage: str) -> None:
        self._logger = Logger(service=service, level="INFO", log_uncaught_exceptions=False)
        self._service, self._stage = service, stage
        self._counts: dict[tuple[str, str], dict[str, float]] = {}
        """By lane and account, which is empty for most."""
        self._lock = threading.Lock()

    def event(self, name: str, **ids: Value | Mapping[str, Value]) -> None:
        """One JSON line."""
        self._logger.info(name, **_fields(ids))

    def error(self, name: str, exc: BaseException, **ids: Value) -> None:
        """Type, code and place of an error; its message may hold what a customer wrote."""
        self._logger.error(
            name,
            error_type=type(exc).__name__,
            error_code=code_of(exc),
            error_place=place_of(exc),
            **_fields(ids),
        )

    def count(self, metric: str, value: float = 1, *, lane: str = metrics.ALL_LANES, account: str = "") -> None:
        """Add to a metric of the closed list."""
        if metric not in metrics.ALL:
            raise ValueError("not a metric of the closed list")
        with self._lock:
            counts = self._counts.setdefault((lane, account), {})
            counts[metric] = counts.get(metric, 0.0) + value

    def flush(self) -> None:
        """Write what was counted."""
        with self._lock:
            counts, self._counts = self._counts, {}
        for (lane, account), values in sorted(counts.items()):
            document = EphemeralMetrics(namespace=metrics.NAMESPACE, service=self._service)
            document.add_dimension(name=metrics.LANE, value=lane)
            document.add_dimension(name=metrics.STAGE, value=self._stage)
            if account:
                document.add_dimension(name=metrics.ACCOUNT, value=account)
            for metric, value in values.items():
                document.add_metric(name=metric, unit=MetricUnit.Count, value=value)
            document.flush_metrics()


def _fields(ids: Mapping[str, Value | Mapping[str, Value]]) -> dict[str, Any]:
    told = ((key, value) for key, value in ids.items() if value is not None)
    return {key: _fields(value) if isinstance(value, Mapping) else clean(value) for key, value in told}


def clean(value: Value) -> Value:
    """A value fit for one log line: no control characters, bounded."""
    if isinstance(value, str):
        return "".join(ch if ch.isprintable() else " " for ch in value[:MAX_VALUE])
    return value


def code_of(exc: BaseException) -> str:
    """The code of an error of ours; a stranger's `code` may be anything."""
    return exc.code if isinstance(exc, PenstockError) else ""


def place_of(exc: BaseException) -> str:
    """Where in our code an error came from: file and line, nothing else."""
    frames = traceback.extract_tb(exc.__traceback__)
    ours = [frame for frame in frames if "/shared/" in frame.filename or "/functions/" in frame.filename]
    if not frames:
        return ""
    frame = (ours or frames)[-1]
    return f"{'/'.join(frame.filename.split('/')[-3:])}:{frame.lineno}"
