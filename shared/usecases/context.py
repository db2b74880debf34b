"""What a task is given: its text, and the only two ways to touch the world."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from threading import Lock
from typing import Any

from shared.contract import names
from shared.core.account import AccountSpec
from shared.core.document import own_document
from shared.core.effects import Accepted, Call, Effect, Refused, Sent, Unknown, Withheld
from shared.core.errors import BadInput, ClaimLost, ControlUnreadable, PenstockError, Unavailable, UnreadableRow
from shared.core.job import Category, Job, identifier
from shared.core.outcome import Fail, Outcome, Retry
from shared.core.ports import Clock, ContentStore, Vendor
from shared.core.routing import Routing
from shared.core.sensitive import Sensitive
from shared.usecases.deadline import RECORD_MARGIN_S, Deadline
from shared.usecases.ending import EndAttempt
from shared.usecases.make_effect import EffectMaker, outcome_of_refusal
from shared.usecases.persist import persist
from shared.usecases.switchboard import SwitchBoard

ENDS = (EndAttempt, ClaimLost, ControlUnreadable, Unavailable, UnreadableRow)
"""What ends an attempt whatever its task makes of it: an outcome, or the loss of a store or of the job."""


class Context:
    """A task's `ctx`. One per attempt; its methods end the attempt by themselves where the task has no say."""

    def __init__(
        self,
        *,
        job: Job,
        content: ContentStore,
        vendors: Mapping[str, Vendor],
        maker: EffectMaker,
        board: SwitchBoard,
        clock: Clock,
        deadline: Deadline,
        accounts: Iterable[AccountSpec] = (),
        routing: Routing | None = None,
    ) -> None:
        self._job, self._content, self._vendors = job, content, vendors
        self._maker, self._board, self._clock, self._deadline = maker, board, clock, deadline
        self._accounts, self._routing = {account.vendor: account for account in accounts}, routing
        self.sent = 0
        self.replayed = 0
        self.withheld: dict[str, str] = {}
        """What a switch forbade: effect or call → the switch's scope."""
        self.ended: EndAttempt | PenstockError | None = None
        """What the engine has ended the attempt with. From then on the task touches nothing any more."""
        self._one_effect = Lock()
        """One effect after the other, whatever threads a task has: what the first one wrote, the second one meets."""

    @property
    def now(self) -> datetime:
        """The present moment."""
        return self._clock.now()

    @property
    def remaining_s(self) -> float:
        """Seconds this job may still take."""
        return self._deadline.remaining_s

    def largest_call(self, vendor: str) -> int | None:
        """The tokens that one call to a vendor can use at most, by the limit of its account; None: there is none."""
        account = self._accounts.get(vendor)
        return None if account is None else account.largest_call

    @property
    def routing(self) -> Routing:
        """The lane's intents and teams, as configured."""
        if self._routing is None:
            raise BadInput("routing", f"is missing: give lane {self._job.lane} its intents and teams in config/")
        return self._routing

    @property
    def payload(self) -> Sensitive[Mapping[str, Any]]:
        """What the producer gave, read from the content store."""
        ref = self._job.payload_ref
        if ref is None:
            return Sensitive({})
        return Sensitive(json.loads(self._stored(ref, "payload_missing")))

    def document(self, ref: object) -> Sensitive[bytes]:
        """A document of the job's own tenant, read from the content store; a reference to any other is refused."""
        own = own_document(ref, self._job.tenant)
        return Sensitive(self._stored(own, "document_missing"))

    def _stored(self, ref: str, missing: str) -> bytes:
        with self._at_work():
            data = persist(lambda: self._content.get(ref), self._clock)
            if data is None:
                raise EndAttempt(Fail(Category.MALFORMED, missing))
        return data

    def keep(self, name: str, data: bytes) -> str:
        """Store a result for later readers; returns its reference. Keeping the same name again replaces it."""
        ref = self._result_ref(name)
        with self._at_work():
            persist(lambda: self._content.put(ref, data), self._clock)
            self._maker.spender.kept()
        return ref

    def kept(self, name: str) -> bytes | None:
        """What this attempt or an earlier one kept under that name."""
        ref = self._result_ref(name)
        with self._at_work():
            return persist(lambda: self._content.get(ref), self._clock)

    def effect(self, name: str, request: Effect) -> Sent | Withheld:
        """Make an outside action once in the life of the job, however often the task runs."""
        if not isinstance(request, Effect):
            raise BadInput("effect", f"{request.action} is a call: use ctx.call")
        with self._one_effect, self._at_work():
            made = self._maker.make(name, request, self._vendor(request.vendor))
        if isinstance(made, Withheld):
            self.withheld[name] = made.by
        elif made.replayed:
            self.replayed += 1
        else:
            self.sent += 1
        return made

    def call(self, request: Call) -> Sensitive[Any] | Withheld:
        """Ask a vendor something that may be asked again; its passing failures use an attempt."""
        with self._at_work():
            return self._call(request)

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """A task that catches its own end, or a fault of the engine's, and goes on meets it again at the next thing."""
        if self.ended is not None:
            raise self.ended
        try:
            yield
        except ENDS as end:
            self.ended = end
            raise

    def _call(self, request: Call) -> Sensitive[Any] | Withheld:
        if not isinstance(request, Call):
            raise BadInput("call", f"{request.action} is an effect: use ctx.effect")
        held = self._withheld_call(request)
        if held is not None:
            return held
        timeout_s = self._call_time_s()
        vendor = self._vendor(request.vendor)
        with self._maker.spender.permit(request.vendor, request.tokens) as permit:
            if permit.waited:
                held = self._withheld_call(request)
                if held is not None:
                    return held
                timeout_s = self._call_time_s()
            permit.spent()
            answer = vendor.perform(request, key=None, timeout_s=timeout_s)
            later = permit.heard(answer)
        match answer:
            case Accepted(body=body):
                self._maker.spender.repeats(request.vendor, request.tokens)
                return body if body is not None else Sensitive(None)
            case Refused():
                raise EndAttempt(later or outcome_of_refusal(answer, request.vendor, self._clock.now()))
            case Unknown(reason=reason):
                raise EndAttempt(later or Retry(f"vendor_unavailable:{request.vendor}:{reason}"))

    def _withheld_call(self, request: Call) -> Withheld | None:
        """A closed switch keeps a paid call back."""
        by = self._board.read().for_job(self._job, (request.vendor,)).paid_calls_closed_by
        if not request.paid or by is None:
            return None
        self.withheld[request.action] = by
        return Withheld(by)

    def _call_time_s(self) -> float:
        """How long a call may take; none is begun without time for it."""
        timeout_s = self._deadline.remaining_s - RECORD_MARGIN_S
        if timeout_s <= 0:
            raise EndAttempt(Retry("time_budget"))
        return timeout_s

    def close(self) -> None:
        """The task has ended: what it took for calls it did not make goes back."""
        self._maker.spender.close()

    def _result_ref(self, name: str) -> str:
        return f"{names.RESULTS}{self._job.job_id}/{identifier('name', name, 64)}"

    def _vendor(self, name: str) -> Vendor:
        vendor = self._vendors.get(name)
        if vendor is None:
            raise BadInput("vendor", f"{name!r} is not one of the lane's: {', '.join(sorted(self._vendors))}")
        return vendor


Task = Callable[[Job, Context], Outcome]
