"""Names of the environment variables infra sets and settings read. No function reads any other."""

from __future__ import annotations

STAGE = "PENSTOCK_STAGE"
SETTINGS = "PENSTOCK_SETTINGS"
"""The file in the function's package that says what its lanes, vendors and accounts are."""
ACCOUNT_ID = "PENSTOCK_ACCOUNT_ID"
"""The AWS account: with the stage and a lane it makes the address of a queue."""
LANE = "PENSTOCK_LANE"
JOBS_TABLE = "PENSTOCK_JOBS_TABLE"
EFFECTS_TABLE = "PENSTOCK_EFFECTS_TABLE"
CONTROL_TABLE = "PENSTOCK_CONTROL_TABLE"
LEDGER_TABLE = "PENSTOCK_LEDGER_TABLE"
HISTORY_TABLE = "PENSTOCK_HISTORY_TABLE"
CONTENT_BUCKET = "PENSTOCK_CONTENT_BUCKET"
CONTENT_TABLE = "PENSTOCK_CONTENT_TABLE"
SECRET_ARN = "PENSTOCK_SECRET_ARN"
"""ARN of the one secret a worker may read; its value is JSON: vendor → token."""
EVENT_BUS = "PENSTOCK_EVENT_BUS"
"""Name of the bus the change feed publishes on."""
PERIOD_S = "PENSTOCK_PERIOD_S"
"""Seconds between two runs of a scheduled function."""
SCHEDULE_RULE = "PENSTOCK_SCHEDULE_RULE"
"""JSON: {misfire, overlap} of a scheduled function; not set where both are at their default."""


RATE_SETTINGS = {"RPM": "requests_per_minute", "TPM": "tokens_per_minute"}
"""The units of `rate_limit`, each with the account's setting that it sets."""


def rate_limit(lane: str, unit: str) -> str:
    """`EXTRACTION_RATE_LIMIT_RPM`, `EXTRACTION_RATE_LIMIT_TPM`: read at synth, a limit of the lane's account for this
    deploy. No function reads them: what they set reaches everybody in the accounts."""
    return f"{lane.upper()}_RATE_LIMIT_{unit}"


FORBIDDEN = ("POWERTOOLS_LOGGER_LOG_EVENT", "POWERTOOLS_DEBUG", "POWERTOOLS_TRACER_CAPTURE_RESPONSE")
"""Variables that make libraries write payloads to logs."""
