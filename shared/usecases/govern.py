"""Govern: once a minute, look at a lane, decide its cap, write it down, and make it so."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from shared.contract import metrics
from shared.core.capacity import CapacityState, Decision, EventSource, Policy, decide, soon_s
from shared.core.errors import PenstockError, Unavailable
from shared.core.history import HistoryEvent
from shared.core.lane import LaneSpec
from shared.core.ports import Actuator, Clock, ControlStore, History, Telemetry
from shared.core.severity import Reading, Thresholds, read
from shared.core.signals import Signals, moved_now
from shared.core.switches import Standing, Switches, lane_scopes, task_scopes
from shared.core.vendor_cost import LaneCost, Prices, cost_of
from shared.usecases.assert_cap import Asserted, assert_cap, source_of
from shared.usecases.look import Lookout
from shared.usecases.persist import persist
from shared.usecases.trip import GOVERNOR, trip

TRIES = 3
"""A decision that met a newer row is made again from that row, so often at most; then the tick is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Governed:
    """What one look came to."""

    decision: Decision
    asserted: Asserted
    tripped: bool = False

    def counts(self, lane: str) -> dict[str, int]:
        """For the run record, by lane."""
        return {
            f"{lane}.cap": self.decision.to_cap,
            f"{lane}.severity": int(self.decision.after.severity),
            f"{lane}.changed": int(self.decision.to_cap != self.decision.from_cap),
            f"{lane}.skipped": int(self.asserted in (Asserted.SKIPPED, Asserted.FOREIGN)),
            f"{lane}.tripped": int(self.tripped),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Governor:
    """The one writer of caps. Its row has a version: of two governors, one decides."""

    lookout: Lookout
    thresholds: Thresholds
    policies: Mapping[str, Policy]
    control: ControlStore
    actuator: Actuator
    history: History
    clock: Clock
    telemetry: Telemetry
    prices: Prices = field(default_factory=Prices)
    new_id: Callable[[], str] = lambda: uuid.uuid4().hex

    def run(self, lanes: Mapping[str, LaneSpec]) -> dict[str, int]:
        """Every lane that has a queue, each on its own: what goes wrong in one does not keep another waiting. One that
        is started by runs has no cap to decide: it is only watched."""
        self._wait(lanes)
        counts: dict[str, int] = {}
        for lane in lanes.values():
            try:
                if lane.admission == "scheduled":
                    self._watch(lane)
                    continue
                done = self.govern(lane)
            except PenstockError as exc:
                # The last good cap stands on the event source, and the row is left as it is for an operator.
                self.telemetry.error("lane_not_governed", exc, lane=lane.name)
                counts[f"{lane.name}.lost"] = 1
                continue
            counts |= {f"{lane.name}.lost": 1} if done is None else done.counts(lane.name)
        return counts

    def _wait(self, lanes: Mapping[str, LaneSpec]) -> None:
        """Once for all lanes, for what is all but over."""
        now, waits_s = self.clock.now(), [0.0]
        for lane in lanes.values():
            try:
                state = None if lane.admission == "scheduled" else self.control.capacity(lane.name)
            except PenstockError:
                # Its own look tells it.
                continue
            if state is not None:
                waits_s.append(soon_s(state, self.policies[lane.policy].of(lane), now))
        if max(waits_s):
            self.clock.sleep(max(waits_s))

    def govern(self, lane: LaneSpec) -> Governed | None:
        """One lane; None when others kept writing its row. Raises Unavailable or UnreadableRow of the control table."""
        correlation_id = self.new_id()
        switches = self.control.switches()
        # A halt on a vendor that some tasks never call does not stop those: the others are met by it at their claim.
        standing = switches.standing(lane_scopes(lane.name, lane.shared_vendors))
        # But what it holds grows old, and is no reason to raise the cap.
        closed = switches.standing(lane_scopes(lane.name, lane.vendors)).closes_admission
        source = source_of(lane, actuator=self.actuator, telemetry=self.telemetry)
        for _ in range(TRIES):
            seen = self.control.capacity(lane.name)
            state = seen or CapacityState(cap=lane.baseline)
            signals = self.lookout.look(lane, state.moved)
            reading = None if signals is None else read(signals, self.thresholds)
            tripped = self._tripped(lane, reading, switches, correlation_id)
            decision = self._decided(lane, state, signals, reading, standing, source, closed=closed)
            if persist(lambda: self.control.set_capacity(lane.name, seen, decision.after), self.clock):  # noqa: B023
                break
            self.telemetry.event("decision_overtaken", lane=lane.name, version=state.version)
        else:
            return None
        asserted = assert_cap(
            lane,
            0 if standing.closes_intent else decision.to_cap,
            source,
            stopped_by_us=state.stopped,
            actuator=self.actuator,
            telemetry=self.telemetry,
        )
        cost = None if signals is None else cost_of(signals, self.prices)
        self._told(lane, decision, cost, correlation_id)
        self._metered(lane, cost, switches)
        return Governed(decision=decision, asserted=asserted, tripped=tripped)

    def _decided(
        self,
        lane: LaneSpec,
        state: CapacityState,
        signals: Signals | None,
        reading: Reading | None,
        standing: Standing,
        source: EventSource | None,
        *,
        closed: bool,
    ) -> Decision:
        policy = self.policies[lane.policy].of(lane)
        decision = decide(state, reading, policy, self.clock.now(), closed=closed)
        stops = standing.closes_intent or decision.to_cap == 0
        # Ours until it is seen to feed workers again: an update that had to be skipped is not somebody else's doing.
        still = state.stopped and not (source is not None and source.enabled)
        moved = state.moved if signals is None else moved_now(signals)
        return replace(decision, after=replace(decision.after, moved=moved, stopped=stops or still))

    def _tripped(self, lane: LaneSpec, reading: Reading | None, switches: Switches, correlation_id: str) -> bool:
        if reading is None:
            return False
        try:
            return trip(
                lane,
                reading.unstable,
                switches,
                correlation_id=correlation_id,
                control=self.control,
                history=self.history,
                clock=self.clock,
                telemetry=self.telemetry,
            )
        except Unavailable as exc:
            self.telemetry.error("lane_not_tripped", exc, lane=lane.name)
            return False

    def _told(self, lane: LaneSpec, decision: Decision, cost: LaneCost | None, correlation_id: str) -> None:
        """Kept, logged and metered, whether anything changed or not."""
        record = decision.record(correlation_id)
        more: dict[str, str | int] = {
            "severity": decision.after.severity.word,
            "queueAgeSeconds": decision.after.age_s,
            "policy": lane.policy,
            **({} if cost is None else {"costPerHour": cost.words}),
        }
        self.telemetry.event("capacity_decided", lane=lane.name, **record, **more)
        # Levels, once a tick: where they stay away, an alarm says that this lane is not governed.
        self.telemetry.count(metrics.CAP, decision.to_cap, lane=lane.name)
        self.telemetry.count(metrics.SEVERITY, int(decision.after.severity), lane=lane.name)
        self.telemetry.count(metrics.QUEUE_AGE, decision.after.age_s, lane=lane.name)
        if decision.to_cap != decision.from_cap:
            self.telemetry.count(metrics.CAP_CHANGED, lane=lane.name)
        event = HistoryEvent(
            subject=f"capacity/{lane.name}",
            event_id=correlation_id,
            at=decision.at,
            kind="decision",
            by=GOVERNOR,
            detail={**record, **more},
        )
        try:
            persist(lambda: self.history.append(event), self.clock)
        except Unavailable as exc:
            self.telemetry.error("decision_unwritten", exc, lane=lane.name, correlation_id=correlation_id)

    def _watch(self, lane: LaneSpec) -> None:
        """What is closed over a lane, and what it costs."""
        signals = self.lookout.look(lane, None)
        self._metered(lane, None if signals is None else cost_of(signals, self.prices), self.control.switches())

    def _metered(self, lane: LaneSpec, cost: LaneCost | None, switches: Switches) -> None:
        """The strictest switch over the lane, and what its vendors cost: a metric each, never a change."""
        scopes = (*lane_scopes(lane.name, lane.vendors), *task_scopes(lane.name, lane.tasks))
        self.telemetry.count(metrics.SWITCH_LEVEL, int(switches.standing(scopes).rung), lane=lane.name)
        if cost is None:
            return
        for vendor in cost.unpriced:
            self.telemetry.event("vendor_without_price", lane=lane.name, vendor=vendor)
        if len(cost.unpriced) < len(cost.vendors) or not cost.vendors:
            self.telemetry.count(metrics.COST, cost.per_hour, lane=lane.name)
        payers = {self.lookout.accounts[name].vendor: name for name in lane.accounts if name in self.lookout.accounts}
        for one in cost.vendors:
            if one.per_hour is not None and one.vendor in payers:
                account = payers[one.vendor]
                self.telemetry.count(metrics.ACCOUNT_COST, one.per_hour, lane=lane.name, account=account)
