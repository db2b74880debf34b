"""Make an effect: intent, vendor, record. No exceptions to the order, and no second send without a licence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.contract import metrics
from shared.core.effects import (
    Accepted,
    Effect,
    EffectRow,
    EffectState,
    Found,
    LookUp,
    Lookup,
    NoAnswer,
    Park,
    Refused,
    SendAgain,
    Sent,
    Unknown,
    Withheld,
    effect_id_of,
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
from shared.usecases.spend import Spender, Spending
from shared.usecases.switchboard import SwitchBoard

MIN_RETRY_AFTER_S, MAX_RETRY_AFTER_S, DEFAULT_RETRY_AFTER_S = 1.0, 3600.0, 30.0
SWITCH_HOLD_S = 30
LOOKUPS_IN_GRACE = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectMaker:
    """What an effect needs; one per attempt, bound to the job's fence."""

    job: Job
    lane: LaneSpec
    effects: EffectStore
    board: SwitchBoard
    clock: Clock
    deadline: Deadline
    telemetry: Telemetry
    spender: Spender

    def make(self, name: str, request: Effect, vendor: Vendor) -> Sent | Withheld:
        """The effect stands, or is withheld by a switch; anything else ends the attempt with its outcome."""
        held = self._held_back(name, request, vendor)
        if held is not None:
            return held
        # Before the intent: whoever has to wait has promised nothing yet.
        with self.spender.permit(request.vendor) as permit:
            # A permit that was waited for is old news of switches and time.
            held = self._held_back(name, request, vendor) if permit.waited else None
            return held or self._begin(name, request, vendor, permit)

    def _held_back(self, name: str, request: Effect, vendor: Vendor) -> Sent | Withheld | None:
        """What a closed switch makes of it; None where every switch is open and there is time to send."""
        standing = self.board.read().for_job(self.job, (request.vendor,))
        closed = standing.closes_intent or (standing.withholds_effects and request.customer_visible)
        if closed:
            by = standing.scope if standing.closes_intent else (standing.paid_calls_closed_by or standing.scope)
            return self._closed(name, vendor, by, halt=standing.closes_intent)
        self._need_time()
        return None

    def _begin(self, name: str, request: Effect, vendor: Vendor, permit: Spending) -> Sent:
        now = self.clock.now()
        row = EffectRow(
            effect_id=effect_id_of(self.job.job_id, name),
            job_id=self.job.job_id,
            name=name,
            vendor=request.vendor,
            state=EffectState.INTENT,
            fence=self.job.fence,
            first_intent_at=now,
            intent_at=now,
        )
        present = persist(lambda: self.effects.intend(row), self.clock)
        if present is None:
            return self._send(row, request, vendor, permit)
        return self._from_row(present, request, vendor, permit)

    def _from_row(self, row: EffectRow, request: Effect, vendor: Vendor, permit: Spending) -> Sent:
        """An earlier or another worker's intent stands: never send blindly."""
        if row.state is EffectState.ACCEPTED:
            return Sent(row.vendor_id or "", replayed=True)
        if row.state is EffectState.REFUSED:
            # It changed under us from open to refused: the next attempt may write a fresh intent.
            raise EndAttempt(Defer(self.clock.now(), "effect_refused_elsewhere"))
        match self._resolution(row, vendor):
            case SendAgain():
                self._need_time()
                try:
                    mine = persist(
                        lambda: self.effects.take_over(row, fence=self.job.fence, now=self.clock.now()),
                        self.clock,
                    )
                except EffectMoved as moved:
                    return self._moved(moved, request, vendor)
                return self._send(mine, request, vendor, permit)
            case LookUp(give_up_at=give_up_at):
                return self._look_up(row, vendor, give_up_at)
            case Park():
                raise EndAttempt(self._unknown(row))

    def _send(self, row: EffectRow, request: Effect, vendor: Vendor, permit: Spending) -> Sent:
        timeout_s = min(self.lane.send_budget_s, self.deadline.remaining_s - RECORD_MARGIN_S)
        permit.spent()
        answer = vendor.perform(request, key=row.effect_id, timeout_s=timeout_s)
        now = self.clock.now()
        match answer:
            case Accepted(vendor_id=vendor_id):
                # The record comes first: a death while the account is told must not leave the outcome open.
                self._record(row, vendor_id)
                permit.heard(answer)
                self.telemetry.count(metrics.SENT, lane=self.lane.name)
                return Sent(vendor_id)
            case Refused() if row.taken_over:
                again = permit.heard(answer) or outcome_of_refusal(answer, request.vendor, now)
                return self._refused_again(row, vendor, again)
            case Refused():
                refused = replace(row, state=EffectState.REFUSED, recorded_at=now, reason=answer.reason)
                try:
                    persist(lambda: self.effects.record(row, refused), self.clock)
                except EffectMoved as moved:
                    return self._moved(moved, request, vendor)
                raise EndAttempt(permit.heard(answer) or outcome_of_refusal(answer, request.vendor, now))
            case Unknown(reason=reason):
                return self._after_unknown(row, vendor, permit.heard(answer) or Retry(f"vendor_unknown:{reason}"))

    def _after_unknown(self, row: EffectRow, vendor: Vendor, again: Outcome) -> Sent:
        match self._resolution(row, vendor):
            case SendAgain():
                raise EndAttempt(again)
            case LookUp(give_up_at=give_up_at):
                return self._look_up(row, vendor, give_up_at)
            case Park():
                raise EndAttempt(self._unknown(row))

    def _refused_again(self, row: EffectRow, vendor: Vendor, again: Outcome) -> Sent:
        """The *no* is to this request; an earlier one under the intent may have been taken, so it stays open."""
        grace_ends = self.clock.now()
        if vendor.lookup is not Lookup.NONE:
            found = self._found(row, vendor)
            if found is not None:
                return found
            # From the first intent: each of these requests has put its own time on the row.
            grace_ends = row.first_intent_at + timedelta(seconds=self.lane.lookup_grace_s)
        if isinstance(again, Fail):
            raise EndAttempt(self._not_found(row, grace_ends))
        raise EndAttempt(again)

    def _look_up(self, row: EffectRow, vendor: Vendor, give_up_at: datetime) -> Sent:
        found = self._found(row, vendor)
        if found is None:
            raise EndAttempt(self._not_found(row, give_up_at))
        return found

    def _found(self, row: EffectRow, vendor: Vendor) -> Sent | None:
        """What the vendor knows under the row's key is a record."""
        timeout_s = min(self.lane.send_budget_s, self.deadline.remaining_s - RECORD_MARGIN_S)
        answer = vendor.look_up(row.effect_id, timeout_s=timeout_s) if timeout_s > 0 else NoAnswer("no_time")
        if not isinstance(answer, Found):
            return None
        self._record(row, answer.vendor_id)
        return Sent(answer.vendor_id, replayed=True)

    def _not_found(self, row: EffectRow, give_up_at: datetime) -> Outcome:
        """Not found is evidence, never a licence: ask again while it may still arrive, then park."""
        now = self.clock.now()
        if now >= give_up_at:
            return self._unknown(row)
        step = timedelta(seconds=max(5.0, self.lane.lookup_grace_s / LOOKUPS_IN_GRACE))
        return Defer(max(min(now + step, give_up_at), now), "outcome_lookup")

    def _record(self, row: EffectRow, vendor_id: str) -> None:
        accepted = replace(
            row, state=EffectState.ACCEPTED, recorded_at=self.clock.now(), vendor_id=vendor_id, reason=None
        )
        try:
            persist(lambda: self.effects.record(row, accepted), self.clock)
        except EffectMoved as moved:
            if moved.current is None or moved.current.state is not EffectState.ACCEPTED:
                # Another worker has taken the intent over and owns what follows.
                raise ClaimLost(self.job.job_id, self.job.fence) from None
        except Unavailable:
            # The vendor has it; the open intent says so. The next attempt resolves it.
            raise EndAttempt(Retry("record_unavailable")) from None

    def _moved(self, moved: EffectMoved, request: Effect, vendor: Vendor) -> Sent:
        if moved.current is not None and moved.current.state is EffectState.ACCEPTED:
            return Sent(moved.current.vendor_id or "", replayed=True)
        raise ClaimLost(self.job.job_id, self.job.fence)

    def _closed(self, name: str, vendor: Vendor, by: str, *, halt: bool) -> Sent | Withheld:
        """A closed switch: what stands at the vendor counts, nothing is sent, an open intent waits."""
        rows = persist(lambda: self.effects.of_job(self.job.job_id), self.clock)
        row = next((row for row in rows if row.name == name), None)
        if row is not None and row.state is EffectState.ACCEPTED:
            return Sent(row.vendor_id or "", replayed=True)
        if row is not None and row.open:
            match self._resolution(row, vendor):
                case LookUp(give_up_at=give_up_at):
                    return self._look_up(row, vendor, give_up_at)
                case Park():
                    raise EndAttempt(self._unknown(row))
        if halt or (row is not None and row.open):
            until = self.clock.now() + timedelta(seconds=SWITCH_HOLD_S)
            raise EndAttempt(Defer(until, f"switches:{by}"))
        self.telemetry.event("effect_withheld", job_id=self.job.job_id, effect=name, scope=by)
        return Withheld(by)

    def _resolution(self, row: EffectRow, vendor: Vendor) -> SendAgain | LookUp | Park:
        return resolve_open_intent(
            row,
            dedupes_by_key=vendor.dedupes_by_key,
            lookup=vendor.lookup,
            grace_s=self.lane.lookup_grace_s,
            now=self.clock.now(),
        )

    def _need_time(self) -> None:
        if self.deadline.remaining_s < self.lane.send_budget_s + RECORD_MARGIN_S:
            raise EndAttempt(Defer(self.clock.now(), "time_budget"))

    def _unknown(self, row: EffectRow) -> Fail:
        self.telemetry.event("effect_unknown", job_id=self.job.job_id, effect=row.name, vendor=row.vendor)
        self.telemetry.count(metrics.UNKNOWN, lane=self.lane.name)
        return Fail(Category.OUTCOME_UNKNOWN, f"outcome_unknown:{row.name}")


def outcome_of_refusal(refused: Refused, vendor: str, now: datetime) -> Outcome:
    """What a vendor's certain *no* means for the attempt. A rate limit is not an error: it defers."""
    if refused.auth:
        return Fail(Category.AUTH, f"vendor_auth:{vendor}")
    if refused.permanent:
        return Fail(Category.VENDOR_PERMANENT, f"vendor_permanent:{vendor}:{refused.reason}")
    if refused.retry_after_s is not None:
        wait_s = min(max(refused.retry_after_s, MIN_RETRY_AFTER_S), MAX_RETRY_AFTER_S)
        return Defer(now + timedelta(seconds=wait_s), f"vendor:{vendor}:{refused.reason}")
    return Retry(f"vendor_refused:{vendor}:{refused.reason}")
