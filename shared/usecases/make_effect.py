"""Make an effect: intent, vendor, record. No exceptions to the order, and no second send without a licence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.contract import metrics
from shared.core.effects import (
    Accepted,
    Answer,
    Effect,
    EffectRow,
    EffectState,
    LookUp,
    Park,
    Refused,
    SendAgain,
    Sent,
    Unknown,
    Withheld,
    effect_id_of,
    fingerprint_of,
)
from shared.core.errors import ClaimLost, EffectMoved
from shared.core.job import Category, Job
from shared.core.lane import LaneSpec
from shared.core.outcome import Defer, Fail, Outcome, Retry
from shared.core.ports import Clock, EffectStore, Telemetry, Vendor
from shared.usecases.deadline import RECORD_MARGIN_S, Deadline
from shared.usecases.ending import EndAttempt
from shared.usecases.evidence import Evidence
from shared.usecases.passage import Passage
from shared.usecases.persist import persist
from shared.usecases.spend import Spender, Spending
from shared.usecases.switchboard import SwitchBoard

MIN_RETRY_AFTER_S, MAX_RETRY_AFTER_S, DEFAULT_RETRY_AFTER_S = 1.0, 3600.0, 30.0
SWITCH_HOLD_S = 30
NO_TIME = Refused("no_time", unsent=True)
"""The time ran out between the intent and the send: nothing has left this machine."""


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
    passage: Passage
    evidence: Evidence

    def make(self, name: str, request: Effect, vendor: Vendor) -> Sent | Withheld:
        """The effect stands, or is withheld by a switch; anything else ends the attempt with its outcome."""
        try:
            known = self.passage.enter(name, request)
            stands = known is not None and known.state is EffectState.ACCEPTED
            made = _replayed(known) if known and stands else self._made(name, request, vendor, known)
        except BaseException:
            # What was begun may stand open, and a task can go on from here: its end asks every effect.
            self.passage.disturbed()
            raise
        self.passage.passed(name, stands=isinstance(made, Sent))
        return made

    def _made(self, name: str, request: Effect, vendor: Vendor, known: EffectRow | None) -> Sent | Withheld:
        held = self._held_back(name, request)
        if held is not None:
            return held
        # Before the intent: whoever has to wait has promised nothing yet.
        with self.spender.permit(request.vendor) as permit:
            # A permit that was waited for is old news of switches and time.
            held = self._held_back(name, request) if permit.waited else None
            if held is not None:
                return held
            if known is not None and known.open:
                return self._from_row(known, request, vendor, permit)
            return self._begin(name, request, vendor, permit)

    def _held_back(self, name: str, request: Effect) -> Sent | Withheld | None:
        """What a closed switch makes of it; None where every switch is open and there is time to send."""
        standing = self.board.read().for_job(self.job, (request.vendor,))
        closed = standing.closes_intent or (standing.withholds_effects and request.customer_visible)
        if closed:
            by = standing.scope if standing.closes_intent else (standing.paid_calls_closed_by or standing.scope)
            return self._closed(name, request, by, halt=standing.closes_intent)
        self._need_time()
        return None

    def _begin(self, name: str, request: Effect, vendor: Vendor, permit: Spending) -> Sent:
        now, effect_id = self.clock.now(), effect_id_of(self.job.job_id, name)
        row = EffectRow(
            effect_id=effect_id,
            job_id=self.job.job_id,
            name=name,
            vendor=request.vendor,
            state=EffectState.INTENT,
            fence=self.job.fence,
            first_intent_at=now,
            intent_at=now,
            fingerprint=fingerprint_of(effect_id, request),
            customer_visible=request.customer_visible,
        )
        present = persist(lambda: self.effects.intend(row), self.clock)
        if present is None:
            return self._send(row, request, vendor, permit)
        return self._from_row(self.passage.meet(present, request), request, vendor, permit)

    def _from_row(self, row: EffectRow, request: Effect, vendor: Vendor, permit: Spending) -> Sent:
        """An earlier or another worker's intent stands: never send blindly."""
        if row.state is EffectState.ACCEPTED:
            return _replayed(row)
        if row.state is EffectState.REFUSED:
            # It changed under us from open to refused: the next attempt may write a fresh intent.
            raise EndAttempt(Defer(self.clock.now(), "effect_refused_elsewhere"))
        match self.evidence.resolution(row):
            case SendAgain():
                self._need_time()
                try:
                    mine = persist(
                        lambda: self.effects.take_over(row, fence=self.job.fence, now=self.clock.now()),
                        self.clock,
                    )
                except EffectMoved as moved:
                    return self._moved(moved)
                return self._send(mine, request, vendor, permit)
            case LookUp(give_up_at=give_up_at):
                return self._look_up(row, give_up_at)
            case Park():
                raise EndAttempt(self.evidence.unknown(row))

    def _send(self, row: EffectRow, request: Effect, vendor: Vendor, permit: Spending) -> Sent:
        answer = self._answer(row, request, vendor, permit)
        match answer:
            case Accepted(vendor_id=vendor_id):
                # The record comes first: a death while the account is told must not leave the outcome open.
                self.evidence.accepted(row, vendor_id)
                permit.heard(answer)
                self.telemetry.count(metrics.SENT, lane=self.lane.name)
                return Sent(vendor_id)
            case Unknown(reason=reason):
                return self._after_unknown(row, permit.heard(answer) or Retry(f"vendor_unknown:{reason}"))
            case Refused() if row.taken_over:
                return self._refused_again(row, self._again(answer, request, permit))
            case Refused():
                refused = replace(row, state=EffectState.REFUSED, recorded_at=self.clock.now(), reason=answer.reason)
                try:
                    persist(lambda: self.effects.record(row, refused), self.clock)
                except EffectMoved as moved:
                    return self._moved(moved)
                raise EndAttempt(self._again(answer, request, permit))

    def _answer(self, row: EffectRow, request: Effect, vendor: Vendor, permit: Spending) -> Answer:
        timeout_s = self.evidence.request_timeout_s
        if timeout_s <= 0:
            # Whoever stood still since the intent does not begin to send now.
            return NO_TIME
        permit.spent()
        return vendor.perform(request, key=row.effect_id, timeout_s=timeout_s)

    def _again(self, refused: Refused, request: Effect, permit: Spending) -> Outcome:
        """What a refusal means for the attempt, and for the account it was paid from."""
        if refused is NO_TIME:
            return Defer(self.clock.now(), "time_budget")
        return permit.heard(refused) or outcome_of_refusal(refused, request.vendor, self.clock.now())

    def _after_unknown(self, row: EffectRow, again: Outcome) -> Sent:
        match self.evidence.resolution(row):
            case SendAgain():
                raise EndAttempt(again)
            case LookUp(give_up_at=give_up_at):
                return self._look_up(row, give_up_at)
            case Park():
                raise EndAttempt(self.evidence.unknown(row))

    def _refused_again(self, row: EffectRow, again: Outcome) -> Sent:
        """The *no* is to this request; an earlier one under the intent may have been taken, so it stays open."""
        vendor_id = self.evidence.find(row)
        if vendor_id is not None:
            return Sent(vendor_id, replayed=True)
        if isinstance(again, Fail):
            # From the first intent: each of these requests has put its own time on the row.
            raise EndAttempt(self.evidence.not_found(row, self.evidence.grace_ends(row.first_intent_at)))
        raise EndAttempt(again)

    def _look_up(self, row: EffectRow, give_up_at: datetime) -> Sent:
        vendor_id = self.evidence.find(row)
        if vendor_id is None:
            raise EndAttempt(self.evidence.not_found(row, give_up_at))
        return Sent(vendor_id, replayed=True)

    def _moved(self, moved: EffectMoved) -> Sent:
        if moved.current is not None and moved.current.state is EffectState.ACCEPTED:
            return _replayed(moved.current)
        raise ClaimLost(self.job.job_id, self.job.fence)

    def _closed(self, name: str, request: Effect, by: str, *, halt: bool) -> Sent | Withheld:
        """A closed switch: what stands at the vendor counts, nothing is sent, an open intent waits."""
        row = self.passage.rows().get(name)
        if row is not None and self.passage.same(row, request).state is EffectState.ACCEPTED:
            return _replayed(row)
        if row is not None and row.open:
            match self.evidence.resolution(row):
                case LookUp(give_up_at=give_up_at):
                    return self._look_up(row, give_up_at)
                case Park():
                    raise EndAttempt(self.evidence.unknown(row))
        if halt or (row is not None and row.open):
            until = self.clock.now() + timedelta(seconds=SWITCH_HOLD_S)
            raise EndAttempt(Defer(until, f"switches:{by}"))
        self.telemetry.event("effect_withheld", job_id=self.job.job_id, effect=name, scope=by)
        return Withheld(by)

    def _need_time(self) -> None:
        if self.deadline.remaining_s < self.lane.send_budget_s + RECORD_MARGIN_S:
            raise EndAttempt(Defer(self.clock.now(), "time_budget"))


def _replayed(row: EffectRow) -> Sent:
    return Sent(row.vendor_id or "", replayed=True)


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
