"""What became of many jobs that were to be given one time: every line in exactly one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.core.job import Job, Status


class Fate(StrEnum):
    """What became of one line; each has exactly one."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    """It had this time already, or this very run gave it before."""
    MALFORMED = "malformed"
    """Not the whole id of a job."""
    DUPLICATE = "duplicate"
    """The same id stands in an earlier line."""
    NOT_FOUND = "not_found"
    NOT_QUEUED = "not_queued"
    """It runs, or has ended: the status is beside it."""
    CHANGED_MEANWHILE = "changed_meanwhile"
    """Somebody moved it between reading and writing; nothing was written."""
    UNKNOWN_LANE = "unknown_lane"
    UNREADABLE = "unreadable"
    UNAVAILABLE = "unavailable"
    """The store did not answer: it may or may not have been changed."""
    NOT_REACHED = "not_reached"
    """The run ended before its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineFate:
    """One line and what became of it. A malformed one is known by its number alone: it could be anybody's text."""

    line: int
    job_id: str
    fate: Fate
    status: Status | None = None
    reads: int = 0
    writes: int = 0

    @property
    def reason(self) -> str:
        """The fate, with the status where that is the reason: `not_queued:completed`."""
        return f"{self.fate}:{self.status}" if self.status is not None else self.fate.value


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRun:
    """What one bulk run did: every line in exactly one place, and the calls it took."""

    run_id: str
    at: datetime
    lines: tuple[LineFate, ...]
    dry_run: bool = False
    stopped: BaseException | None = None
    """What ended it before its end, if anything did."""

    @property
    def counts(self) -> dict[str, int]:
        """How many lines by reason, only those there are; together they are all lines."""
        return dict(Counter(line.reason for line in self.lines))

    @property
    def finished(self) -> bool:
        """True when nothing is left that this run could not reach or hear of."""
        open_ends = (Fate.UNAVAILABLE, Fate.NOT_REACHED)
        return self.stopped is None and not any(line.fate in open_ends for line in self.lines)

    @property
    def left(self) -> Iterator[LineFate]:
        """The lines that were not changed."""
        return (line for line in self.lines if line.fate is not Fate.CHANGED)

    @property
    def reads(self) -> int:
        """Rows read."""
        return sum(line.reads for line in self.lines)

    @property
    def writes(self) -> int:
        """Conditional writes tried."""
        return sum(line.writes for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Waiting jobs by what they have in common; what is None does not narrow it down."""

    lane: str
    tenant: str | None = None
    blocked_by: str | None = None
    """A gate, a gate and its key, or the whole reason: `switches`, `vendor:openai`."""

    def holds(self, job: Job) -> bool:
        """True for a queued job that is meant."""
        reason = job.blocked_by or ""
        return (
            job.status is Status.QUEUED
            and job.lane == self.lane
            and self.tenant in (None, job.tenant)
            and (self.blocked_by is None or reason == self.blocked_by or reason.startswith(f"{self.blocked_by}:"))
        )
