"""Spend: a call or an effect takes its permit first, or the job waits for its own turn; the answer is heard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from shared.contract import metrics
from shared.core.effects import Accepted, Answer, Refused
from shared.core.job import Category, Job
from shared.core.moment import iso
from shared.core.outcome import Defer, Fail
from shared.core.ports import Clock, Telemetry
from shared.core.rate import Want
from shared.usecases.budgets import Budgets
from shared.usecases.ending import EndAttempt
from shared.usecases.permit import Checked, Denied, OverLimit, Permit
from shared.usecases.tally import Tally

BUDGET, AUTH = "budget", "auth"
"""Why a job was put back by its account: for want of a permit, or for credentials that were refused."""


@dataclass(slots=True)
class Spending:
    """One permit on its way: spent with the request, told about the answer; not spent, it goes back."""

    spender: Spender
    vendor: str
    permit: Permit | None
    open: bool = True
    told: bool = False

    @property
    def waited(self) -> bool:
        """True when time has passed for it: what was looked at before has to be looked at again."""
        return self.permit is not None and self.permit.wait_us > 0

    def spent(self) -> None:
        """The request goes out now."""
        self.open = False

    def heard(self, answer: Answer) -> Defer | None:
        """Tell the account. A `Defer` where the answer is the account's trouble: no attempt is used for it."""
        self.spender.tally.heard(self.vendor, answer)
        if self.permit is None:
            return None
        self.told = True
        if isinstance(answer, Accepted):
            used = answer.report.tokens_used
            tokens = self.permit.tokens if used is None else used
            lane, account = self.spender.job.lane, self.permit.account
            self.spender.telemetry.count(metrics.TOKENS, tokens, lane=lane, account=account)
        auth = isinstance(answer, Refused) and answer.auth
        again = auth and self.spender.refused_before(self.permit.account)
        later = self.spender.budgets.heard(self.vendor, self.permit, answer, again=again)
        return None if later is None else self.spender.deferred(self.vendor, later, why=AUTH if auth else BUDGET)


