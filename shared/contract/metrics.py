"""Metric names and the dimensions they have. A closed list: a test compares code, dashboards and alarms with it."""

from __future__ import annotations

NAMESPACE = "Penstock"
LANE = "lane"
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
    CONTRADICTED,
    QUARANTINED,
    RUN_SKIPPED,
    REPAIRED,
    NACKED,
    STREAM_ERRORS,
    PUBLISHED,
    UNPUBLISHED,
    WAITING,
    RATE_DEFERRED,
    RATE_WAIT,
    PERMITS,
    TOKENS,
    ACCOUNT_SHUT,
    CAP,
    SEVERITY,
    QUEUE_AGE,
    CAP_CHANGED,
    CAP_SKIPPED,
    SOURCE_CLOSED,
    TRIPPED,
    SWITCH_LEVEL,
    COST,
    ACCOUNT_COST,
    CANARY_AGE,
    CANARY_MISSED,
    EVENTS_REFUSED,
    EVENTS_UNANSWERED,
)
