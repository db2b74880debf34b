"""The closing table: what was asked for, what the jobs say, and what the vendor's own record says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from shared.core.effects import effect_id_of
from shared.core.job import Job, Status

SENT_RESULTS = ("replied", "already_done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """The end of a story. `duplicates` and `lost` must be 0."""

    enqueued: int
    repeated: int
    """Enqueues of a cause that was known already."""
    completed: int
    deferred: int
    retried: int
    recovered: int
    failed: dict[str, int] = field(default_factory=dict)
    replayed: int = 0
    """Failed once, and completed by a plan."""
    vendor_accepts: int
    duplicates: int
    lost: int
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Nothing doubled, nothing lost."""
        return self.duplicates == 0 and self.lost == 0

    def rows(self) -> list[tuple[str, str]]:
        """The table, line by line."""
        failed = [(f"failed: {category}", str(count)) for category, count in sorted(self.failed.items())]
        return [
            ("enqueued", str(self.enqueued)),
            ("enqueued again (same cause)", str(self.repeated)),
            ("completed", str(self.completed)),
            ("deferred at least once", str(self.deferred)),
            ("retried at least once", str(self.retried)),
            ("taken over from a dead worker", str(self.recovered)),
            ("completed by a reviewed replay", str(self.replayed)),
            *failed,
            ("vendor accepts", str(self.vendor_accepts)),
            ("duplicates", str(self.duplicates)),
            ("lost", str(self.lost)),
        ]


def judge(
    job_ids: Sequence[str],
    jobs: Iterable[Job],
    accepted_keys: Sequence[str],
    *,
    repeated: int = 0,
    seconds: float = 0.0,
) -> Closing:
    """Lost: in no end state, without a row, or said to be sent while the vendor never accepted it."""
    rows = {job.job_id: job for job in jobs}
    accepts = Counter(accepted_keys)
    mine = [rows[job_id] for job_id in job_ids if job_id in rows]
    moved = {job.job_id: {move.reason.partition(":")[0] for move in job.moves} for job in mine}
    unsent = [
        job
        for job in mine
        if job.status is Status.COMPLETED
        and job.result in SENT_RESULTS
        and not accepts[effect_id_of(job.job_id, "reply")]
    ]
    unended = [job for job in mine if not job.status.ended]
    return Closing(
        enqueued=len(job_ids),
        repeated=repeated,
        completed=sum(job.status is Status.COMPLETED for job in mine),
        deferred=sum("defer" in words for words in moved.values()),
        retried=sum("retry" in words for words in moved.values()),
        recovered=sum("stale" in words for words in moved.values()),
        replayed=sum(job.status is Status.COMPLETED and job.replay_count > 0 for job in mine),
        failed=dict(Counter(job.category or "?" for job in mine if job.status is Status.FAILED)),
        vendor_accepts=sum(accepts.values()),
        duplicates=sum(count - 1 for count in accepts.values()),
        lost=len(job_ids) - len(mine) + len(unended) + len(unsent),
        seconds=seconds,
    )
