"""A model in memory: the vendor simulator's own decisions, limits included, on the virtual clock."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ops.vendors.accounts import Accounts
from ops.vendors.record import VerdictKind
from ops.vendors.request import VendorRequest
from shared.adapters.memory.vendor import MemoryVendor
from shared.adapters.vendors.http import verdict
from shared.core.effects import Answer, Call, Effect, Refused
from shared.core.ports import Clock


class SimulatedModel(MemoryVendor):
    """The Vendor port before an OpenAI-shaped account of the simulator; `limits` are the account's settings."""

    def __init__(self, clock: Clock, *, takes_s: float = 0.0, **limits: Any) -> None:
        super().__init__(clock=clock, name="openai", takes_s=takes_s)
        self.accounts = Accounts(seed=7, configs={"openai": limits})
        self.estimates: list[int] = []
        """What each call was charged with, in their order."""

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        """One request, one verdict, as the HTTP adapter would tell it."""
        assert isinstance(request, Call), "a model has no effects"
        if self._takes_s:
            self._clock.sleep(self._takes_s)
        self.estimates.append(request.tokens)
        body = json.dumps(dict(request.body.reveal())).encode()
        asked = VendorRequest(method="POST", path="/openai/v1/chat/completions", body=body)
        decided = self.accounts.handle(asked, self._clock.now())
        if self.call_script:
            return self._not_accepted(self.call_script.popleft())
        assert decided.status is not None
        answer = verdict(decided.status, None, lambda: json.loads(json.dumps(decided.body)))
        if isinstance(answer, Refused) and answer.reason == "429":
            return replace(answer, retry_after_s=float(decided.headers["retry-after"]))
        return answer

    @property
    def answered(self) -> int:
        """Calls that were served, and paid for."""
        return self._count(VerdictKind.COMPUTED)

    @property
    def turned_away(self) -> int:
        """Calls that met the limit."""
        return self._count(VerdictKind.REFUSED_429)

    def _count(self, kind: VerdictKind) -> int:
        return self.accounts.record.summary().by_verdict.get(kind.value, 0)
