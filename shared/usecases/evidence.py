"""Evidence: what is known of an effect's end. An acceptance is written down, a look-up is asked; without either, a
person decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.contract import metrics
from shared.core.effects import (
    EffectRow,
    EffectState,
    Found,
    LookUp,
    Lookup,
    NoAnswer,
    Park,
    SendAgain,
    resolve_open_intent,
)
from shared.core.errors import ClaimLost, EffectMoved, Unavailable
from shared.core.job import Category, Job
from shared.core.lane import LaneSpec
from shared.core.outcome import Defer, Fail, Outcome, Retry
from shared.core.ports import Clock, EffectStore, Telemetry, Vendor
from shared.usecases.deadline import RECORD_MARGIN_S, Deadline
from shared.usecases.ending import EndAttempt
from shared.usecases.persist import persist

LOOKUPS_IN_GRACE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one attempt can learn of its job's effects. It never sends."""

    job: Job
    lane: LaneSpec
    effects: EffectStore
    vendors: Mapping[str, Vendor]
    clock: Clock
    deadline: Deadline
    telemetry: Telemetry

    @property
    def request_timeout_s(self) -> float:
        """How long a vendor may take, so that there is time left to write down what it said."""
        return min(self.lane.send_budget_s, self.deadline.remaining_s - RECORD_MARGIN_S)

    def accepted(self, row: EffectRow, vendor_id: str) -> None:
        """The vendor has it: written down, whoever holds the intent by now."""
        now = self.clock.now()
        acceptance = replace(row, state=EffectState.ACCEPTED, recorded_at=now, vendor_id=vendor_id or None)
        try:
            stands = persist(lambda: self.effects.accept(acceptance), self.clock)
        except EffectMoved:
            raise ClaimLost(self.job.job_id, self.job.fence) from None
        except Unavailable:
            # The vendor has it; the open intent says so. The next attempt resolves it.
            raise EndAttempt(Retry("record_unavailable")) from None
        if stands.contradicted:
            self._contradicted(row)

    def _contradicted(self, row: EffectRow) -> None:
        """It alarms: the vendor took it twice, or took what was written down as not sent."""
        self.telemetry.event("effect_contradicted", job_id=self.job.job_id, effect=row.name, vendor=row.vendor)
        self.telemetry.count(metrics.CONTRADICTED, lane=self.lane.name)

    def resolution(self, row: EffectRow) -> SendAgain | LookUp | Park:
        """What may be done about an open intent, by what the vendor of the row can do."""
        vendor = self.vendors.get(row.vendor)
        return resolve_open_intent(
            row,
            dedupes_by_key=None if vendor is None else vendor.dedupes_by_key,
            lookup=Lookup.NONE if vendor is None else vendor.lookup,
            grace_s=self.lane.lookup_grace_s,
            now=self.clock.now(),
        )

    def find(self, row: EffectRow) -> str | None:
        """The id under which the vendor of the row knows it, which is a record; None: it does not, or cannot tell."""
        vendor = self.vendors.get(row.vendor)
        if vendor is None or vendor.lookup is Lookup.NONE:
            return None
        timeout_s = self.request_timeout_s
        answer = vendor.look_up(row.effect_id, timeout_s=timeout_s) if timeout_s > 0 else NoAnswer("no_time")
        if not isinstance(answer, Found):
            return None
        if answer.times is not None and answer.times > 1:
            self._contradicted(row)
        self.accepted(row, answer.vendor_id)
        return answer.vendor_id

    def not_found(self, row: EffectRow, give_up_at: datetime) -> Outcome:
        """Not found is evidence, never a licence: ask again while it may still arrive, then park."""
        now = self.clock.now()
        vendor = self.vendors.get(row.vendor)
        if vendor is None or vendor.lookup is Lookup.NONE or now >= give_up_at:
            return self.unknown(row)
        step = timedelta(seconds=max(5.0, self.lane.lookup_grace_s / LOOKUPS_IN_GRACE))
        return Defer(max(min(now + step, give_up_at), now), "outcome_lookup")

    def grace_ends(self, begun: datetime) -> datetime:
        """Until when a request of that moment may still turn up in a look-up."""
        return begun + timedelta(seconds=self.lane.lookup_grace_s)

    def unknown(self, row: EffectRow) -> Fail:
        """A person decides."""
        self.telemetry.event("effect_unknown", job_id=self.job.job_id, effect=row.name, vendor=row.vendor)
        self.telemetry.count(metrics.UNKNOWN, lane=self.lane.name)
        return Fail(Category.OUTCOME_UNKNOWN, f"outcome_unknown:{row.name}")
