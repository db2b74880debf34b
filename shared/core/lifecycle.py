"""The one transition table, and the pure functions that make each move.

Every function takes the job as it was read and gives the job as it should be written; the store writes it
on condition that the row is still as it was read. The picture in `docs/lifecycle.md` is drawn from `MOVES`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.core.backoff import GiveUp, decide_retry
from shared.core.errors import IllegalMove
from shared.core.job import CANARY, CANARY_KEPT_DAYS, Category, Job, Status
from shared.core.lane import LaneSpec
from shared.core.liveness import claimed_since
from shared.core.outcome import Defer, Done, Fail, Outcome, Retry, Submitted

VERSION = "3.0"
"""Raised by its major number whenever `MOVES` or `CLAIM_CONDITION` changes (a test holds the digest)."""

DUE_SLACK_S = 2
"""A claim accepts a job this much before its time, so clocks that disagree a little do not bounce it."""

CLAIM_CONDITION = "status = queued and (not_before_at is null or not_before_at <= now + 2 s)"


@dataclass(frozen=True, slots=True)
class MoveRule:
    """One edge of the lifecycle: from, to, the word kept in the history, and when it happens."""

    was: Status
    to: Status
    reason: str
    when: str


_Q, _P, _B = Status.QUEUED, Status.PROCESSING, Status.BATCH_SUBMITTED
_C, _F, _X = Status.COMPLETED, Status.FAILED, Status.CANCELED

MOVES: tuple[MoveRule, ...] = (
    MoveRule(_Q, _P, "claim", "a worker takes the job"),
    MoveRule(_Q, _X, "cancel", "an operator or the system withdraws it"),
    MoveRule(_Q, _F, "triage", "its message reached the dead-letter queue before any claim"),
    MoveRule(_Q, _F, "max_wait", "it was deferred for longer than the lane allows"),
    MoveRule(_Q, _F, "withdraw", "its plan stopped before its dead letter was moved"),
    MoveRule(_Q, _Q, "schedule", "it is given another time"),
    MoveRule(_Q, _Q, "held", "admission or a closed switch keeps it waiting"),
    MoveRule(_Q, _Q, "handoff", "the dispatcher has sent its message"),
    MoveRule(_P, _C, "done", "the task ended well"),
    MoveRule(_P, _Q, "retry", "a passing failure; one attempt used"),
    MoveRule(_P, _Q, "defer", "not now; no attempt used"),
    MoveRule(_P, _Q, "overflow", "a run claimed more than it could hand over"),
    MoveRule(_P, _Q, "stale", "its worker died; one attempt used"),
    MoveRule(_P, _Q, "reset", "an operator takes it back from its worker"),
    MoveRule(_P, _B, "submitted", "handed to a provider's batch"),
    MoveRule(_P, _F, "failed", "no further try would help, or none is left"),
    MoveRule(_P, _X, "cancel", "withdrawn before any intent to send"),
    MoveRule(_B, _C, "done", "its line of the batch ended well"),
    MoveRule(_B, _Q, "resubmit", "its line is missing or expired; one attempt used"),
    MoveRule(_B, _Q, "overflow", "the provider's limits had no room for its batch"),
    MoveRule(_B, _F, "failed", "its line failed for good"),
    MoveRule(_B, _X, "cancel", "withdrawn with its batch"),
    MoveRule(_F, _Q, "replay", "an approved plan releases it"),
    MoveRule(_F, _C, "evidence", "there is proof that the vendor had accepted it"),
    MoveRule(_F, _X, "dismiss", "an operator closes it, with a reason"),
    MoveRule(_F, _F, "letter", "its dead letter was moved without a plan and is sent again"),
)

_LEGAL = {(rule.was, rule.to, rule.reason) for rule in MOVES}


def digest() -> str:
    """A fingerprint of the transition table and the claim condition."""
    text = "\n".join([CLAIM_CONDITION, *(f"{r.was}>{r.to}:{r.reason}" for r in MOVES)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def move(job: Job, to: Status, reason: str, now: datetime, *, detail: str = "", **changes: Any) -> Job:
    """The job after one legal move; any other raises `IllegalMove`. Leaving an end state removes the expiry."""
    if (job.status, to, reason) not in _LEGAL:
        raise IllegalMove(job.job_id, job.status, to, reason)
    if job.status.ended and not to.ended:
        changes.setdefault("expires_at", None)
    return job.noted(to, f"{reason}:{detail}" if detail else reason, now, **changes)


def is_due(job: Job, now: datetime) -> bool:
    """True when a claim would accept the job's time."""
    return job.not_before_at is None or job.not_before_at <= now + timedelta(seconds=DUE_SLACK_S)


