"""What a redrive is made of: the frozen plan with its manifest, its steps, and the resolution of one unknown outcome.

A plan and a resolution are requests: one person writes down what and why, another one says yes, and the yes is good
only for what was written down (its hash) and only for a while.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from shared.core.cohort import NO_SIGNATURE, signature_of
from shared.core.job import Job, Status

VALID_FOR = timedelta(hours=24)
"""A request is good for so long; after that what it was about may be another matter."""


class PlanState(StrEnum):
    """What people said of a plan. That it has ended is said by its last step."""

    PLANNED = "planned"
    APPROVED = "approved"
    RUNNING = "running"
    ABORTED = "aborted"


class Ending(StrEnum):
    """How a plan ended."""

    FINISHED = "finished"
    STOPPED = "stopped"
    """It stopped itself; the step says why."""
    ABORTED = "aborted"


class Fate(StrEnum):
    """What became of one job of a plan; each has at most one."""

    COMPLETED = "completed"
    RELAPSED = "relapsed"
    """Failed again with the error it had."""
    FAILED = "failed"
    """Failed again, with another error."""
    CANCELED = "canceled"
    CHANGED = "changed"
    """Not released: it was not any more as the plan had it."""
    GONE = "gone"
    """Not released, or no longer there: its row has expired."""
    WITHDRAWN = "withdrawn"
    """Taken back before its dead letter was moved: it stands as it stood."""

    @property
    def released(self) -> bool:
        """True for a job that this plan let go."""
        return self not in (Fate.CHANGED, Fate.GONE, Fate.WITHDRAWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One job of a manifest, as it stood when the plan was made: any change since shows in one of these."""

    job_id: str
    fence: int
    category: str
    signature: str

    def holds(self, job: Job | None) -> bool:
        """True while the job still is what was planned for."""
        return job is not None and job.status is Status.FAILED and entry_of(job) == self


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One redrive: who asked for what and why, who agreed, and how far it came."""

    plan_id: str
    lane: str
    requester: str
    cause: str
    """The root cause and how it was removed, in the requester's words."""
    count: int
    hash: str
    created_at: datetime
    valid_until: datetime
    state: PlanState = PlanState.PLANNED
    rate: int | None = None
    """Native: SQS moves every dead letter of the lane, so many a second. None: jobs are released a few at a time."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    estimate: Mapping[str, str] = field(default_factory=dict)
    approver: str | None = None
    approved_at: datetime | None = None
    started_by: str | None = None
    started_at: datetime | None = None
    aborted_by: str | None = None
    aborted_at: datetime | None = None
    abort_why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one run of the executor did for a plan; written once, in order, never changed."""

    number: int
    at: datetime
    tried: int
    """Jobs of the manifest that had their turn, from its start."""
    fates: Mapping[str, Fate] = field(default_factory=dict)
    """Jobs whose end was seen in this step."""
    letters: int = 0
    """Dead letters of the lane, at the lowest seen so far."""
    quiet: int = 0
    """Looks in a row at which an account was quiet after a 429."""
    waits_for: str = ""
    """What kept it from releasing more, when it ended."""
    begun: bool = False
    """Native: the move task has been started."""
    stopping: str = ""
    """Native: why it stops; what was released and not moved is being taken back."""
    ending: Ending | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """All steps of a plan together."""

    steps: tuple[Step, ...] = ()

    @property
    def tried(self) -> int:
        """Jobs that had their turn."""
        return self.steps[-1].tried if self.steps else 0

    @property
    def ended(self) -> Step | None:
        """The last step of a plan that is over."""
        last = self.steps[-1] if self.steps else None
        return last if last is not None and last.ending is not None else None

    @property
    def fates(self) -> dict[str, Fate]:
        """What became of each job, as far as it is known."""
        return {job_id: fate for step in self.steps for job_id, fate in step.fates.items()}

    @property
    def counts(self) -> dict[str, int]:
        """Fates, counted."""
        return dict(sorted(Counter(fate.value for fate in self.fates.values()).items()))


class Finding(StrEnum):
    """What a look at the vendor proved."""

    ACCEPTED = "accepted"
    NOT_SENT = "not_sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """What somebody found out about a job whose outcome nobody knew, and who else agrees."""

    job_id: str
    fence: int
    """The job's, as it stood: a resolution is about one failure, not about the next one."""
    finding: Finding
    evidence: str
    effects: tuple[str, ...]
    """The open effects that are meant."""
    requester: str
    requested_at: datetime
    valid_until: datetime
    more_to_do: bool = False
    """Accepted, but the task has more effects to make: the job stays failed, for a plan to go on with."""
    only: str | None = None
    """The one effect that is meant, where it was named; a failure with several open has a resolution for each."""
    confirmer: str | None = None
    confirmed_at: datetime | None = None

    @property
    def hash(self) -> str:
        """What the second person says yes to."""
        parts = (self.job_id, str(self.fence), self.finding, self.evidence, *self.effects, str(self.more_to_do))
        return _digest("\n".join(parts))


def entry_of(job: Job) -> Entry:
    """A failed job as a manifest has it."""
    category = job.category.value if job.category else NO_SIGNATURE
    return Entry(job_id=job.job_id, fence=job.fence, category=category, signature=signature_of(job))


def manifest_hash(entries: Iterable[Entry]) -> str:
    """A fingerprint of a manifest: its jobs in their order, each as it stood."""
    return _digest("\n".join(f"{one.job_id}|{one.fence}|{one.category}|{one.signature}" for one in entries))


def fate_of(entry: Entry, job: Job | None, plan_id: str) -> Fate | None:
    """What became of a job that had its turn; None while it is under way."""
    if job is None:
        return Fate.GONE
    if job.plan_id != plan_id:
        return Fate.CHANGED
    match job.status:
        case Status.COMPLETED:
            return Fate.COMPLETED
        case Status.CANCELED:
            return Fate.CANCELED
        case Status.FAILED if job.withdrawn:
            return Fate.WITHDRAWN
        case Status.FAILED:
            return Fate.RELAPSED if signature_of(job) == entry.signature else Fate.FAILED
    return None


def said(entries: Sequence[object], most: int = 5) -> str:
    """Some of many, for a sentence."""
    listed = ", ".join(str(entry) for entry in entries[:most])
    return listed if len(entries) <= most else f"{listed} and {len(entries) - most:,} more"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
