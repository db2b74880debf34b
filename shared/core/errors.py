"""Every error Penstock raises, one class per decision a caller can take.

    PenstockError
    ├── BadInput(field, problem)            change what was given; nothing was written
    │   ├── EnqueueConflict(job_id)         this key already names a job with another payload
    │   ├── UnknownLane(lane, known)        no such lane in this stage
    │   ├── UnknownStage(problem)           no such stage in this account and region, or not all of it
    │   ├── UnknownScope(scope, problem)    no lane, vendor or task of that name in this stage
    │   └── IllegalMove(job_id, was, to)    the lifecycle has no such move
    ├── UnreadableRow(key, problem)         a stored row this code cannot read: leave it alone, tell an operator
    │   └── UnreadableSwitches(readable)    so are the switches: what can be read of them closes all the same
    ├── ClaimLost(job_id, fence)            another worker owns the job now: stop, write nothing more
    ├── RowMoved(job_id, current)           the row is not as it was read: look again
    ├── EffectMoved(effect_id, current)     the effect row is not as it was read: look again
    ├── PlanMoved(plan_id, current)         the plan does not allow this now: its row says why
    ├── BatchMoved(tag, current)            the batch is not as it was read: look again
    ├── ResolutionMoved(job_id, current)    the resolution does not allow this now: its row says why
    ├── NoAccess(code, problem)             AWS does not serve this process: mend its region, credentials or permissions
    └── Unavailable(what, code)             a store or queue did not answer: nothing is known, try again later
        └── ControlUnreadable               the switches cannot be read: sends must stop, nothing is failed

Messages name fields and ids, never values a customer wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.core.nearest import unknown

if TYPE_CHECKING:
    from shared.core.batch import Batch
    from shared.core.effects import EffectRow
    from shared.core.job import Job
    from shared.core.plan import Plan, Resolution
    from shared.core.switches import Switches


class PenstockError(Exception):
    """Root of every error raised on purpose."""

    code = "penstock_error"


class BadInput(PenstockError):
    """What was given cannot be used; the message names the field and what is wrong with it."""

    code = "bad_input"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class EnqueueConflict(BadInput):
    """The same key was enqueued before with another payload; the first job stands, nothing was replaced."""

    code = "enqueue_conflict"

    def __init__(self, job_id: str) -> None:
        super().__init__("payload", f"differs from the one job {job_id} was enqueued with; a new cause needs a new key")
        self.job_id = job_id


class UnknownLane(BadInput):
    """No lane of that name is configured in this stage."""

    code = "unknown_lane"

    def __init__(self, lane: str, known: tuple[str, ...]) -> None:
        super().__init__("lane", unknown(lane, known, "lanes"))
        self.lane = lane


class UnknownStage(BadInput):
    """No stage of that name is deployed in this account and region, or not all of it."""

    code = "unknown_stage"

    def __init__(self, problem: str) -> None:
        super().__init__("stage", problem)


class UnknownScope(BadInput):
    """Nothing of that name is configured in this stage: a switch for it would hold nothing back."""

    code = "unknown_scope"

    def __init__(self, scope: str, problem: str) -> None:
        super().__init__("scope", problem)
        self.scope = scope


class IllegalMove(BadInput):
    """The lifecycle has no such move; the row was not written."""

    code = "illegal_move"

    def __init__(self, job_id: str, was: str, to: str, reason: str) -> None:
        super().__init__("status", f"job {job_id} cannot go from {was} to {to} ({reason})")
        self.job_id, self.was, self.to = job_id, was, to


class UnreadableRow(PenstockError):
    """A stored row this version cannot read; it must be left alone and shown to an operator."""

    code = "unreadable_row"

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"row {key}: {problem}")
        self.key, self.problem = key, problem


class UnreadableSwitches(UnreadableRow):
    """An entry of the switches cannot be read, so nothing counts as open; what can be read is heeded."""

    code = "unreadable_switches"

    def __init__(self, key: str, problem: str, readable: Switches) -> None:
        super().__init__(key, problem)
        self.readable = readable


class ClaimLost(PenstockError):
    """Another worker owns the job; whoever catches this stops without writing."""

    code = "claim_lost"

    def __init__(self, job_id: str, fence: int) -> None:
        super().__init__(f"job {job_id}: fence {fence} is no longer current")
        self.job_id, self.fence = job_id, fence


class RowMoved(PenstockError):
    """A conditional write found the row changed; `current` is what stands there (None: no row)."""

    code = "row_moved"

    def __init__(self, job_id: str, current: Job | None) -> None:
        super().__init__(f"job {job_id} changed since it was read")
        self.job_id, self.current = job_id, current


class EffectMoved(PenstockError):
    """An effect row is not as it was read; `current` is what stands there."""

    code = "effect_moved"

    def __init__(self, effect_id: str, current: EffectRow | None) -> None:
        super().__init__(f"effect {effect_id} changed since it was read")
        self.effect_id, self.current = effect_id, current


class PlanMoved(PenstockError):
    """A redrive plan is not in a state that allows this; `current` is what stands there (None: no plan)."""

    code = "plan_moved"

    def __init__(self, plan_id: str, current: Plan | None) -> None:
        super().__init__(f"plan {plan_id} does not allow this as it stands")
        self.plan_id, self.current = plan_id, current


class BatchMoved(PenstockError):
    """A batch is not as it was read; `current` is what stands there (None: no batch)."""

    code = "batch_moved"

    def __init__(self, tag: str, current: Batch | None) -> None:
        super().__init__(f"batch {tag} changed since it was read")
        self.tag, self.current = tag, current


class ResolutionMoved(PenstockError):
    """A resolution is not in a state that allows this; `current` is what stands there (None: nobody asked)."""

    code = "resolution_moved"

    def __init__(self, job_id: str, current: Resolution | None) -> None:
        super().__init__(f"the resolution of job {job_id} does not allow this as it stands")
        self.job_id, self.current = job_id, current


class NoAccess(PenstockError):
    """AWS does not serve this process: mend its region, credentials or permissions; asking again does not help."""

    code = "no_access"

    def __init__(self, code: str, problem: str) -> None:
        super().__init__(problem)
        self.code, self.problem = code, problem


class Unavailable(PenstockError):
    """A store, queue or stream did not answer; the write may or may not have been applied."""

    code = "unavailable"

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what} is unavailable ({reason})")
        self.what, self.reason = what, reason


class ControlUnreadable(Unavailable):
    """The switches have not been readable for longer than a cached value may count."""

    code = "control_unreadable"
