"""Metric names and the one dimension they have. A closed list: a test compares code, dashboards and alarms with it."""

from __future__ import annotations

NAMESPACE = "Penstock"
LANE = "lane"

ENQUEUED = "JobsEnqueued"
ADMITTED = "JobsAdmitted"
HELD = "JobsHeld"
COMPLETED = "JobsCompleted"
RETRIED = "JobsRetried"
DEFERRED = "JobsDeferred"
FAILED = "JobsFailed"
STALE = "ClaimsRecovered"
UNKNOWN = "EffectsUnknown"
SENT = "EffectsSent"
QUARANTINED = "Quarantined"
RUN_SKIPPED = "RunsSkipped"
REPAIRED = "JobsRepaired"
NACKED = "MessagesReturned"
STREAM_ERRORS = "StreamRecordsIsolated"

ALL = (
    ENQUEUED,
    ADMITTED,
    HELD,
    COMPLETED,
    RETRIED,
    DEFERRED,
    FAILED,
    STALE,
    UNKNOWN,
    SENT,
    QUARANTINED,
    RUN_SKIPPED,
    REPAIRED,
    NACKED,
    STREAM_ERRORS,
)