def is_poison(job: Job, receive_count: int, poison_receives: int) -> bool:
    """True for a message that keeps coming back although its job was claimed before this time.

    A job that was never claimed did not cause its receives (throttles and outages did), so it may run.
    `job` is the row just claimed: a fence of 1 is its first claim.
    """
    return receive_count >= poison_receives and job.fence > 1


def waiting(job: Job, due: datetime, reason: str | None) -> dict[str, Any]:
    """The changes that put a job in the waiting index: from there the dispatcher sends it, whatever its route was."""
    return {"due": due, "blocked_by": reason, "route": None}


def held(job: Job, reason: str, now: datetime) -> Job:
    """Kept waiting by a gate or a switch; its own time does not change, so neither does its place in line."""
    return move(job, _Q, "held", now, detail=reason, **waiting(job, job.runnable_at, reason))


def handed_off(job: Job, now: datetime) -> Job:
    """Its message is sent: it leaves the waiting index. The history does not keep this step, the row tells it."""
    if job.status is not _Q:
        raise IllegalMove(job.job_id, job.status, _Q, "handoff")
    return job.placed(due=None, updated_at=now, blocked_by=None)


def rescheduled(job: Job, at: datetime, reason: str, now: datetime, *, detail: str = "") -> Job:
    """Given another time by a person, which no account has promised; `detail` names the bulk run that did it."""
    changes = {"not_before_at": at, "permit_at": None, **waiting(job, at, reason)}
    return move(job, _Q, "schedule", now, detail=detail, **changes)


def taken_back(job: Job, at: datetime, reason: str, now: datetime) -> Job:
    """Taken back from its running worker by a person: no attempt is used, and it stands in the waiting index at once.

    The fence rises, so the worker that has it can no longer settle. The caller has looked at its effects. How long it
    has waited is counted anew.
    """
    return move(
        job,
        _Q,
        "reset",
        now,
        fence=job.fence + 1,
        claimed_at=None,
        claimed_by=None,
        taken_from=claimed_since(job),
        not_before_at=at,
        permit_at=None,
        waiting_since=None,
        **waiting(job, at, reason),
    )


def recovered(job: Job, lane: LaneSpec, now: datetime, *, open_intent: bool) -> Job:
    """What becomes of a job whose worker died: queued again with one attempt used, or failed.

    With tries left it stands in the waiting index, due at once; an open intent is resolved by the next
    attempt. With none left, an open intent means nobody knows whether the vendor accepted.
    """
    used = job.attempt_count + 1
    if used >= job.max_attempts:
        category = Category.OUTCOME_UNKNOWN if open_intent else Category.POISON
        return _failed(job, lane, now, category, "stale_claim_requeued", fence=job.fence + 1, attempt_count=used)
    return move(
        job,
        _Q,
        "stale",
        now,
        fence=job.fence + 1,
        attempt_count=used,
        claimed_at=None,
        claimed_by=None,
        last_error="stale_claim_requeued",
        last_error_at=now,
        # Its own time as well: its place in line is always that time, or a hold would give it another one.
        not_before_at=now,
        **waiting(job, now, "stale_claim"),
    )


