"""How a world ended: judged by the vendor's record and the table, by nothing the engine says of itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from shared.adapters.memory.stream import StreamRecord
from shared.core.job import Category, Job, Status
from shared.core.lifecycle import MOVES
from tests.vendors_and_tasks import targets_of

if TYPE_CHECKING:
    from tests.world import World

LEGAL = {(rule.was, rule.to, rule.reason) for rule in MOVES}


@dataclass(slots=True)
class Verdict:
    """What the vendor's record and the table say in the end."""

    duplicates: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    states: Counter[str] = field(default_factory=Counter)
    accepted: int = 0
    wanted: int = 0
    without_letter: list[str] = field(default_factory=list)
    false_ends: list[str] = field(default_factory=list)
    """Ends that say more than is known: an effect of the job is open."""

    @property
    def all_accepted(self) -> bool:
        """Everything the jobs were to send stands at the vendor."""
        return self.accepted >= self.wanted

    @property
    def unknown(self) -> int:
        """Jobs an operator must decide on."""
        return self.states["failed:outcome_unknown"]


def judge(world: World) -> Verdict:
    """Duplicates by the vendor's record; lost: in no end state, or completed without an accept."""
    verdict = Verdict()
    targets = Counter(f"{accept.action}:{accept.target}" for accept in world.vendor.accepts)
    verdict.duplicates = {target: count for target, count in targets.items() if count > 1}
    verdict.accepted = len(targets)
    letters = set(world.dead_letters.job_ids(world.lane.name))
    for job_id, request in world.requests.items():
        verdict.wanted += len(targets_of(request))
        job = world.jobs.get(job_id)
        if job is None:
            verdict.lost.append(f"{job_id}: never stored")
            continue
        verdict.states[f"failed:{job.category}" if job.status is Status.FAILED else job.status.value] += 1
        if not job.status.ended:
            verdict.lost.append(f"{job_id}: still {job.status}")
        elif job.status is Status.FAILED and job_id not in letters:
            verdict.without_letter.append(job_id)
        elif job.status is Status.COMPLETED and job.result != "withheld":
            missing = [target for target in targets_of(request) if target not in targets]
            verdict.lost += [f"{job_id}: completed without {target}" for target in missing]
        if job.status.ended and job.category is not Category.OUTCOME_UNKNOWN:
            open_ = [row.name for row in world.effects.of_job(job_id) if row.open]
            verdict.false_ends += [f"{job_id}: {job.status} while {name} is open" for name in open_]
    return verdict


def illegal_steps(records: list[StreamRecord]) -> Iterator[str]:
    """Every change of every row that the lifecycle does not know: read from the stream, as a reader sees it."""
    claims: set[tuple[str, int]] = set()
    for record in records:
        if record.old is None or record.new is None:
            continue
        old, new = record.old.job, record.new.job
        if new.fence < old.fence:
            yield f"{new.job_id}: fence fell from {old.fence} to {new.fence}"
        if not _legal(old, new):
            yield f"{new.job_id}: {old.status} → {new.status} ({new.moves[-1].reason})"
        if old.status is Status.QUEUED and new.status is Status.PROCESSING:
            if (new.job_id, new.fence) in claims:
                yield f"{new.job_id}: two claims with fence {new.fence}"
            claims.add((new.job_id, new.fence))


def _legal(old: Job, new: Job) -> bool:
    if new.moves == old.moves:
        # A hand-off, or a letter that is asked for or sent again: only the place in the index changes.
        return old.status is new.status and new.status in (Status.QUEUED, Status.FAILED)
    reason = new.moves[-1].reason.split(":", 1)[0]
    return (old.status, new.status, reason) in LEGAL
