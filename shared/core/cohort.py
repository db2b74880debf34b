"""Dead letters by what they have in common, from the rows of failed jobs: the row is the memory, not the message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.core.job import Category, Job, Status
from shared.core.outcome import is_code

WARN_DAYS = 3
"""So long before its row goes, a failed job is called soon to expire."""
NO_SIGNATURE = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Failed jobs of one lane by what they have in common; what is None does not narrow it down."""

    lane: str
    category: Category | None = None
    signature: str | None = None
    tenant: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    job_id: str | None = None

    def holds(self, job: Job) -> bool:
        """True for a failed job that is meant: it failed at or after `since` and before `until`."""
        at = failed_at(job)
        return (
            job.status is Status.FAILED
            and job.lane == self.lane
            and self.job_id in (None, job.job_id)
            and self.category in (None, job.category)
            and self.signature in (None, signature_of(job))
            and self.tenant in (None, job.tenant)
            and (self.since is None or at >= self.since)
            and (self.until is None or at < self.until)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """Failed jobs with one category and one signature, of one tenant if they were told apart by that."""

    category: str
    signature: str
    tenant: str | None
    count: int
    tenants: int
    oldest: datetime
    newest: datetime
    first_expiry: datetime | None
    """When the first of their rows goes, and with it the chance to replay it."""
    expires_soon: int


def cohorts(jobs: Iterable[Job], now: datetime, *, by_tenant: bool = False) -> list[Cohort]:
    """The cohorts of failed jobs, the largest first."""
    members: dict[tuple[str, str, str | None], list[Job]] = {}
    for job in jobs:
        category = job.category.value if job.category else NO_SIGNATURE
        members.setdefault((category, signature_of(job), job.tenant if by_tenant else None), []).append(job)
    found = [_cohort(name, of, now) for name, of in members.items()]
    return sorted(found, key=lambda one: (-one.count, one.category, one.signature, one.tenant or ""))


def failed_at(job: Job) -> datetime:
    """When a failed job failed."""
    return job.last_error_at or job.updated_at


def signature_of(job: Job) -> str:
    """The signature of a failed job's error. A row written by another hand may hold anything; only a code is shown."""
    return job.signature if job.signature and is_code(job.signature) else NO_SIGNATURE


def expires_soon(job: Job, now: datetime) -> bool:
    """True when the row goes within `WARN_DAYS`."""
    return job.expires_at is not None and job.expires_at - now <= timedelta(days=WARN_DAYS)


def _cohort(name: tuple[str, str, str | None], jobs: list[Job], now: datetime) -> Cohort:
    times = [failed_at(job) for job in jobs]
    ends = [job.expires_at for job in jobs if job.expires_at is not None]
    return Cohort(
        category=name[0],
        signature=name[1],
        tenant=name[2],
        count=len(jobs),
        tenants=len({job.tenant for job in jobs}),
        oldest=min(times),
        newest=max(times),
        first_expiry=min(ends, default=None),
        expires_soon=sum(expires_soon(job, now) for job in jobs),
    )