def settled(job: Job, outcome: Outcome, lane: LaneSpec, now: datetime, *, open_intent: bool = False) -> Job:
    """The job after its task ended with `outcome`.

    `open_intent`: one of its effects is open. Whatever else has failed, nobody knows whether the vendor has it, and
    that comes first.
    """
    unknown = Category.OUTCOME_UNKNOWN if open_intent else None
    free = {"claimed_at": None, "claimed_by": None, "permit_at": None}
    match outcome:
        case Done(result=result, ref=ref, routing=routing, withheld=withheld):
            decided = {"routing_decision": routing or job.routing_decision, "withheld": withheld or None}
            ended = _ended_well(lane, now, result, ref)
            if job.task == CANARY:
                ended["expires_at"] = now + timedelta(days=CANARY_KEPT_DAYS)
            return move(job, _C, "done", now, detail=result, **free, **decided, **ended)
        case Submitted(batch=batch):
            # A run's claim stood in the index; from here on its batch is where it is found.
            return move(job, _B, "submitted", now, detail=batch, due=None, blocked_by=None, **free)
        case Defer(until=until, reason=reason, promised=promised, tokens=tokens, requests=requests):
            since = job.waiting_since or now
            if now - since >= timedelta(seconds=lane.max_wait_s):
                return _failed(job, lane, now, unknown or Category.RETRIES_EXHAUSTED, f"max_wait:{reason}")
            return move(
                job,
                _Q,
                "defer",
                now,
                detail=reason,
                not_before_at=until,
                waiting_since=since,
                estimated_tokens=job.estimated_tokens if tokens is None else tokens,
                estimated_requests=job.estimated_requests if requests is None else requests,
                **{**free, "permit_at": until if promised else None},
                **waiting(job, until, reason),
            )
        case Retry(error=error):
            decision = decide_retry(job.attempt_count, job.max_attempts, lane.backoff_s, now)
            if isinstance(decision, GiveUp):
                used = decision.attempt_count
                return _failed(job, lane, now, unknown or Category.RETRIES_EXHAUSTED, error, attempt_count=used)
            return move(
                job,
                _Q,
                "retry",
                now,
                detail=error,
                not_before_at=decision.at,
                attempt_count=decision.attempt_count,
                last_error=error,
                last_error_at=now,
                **free,
                **waiting(job, decision.at, "backoff"),
            )
        case Fail(category=category, error=error):
            return _failed(job, lane, now, unknown or category, error)


def overflowed(job: Job, until: datetime, reason: str, now: datetime) -> Job:
    """Claimed by a run that cannot hand it over, or handed over and then found not to fit: no attempt used (R7)."""
    free = {"claimed_at": None, "claimed_by": None, "permit_at": None}
    return move(job, _Q, "overflow", now, detail=reason, not_before_at=until, **free, **waiting(job, until, reason))


def sent_back(job: Job, error: str, lane: LaneSpec, now: datetime) -> Job:
    """Its batch brought no end for it: one attempt used, submitted again after its backoff, or failed."""
    decision = decide_retry(job.attempt_count, job.max_attempts, lane.backoff_s, now)
    if isinstance(decision, GiveUp):
        used = decision.attempt_count
        return _failed(job, lane, now, Category.RETRIES_EXHAUSTED, error, attempt_count=used)
    return move(
        job,
        _Q,
        "resubmit",
        now,
        detail=error,
        not_before_at=decision.at,
        attempt_count=decision.attempt_count,
        last_error=error,
        last_error_at=now,
        **waiting(job, decision.at, "backoff"),
    )


def failed_unclaimed(job: Job, lane: LaneSpec, now: datetime, category: Category, error: str) -> Job:
    """A queued job that ends without ever running: its message died, or it waited too long."""
    reason = "max_wait" if error.startswith("max_wait") else "triage"
    return move(job, _F, reason, now, **_failure(job, lane, now, category, error))


def completed_by_evidence(job: Job, lane: LaneSpec, now: datetime, result: str, ref: str | None) -> Job:
    """A job parked as unknown whose send turned out to have been accepted."""
    return move(job, _C, "evidence", now, category=None, **_ended_well(lane, now, result, ref))


