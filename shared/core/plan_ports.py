"""What a redrive needs of the world beside the engine's own ports; one contract suite in `tests/contract`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shared.core.native import MoveTask
    from shared.core.plan import Entry, Plan, Resolution, Step


class PlanStore(Protocol):
    """Redrive plans. The manifest and the steps are written once; a plan itself is changed by people alone."""

    def put(self, plan: Plan, manifest: Sequence[Entry]) -> None:
        """Write a new plan with its manifest; the same plan again is a no-op."""
        ...

    def get(self, plan_id: str) -> Plan | None:
        """The plan as it stands now (a consistent read). Raises UnreadableRow."""
        ...

    def manifest(self, plan_id: str) -> tuple[Entry, ...]:
        """Its jobs, in their order."""
        ...

    def approve(self, plan: Plan, *, by: str, now: datetime, alone_up_to: int) -> Plan:
        """Say yes to a plan, if it is planned, unchanged and still good, and `by` did not ask for it. With at most
        `alone_up_to` jobs, its requester may. Being applied already counts as success. Raises PlanMoved."""
        ...

    def take_lane(self, lane: str, plan_id: str, *, instead_of: str | None = None) -> str | None:
        """None: the lane is the plan's (or was already). A plan's id: it has the lane. One that is over is named by
        the caller as `instead_of`."""
        ...

    def plan_of(self, lane: str) -> str | None:
        """The plan that took the lane last."""
        ...

    def start(self, plan: Plan, *, by: str, now: datetime) -> Plan:
        """Let an approved plan run, if it is unchanged and its approval still good. Raises PlanMoved."""
        ...

    def abort(self, plan: Plan, *, by: str, why: str, now: datetime) -> Plan:
        """Withdraw a plan in any state but aborted. Raises PlanMoved."""
        ...

    def add_step(self, plan_id: str, step: Step) -> bool:
        """Write one step; False when another one stands under its number (this very step again is True)."""
        ...

    def steps(self, plan_id: str) -> tuple[Step, ...]:
        """Every step, in order (a consistent read)."""
        ...


class MoveTasks(Protocol):
    """Native redrives: SQS moves a lane's dead letters into the lane's queue, at a rate, one task at a time."""

    def start(self, lane: str, *, rate: int) -> bool:
        """Begin to move all that stands there; False when a task of that queue is active already."""
        ...

    def of(self, lane: str) -> tuple[MoveTask, ...]:
        """The newest tasks of a lane's dead-letter queue, the newest first."""
        ...

    def cancel(self, lane: str, handle: str) -> None:
        """Move nothing more; what was moved stays where it is. A task that is over already is no error."""
        ...


class ResolutionStore(Protocol):
    """What was found out about unknown outcomes: one person asks, another confirms."""

    def request(self, resolution: Resolution) -> Resolution | None:
        """Write it; it takes the place of one that nobody has confirmed. A resolution: a confirmed one stands there."""
        ...

    def get(self, job_id: str, fence: int, only: str | None = None) -> Resolution | None:
        """What is asked for or confirmed about this failure of a job, or about one effect of it."""
        ...

    def confirm(self, resolution: Resolution, *, by: str, now: datetime, alone: bool) -> Resolution:
        """Say yes, if it is unchanged, asked for by whom it names, unconfirmed and still good, and `by` did not ask for
        it (or may be `alone`).
        Being applied already counts as success. Raises ResolutionMoved."""
        ...
