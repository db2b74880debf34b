"""Metric names, the dimensions they have and who counts them. A closed list: synth compares dashboards and alarms with
it, and a test the code."""

from __future__ import annotations

from collections.abc import Mapping

NAMESPACE = "Penstock"
LANE = "lane"
ALL_LANES = "all"
"""The lane of what is counted for the whole stage."""
STAGE = "stage"
"""Two stages in one account count apart."""
NO_STAGE = "unset"
ACCOUNT = "account"
"""Only on what an account is asked for: the accounts of the configuration, never more."""

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
CONTRADICTED = "EffectsContradicted"
"""The vendor took an effect twice, or one that was written down as not sent: somebody must look at once."""
QUARANTINED = "Quarantined"
RUN_SKIPPED = "RunsSkipped"
REPAIRED = "JobsRepaired"
NACKED = "MessagesReturned"
STREAM_ERRORS = "StreamRecordsIsolated"
PUBLISHED = "ChangesPublished"
UNPUBLISHED = "ChangesNotTaken"
"""Refused by the change feed's bus several times; the stream brings them again."""
WAITING = "JobsWaiting"
"""Jobs that stand in the table for their time, counted once a dispatcher run: a level, not a sum."""
RATE_DEFERRED = "RateDeferrals"
"""By account; so are the next three."""
RATE_WAIT = "RateWaitSeconds"
"""Seconds given out as waits; over the deferrals it is the time to the next permit."""
PERMITS = "PermitsTaken"
TOKENS = "TokensSpent"
ACCOUNT_SHUT = "AccountsShut"
CAP = "CapWanted"
"""A level, once a governor run; so are the next two."""
SEVERITY = "Severity"
"""0 normal, 1 mild, 2 moderate, 3 severe."""
QUEUE_AGE = "QueueAgeSeconds"
CAP_CHANGED = "CapChanges"
CAP_SKIPPED = "CapSkipped"
"""The event source could not be changed just then."""
SOURCE_CLOSED = "SourceNotEnabled"
"""A lane's event source feeds nobody, and the governor did not do it."""
TRIPPED = "LanesTripped"
SWITCH_LEVEL = "SwitchLevel"
"""A level, once a governor run: the strictest switch that holds for a lane or a task of it. 0 normal, 1 route_only (or
automation off), 2 no_new_starts, 3 drain, 4 halt."""
COST = "CostPerHour"
"""A level, once a governor run: what the lane's vendors cost an hour, as far as they have a price."""
ACCOUNT_COST = "AccountCostPerHour"
"""The same for one vendor account of the lane: by account."""
CANARY_AGE = "CanaryAgeSeconds"
"""A level, once a sweep: how long the newest canary took from enqueue to end, or has been at it."""
CANARY_MISSED = "CanariesMissed"
"""A canary that failed, or was still at it when the next one was due; one that a switch holds is not counted."""
EVENTS_REFUSED = "EventsRefused"
"""Events from outside that nobody we know signed, or that cannot be used."""
EVENTS_UNANSWERED = "EventsUnanswered"
"""Events whose sender was asked to come again: a store or the secret did not answer."""

SEVERE, CLOSED = 3, 1
"""Values of the levels from which on somebody is told: of `Severity`, and of `SwitchLevel`."""

_WORKERS = ("worker", "run_worker")
COUNTED_BY: Mapping[str, tuple[str, ...]] = {
    ENQUEUED: ("intake",),
    ADMITTED: ("stream", "run_batch_submitter", "run_worker"),
    HELD: ("stream", "worker"),
    COMPLETED: _WORKERS,
    RETRIED: _WORKERS,
    DEFERRED: _WORKERS,
    FAILED: _WORKERS,
    STALE: ("worker", "sweeper", "triage", "auditor"),
    UNKNOWN: _WORKERS,
    SENT: _WORKERS,
    CONTRADICTED: _WORKERS,
    QUARANTINED: ("triage",),
    RUN_SKIPPED: (
        *("dispatcher", "sweeper", "triage", "auditor", "redriver", "governor"),
        *("run_batch_submitter", "run_batch_collector", "run_worker"),
    ),
    REPAIRED: ("auditor",),
    NACKED: ("worker",),
    STREAM_ERRORS: ("stream", "feed"),
    PUBLISHED: ("feed",),
    UNPUBLISHED: ("feed",),
    WAITING: ("dispatcher",),
    RATE_DEFERRED: _WORKERS,
    RATE_WAIT: _WORKERS,
    PERMITS: _WORKERS,
    TOKENS: _WORKERS,
    ACCOUNT_SHUT: _WORKERS,
    CAP: ("governor",),
    SEVERITY: ("governor",),
    QUEUE_AGE: ("governor",),
    CAP_CHANGED: ("governor",),
    CAP_SKIPPED: ("governor",),
    SOURCE_CLOSED: ("governor",),
    TRIPPED: ("governor",),
    SWITCH_LEVEL: ("governor",),
    COST: ("governor",),
    ACCOUNT_COST: ("governor",),
    CANARY_AGE: ("sweeper",),
    CANARY_MISSED: ("sweeper",),
    EVENTS_REFUSED: ("intake",),
    EVENTS_UNANSWERED: ("intake",),
}
"""Who counts what: engine functions by name; one word for the workers of all lanes, one for their intakes, one for each
kind of run. A test reads it again from the code."""
ALL = tuple(COUNTED_BY)
OF_THE_STAGE = (STREAM_ERRORS, RUN_SKIPPED, REPAIRED, PUBLISHED, UNPUBLISHED, ACCOUNT_SHUT)
"""Counted for all lanes together; all others for one lane."""
OF_AN_ACCOUNT = (RATE_DEFERRED, RATE_WAIT, PERMITS, TOKENS, ACCOUNT_COST)
"""Counted by account, too."""

FROM_AWS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "AWS/Lambda": (
        "FunctionName",
        ("Invocations", "Errors", "Throttles", "Duration", "ConcurrentExecutions", "IteratorAge"),
    ),
    "AWS/SQS": (
        "QueueName",
        (
            "ApproximateAgeOfOldestMessage",
            "ApproximateNumberOfMessagesVisible",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ),
    ),
}
"""What AWS counts, and alarms and dashboards may look at: its namespace, its one dimension, its names. `IteratorAge` is
only told of a function that reads a stream."""