@dataclass(slots=True, kw_only=True)
class Spender:
    """One attempt's way to the accounts of its lane.

    An attempt that is refused half-way repeats the calls whose answers it has not kept. So the next one asks for all of
    them at once, or under a narrow limit it would spend each turn on the same first call and never end.
    """

    job: Job
    budgets: Budgets
    clock: Clock
    telemetry: Telemetry
    tally: Tally = field(default_factory=Tally)
    patience_s: float = 0.0
    """So long the attempt may still wait for moments of its permits, all together."""
    _repeated: dict[str, Want] = field(default_factory=dict)
    _bundles: dict[str, Permit] = field(default_factory=dict)

    @contextmanager
    def permit(self, vendor: str, tokens: int = 0) -> Iterator[Spending]:
        """A permit for one request, after its moment was waited for, if that is near. Where there is none, the attempt
        ends: the job waits for its turn."""
        spending = Spending(self, vendor, self._taken(vendor, tokens))
        try:
            yield spending
        finally:
            if spending.permit is not None and spending.open:
                self.budgets.unsent(vendor, spending.permit)
            elif spending.permit is not None and not spending.told:
                self.budgets.over(vendor, spending.permit)

    def repeats(self, vendor: str, tokens: int) -> None:
        """A call was made whose answer the next attempt would have to ask for again."""
        before = self._repeated.get(vendor, Want(requests=0))
        self._repeated[vendor] = Want(requests=before.requests + 1, tokens=before.tokens + tokens)

    def kept(self) -> None:
        """What was asked so far is kept: the next attempt need not repeat it."""
        self._repeated.clear()

    def close(self) -> None:
        """The attempt is over: what it took for calls it did not make goes back."""
        for vendor, rest in self._bundles.items():
            self.budgets.restore(vendor, rest)
        self._bundles.clear()

    def refused_before(self, account: str) -> bool:
        """True when this job's credentials were refused in an earlier attempt."""
        return any(move.reason == f"defer:{AUTH}:{account}" for move in self.job.moves)

    def deferred(self, vendor: str, denied: Denied, *, why: str = BUDGET) -> Defer:
        """The job's own turn, told in the seed's words."""
        delay_s = max(0.0, (denied.until - self.clock.now()).total_seconds())
        self.telemetry.event(
            "rate_limit_schedule",
            job_id=self.job.job_id,
            account=denied.account,
            limit=denied.limit,
            operation_type="scheduling",
            operation_name="rate_limit_schedule",
            status="completed",
            input_data={"estimated_tokens": denied.tokens, **self._available(denied)},
            output_data={"delay_seconds": round(delay_s, 3), "scheduled_at": iso(denied.until)},
        )
        self.telemetry.count(metrics.RATE_DEFERRED, lane=self.job.lane, account=denied.account)
        self.telemetry.count(metrics.RATE_WAIT, delay_s, lane=self.job.lane, account=denied.account)
        again = self._repeated.get(vendor, Want(requests=0))
        return Defer(
            denied.until,
            f"{why}:{denied.account}",
            promised=why == BUDGET,
            tokens=denied.tokens + again.tokens,
            requests=denied.requests + again.requests,
        )

    def _taken(self, vendor: str, tokens: int) -> Permit | None:
        rest = self._bundles.pop(vendor, None)
        if rest is not None:
            return self._parted(vendor, self.budgets.part(vendor, rest), tokens)
        # Known from the attempt before: so many calls have to be made in one go.
        first = vendor not in self._repeated
        requests = (self.job.estimated_requests or 1) if first else 1
        wanted = max(tokens, self.job.estimated_tokens or 0) if requests > 1 else tokens
        try:
            checked = self.budgets.try_consume(vendor, wanted, requests=requests, ahead_s=self.patience_s)
        except OverLimit as over:
            self.telemetry.error("over_limit", over, job_id=self.job.job_id, vendor=vendor, estimated_tokens=wanted)
            # Several calls that fit one by one, but have to be repeated together: the task should keep its answers.
            code = "over_limit" if requests == 1 else "over_limit_together"
            raise EndAttempt(Fail(Category.MALFORMED, f"{code}:{vendor}")) from None
        if checked is None:
            return None
        self._note(checked, wanted)
        if isinstance(checked.answer, Denied):
            raise EndAttempt(self.deferred(vendor, checked.answer))
        bundle = self._at_its_moment(vendor, checked.answer)
        self.telemetry.count(metrics.PERMITS, bundle.requests, lane=self.job.lane, account=bundle.account)
        return self._parted(vendor, bundle, tokens)

    def _at_its_moment(self, vendor: str, permit: Permit) -> Permit:
        """The permit when its moment has come, if the account still allows it then."""
        if not permit.wait_us:
            return permit
        # Clocks count milliseconds; a moment too early would be refused.
        wait_s = -(-permit.wait_us // 1000) / 1000
        self.patience_s -= wait_s
        self.clock.sleep(wait_s)
        come = self.budgets.come(vendor, permit)
        if isinstance(come, Denied):
            raise EndAttempt(self.deferred(vendor, come))
        return come

    def _parted(self, vendor: str, bundle: Permit, tokens: int) -> Permit:
        """One request of what was taken; the rest is for this attempt's next calls."""
        if bundle.requests == 1:
            return bundle
        mine = min(tokens, bundle.tokens)
        self._bundles[vendor] = replace(bundle, requests=bundle.requests - 1, tokens=bundle.tokens - mine)
        return replace(bundle, requests=1, tokens=mine)

    def _note(self, checked: Checked, tokens: int) -> None:
        self.telemetry.event(
            "rate_limit_check",
            job_id=self.job.job_id,
            account=checked.answer.account,
            operation_type="scheduling",
            operation_name="rate_limit_check",
            status="completed",
            input_data={"estimated_tokens": tokens, **_left(checked.available_tokens, checked.available_requests)},
            output_data={"allowed": isinstance(checked.answer, Permit)},
        )

    @staticmethod
    def _available(denied: Denied) -> Mapping[str, int]:
        return _left(denied.available_tokens, denied.available_requests)


def _left(tokens: int | None, requests: int | None) -> dict[str, int]:
    """What the account had left, by the limits it has."""
    left = {"available_tokens": tokens, "available_requests": requests}
    return {name: amount for name, amount in left.items() if amount is not None}
