"""Redrive plans and resolutions in memory: rows kept as items, each method one step."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from shared.adapters import plan_rows
from shared.adapters.attributes import Item
from shared.adapters.memory.readings import Readings
from shared.core.errors import PlanMoved, ResolutionMoved
from shared.core.plan import Entry, Plan, PlanState, Resolution, Step


class MemoryPlanStore:
    """Plans, manifests, steps, and which plan has a lane."""

    def __init__(self) -> None:
        self._plans: dict[str, Item] = {}
        self._manifests: dict[str, list[Item]] = {}
        self._steps: dict[str, dict[int, Item]] = {}
        self._lanes: dict[str, Item] = {}
        self._plan_readings, self._step_readings = (
            Readings(plan_rows.plan_from_item),
            Readings(plan_rows.step_from_item),
        )
        self._lock = threading.RLock()

    def put(self, plan: Plan, manifest: Sequence[Entry]) -> None:
        """Once."""
        with self._lock:
            if plan.plan_id not in self._plans:
                self._manifests[plan.plan_id] = list(plan_rows.manifest_items(plan.plan_id, manifest))
                self._plans[plan.plan_id] = plan_rows.plan_item(plan)

    def get(self, plan_id: str) -> Plan | None:
        """The plan as it stands."""
        item = self._plans.get(plan_id)
        return None if item is None else self._plan_readings.of(item)

    def manifest(self, plan_id: str) -> tuple[Entry, ...]:
        """Its jobs."""
        return plan_rows.manifest_from_items(self._manifests.get(plan_id, []))

    def approve(self, plan: Plan, *, by: str, now: datetime, alone_up_to: int) -> Plan:
        """By somebody else, while it is planned, unchanged and still good."""
        with self._lock:
            current = self._current(plan)
            two = current.requester != by or current.count <= alone_up_to
            same = current.state is PlanState.PLANNED and current.hash == plan.hash
            if two and same and current.valid_until > now:
                return self._write(replace(current, state=PlanState.APPROVED, approver=by, approved_at=now))
            if current.state is PlanState.APPROVED and current.approver == by:
                return current
            raise PlanMoved(plan.plan_id, current)

    def take_lane(self, lane: str, plan_id: str, *, instead_of: str | None = None) -> str | None:
        """The first has it until it is over."""
        with self._lock:
            present = self.plan_of(lane)
            if present not in (None, plan_id, instead_of):
                return present
            self._lanes[lane] = plan_rows.lane_item(lane, plan_id)
            return None

    def plan_of(self, lane: str) -> str | None:
        """Who has it."""
        item = self._lanes.get(lane)
        return None if item is None else plan_rows.holder_from_item(item)

    def start(self, plan: Plan, *, by: str, now: datetime) -> Plan:
        """While it is approved, unchanged and still good."""
        with self._lock:
            current = self._current(plan)
            same = current.state is PlanState.APPROVED and current.hash == plan.hash
            if same and current.valid_until > now:
                return self._write(replace(current, state=PlanState.RUNNING, started_by=by, started_at=now))
            if current.state is PlanState.RUNNING and current.started_by == by:
                return current
            raise PlanMoved(plan.plan_id, current)

    def abort(self, plan: Plan, *, by: str, why: str, now: datetime) -> Plan:
        """Once."""
        with self._lock:
            current = self._current(plan)
            if current.state is not PlanState.ABORTED:
                return self._write(
                    replace(current, state=PlanState.ABORTED, aborted_by=by, aborted_at=now, abort_why=why)
                )
            if current.aborted_by == by:
                return current
            raise PlanMoved(plan.plan_id, current)

    def add_step(self, plan_id: str, step: Step) -> bool:
        """The first under its number stays."""
        item = plan_rows.step_item(plan_id, step)
        with self._lock:
            return self._steps.setdefault(plan_id, {}).setdefault(step.number, item) == item

    def steps(self, plan_id: str) -> tuple[Step, ...]:
        """In order."""
        with self._lock:
            items = [item for _, item in sorted(self._steps.get(plan_id, {}).items())]
        return tuple(map(self._step_readings.of, items))

    def _current(self, plan: Plan) -> Plan:
        current = self.get(plan.plan_id)
        if current is None:
            raise PlanMoved(plan.plan_id, None)
        return current

    def _write(self, plan: Plan) -> Plan:
        self._plans[plan.plan_id] = plan_rows.plan_item(plan)
        return plan


class MemoryResolutionStore:
    """Resolutions, by job and fence, and by effect where one is named."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, int, str | None], Item] = {}
        self._lock = threading.RLock()

    def request(self, resolution: Resolution) -> Resolution | None:
        """In the place of any that nobody has confirmed."""
        with self._lock:
            present = self.get(resolution.job_id, resolution.fence, resolution.only)
            if present is not None and present.confirmer is not None:
                return present
            self._put(resolution)
            return None

    def get(self, job_id: str, fence: int, only: str | None = None) -> Resolution | None:
        """What stands there."""
        item = self._rows.get((job_id, fence, only))
        return None if item is None else plan_rows.resolution_from_item(item)

    def confirm(self, resolution: Resolution, *, by: str, now: datetime, alone: bool) -> Resolution:
        """By somebody else, while it is unconfirmed, unchanged and still good."""
        with self._lock:
            current = self.get(resolution.job_id, resolution.fence, resolution.only)
            if current is None:
                raise ResolutionMoved(resolution.job_id, None)
            same = (current.hash, current.requester) == (resolution.hash, resolution.requester)
            two = current.requester != by or alone
            if current.confirmer is None and same and two and current.valid_until > now:
                confirmed = replace(current, confirmer=by, confirmed_at=now)
                self._put(confirmed)
                return confirmed
            if current.confirmer == by and same:
                return current
            raise ResolutionMoved(resolution.job_id, current)

    def _put(self, resolution: Resolution) -> None:
        key = resolution.job_id, resolution.fence, resolution.only
        self._rows[key] = plan_rows.resolution_item(resolution)