def canceled(job: Job, lane: LaneSpec, by: str, now: datetime) -> Job:
    """Withdrawn. A claimed job must have no intent: the caller checks, the fence rises against its worker."""
    reason = "dismiss" if job.status is _F else "cancel"
    expires = now + timedelta(days=lane.completed_kept_days)
    return move(
        job,
        _X,
        reason,
        now,
        detail=by,
        fence=job.fence + 1,
        claimed_at=None,
        claimed_by=None,
        due=None,
        blocked_by=None,
        route=None,
        expires_at=expires,
    )


def replayed(job: Job, plan_id: str, now: datetime, *, route: str | None = None) -> Job:
    """Released by an approved plan: queued like a newcomer, with all its attempts, and its row is kept again.

    The fence rises, so the same release can never be written twice: not by an executor that stood still meanwhile,
    and not for a job that failed again without having been claimed.
    """
    return move(
        job,
        _Q,
        "replay",
        now,
        detail=plan_id,
        fence=job.fence + 1,
        attempt_count=0,
        replay_count=job.replay_count + 1,
        plan_id=plan_id,
        route=route,
        category=None,
        signature=None,
        waiting_since=None,
        permit_at=None,
        due=None,
        blocked_by=None,
        # Its place in line is that of a newcomer: what others wait for does not stand behind a replay.
        not_before_at=now,
    )


def withdrawn(job: Job, lane: LaneSpec, category: Category | None, signature: str | None, now: datetime) -> Job:
    """Its plan stopped before its dead letter was moved: it stands as it stood, and when it failed is what it was."""
    failure = _failure(job, lane, now, category, "")
    failure |= {"signature": signature, "last_error": job.last_error, "last_error_at": job.last_error_at}
    return move(job, _F, "withdraw", now, **failure)


def letter_taken(job: Job, now: datetime) -> Job:
    """Its dead letter was moved out of its queue without a plan: it stands in the index of missing letters."""
    return _about_its_letter(job, now)


def letter_sent(job: Job) -> Job:
    """Its dead letter stands again."""
    return _about_its_letter(job, None)


def listed(job: Job) -> Job:
    """Found by the time of its failure, as it stands: it was written by a version that kept no list of failed jobs."""
    if job.status is not _F:
        raise IllegalMove(job.job_id, job.status, _F, "listed")
    return job.placed()


def _about_its_letter(job: Job, due: datetime | None) -> Job:
    """The history does not keep this step, and when the job failed stays as it was."""
    if job.status is not _F:
        raise IllegalMove(job.job_id, job.status, _F, "letter")
    return job.placed(due=due)


def signature_of(error: str) -> str:
    """Errors that differ only in numbers or ids share one signature, so a cohort can be named."""
    words = "".join("#" if ch.isdigit() else ch for ch in error.lower())[:96]
    while "##" in words:
        words = words.replace("##", "#")
    return words


def _ended_well(lane: LaneSpec, now: datetime, result: str, ref: str | None) -> dict[str, Any]:
    return {
        "result": result,
        "result_ref": ref,
        "completed_at": now,
        "expires_at": now + timedelta(days=lane.completed_kept_days),
        "blocked_by": None,
        "due": None,
        "waiting_since": None,
    }


def _failure(job: Job, lane: LaneSpec, now: datetime, category: Category | None, error: str) -> dict[str, Any]:
    return {
        "category": category,
        "signature": signature_of(error),
        "last_error": error,
        "last_error_at": now,
        "claimed_at": None,
        "claimed_by": None,
        "permit_at": None,
        "due": None,
        "blocked_by": None,
        "route": None,
        "expires_at": now + timedelta(days=lane.failed_kept_days),
    }


def _failed(job: Job, lane: LaneSpec, now: datetime, category: Category, error: str, **changes: Any) -> Job:
    return move(job, _F, "failed", now, detail=category, **{**_failure(job, lane, now, category, error), **changes})
