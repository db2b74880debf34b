"""Tenant waits: what of a tenant waits. Nobody lists the tenants: a mistyped one is known by having nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from shared.core.errors import UnreadableRow
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, JobStore, WaitingEntry
from shared.usecases.count_waiting import FAR

LOOKED_AT = 1000
"""Waiting jobs that are looked at: the first in line."""
THREADS = 16
"""The index holds keys alone, so each job is read by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """What of a tenant was found among the first that wait. There may be more further back, and in the queue."""

    tenant: str
    at_least: int
    looked_at: int

    @property
    def sentence(self) -> str:
        """For people."""
        of = f"the first {self.looked_at:,} waiting jobs of the lane" if self.looked_at else "the lane's waiting jobs"
        if not self.at_least:
            return (
                f"None of {of} is of tenant {self.tenant}: is that its name? It may have some further back or queued."
            )
        return f"At least {self.at_least:,} of {of} {'is' if self.at_least == 1 else 'are'} of tenant {self.tenant}."


def tenant_waits(lane: LaneSpec, tenant: str, *, jobs: JobStore, clock: Clock) -> Waits | None:
    """How many jobs of a tenant stand among the first that wait; None in a lane whose line nobody can read as one."""
    if lane.admission == "fair":
        return None
    entries = jobs.waiting(lane, due_before=clock.now() + FAR, limit=LOOKED_AT)
    first = list(islice(sorted(entries, key=lambda one: one.due), LOOKED_AT))

    def is_theirs(entry: WaitingEntry) -> bool:
        try:
            job = jobs.get(entry.job_id)
        except UnreadableRow:
            return False
        return job is not None and job.tenant == tenant

    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        return Waits(tenant=tenant, at_least=sum(pool.map(is_theirs, first)), looked_at=len(first))
