"""A vendor in memory: answers as told, and keeps a record of what it accepted, the judge of duplicates."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from shared.core.effects import (
    Absent,
    Accepted,
    Answer,
    Call,
    Effect,
    Found,
    Lookup,
    LookupAnswer,
    NoAnswer,
    Refused,
    Unknown,
)
from shared.core.ports import Clock
from shared.core.sensitive import Sensitive


class Says(StrEnum):
    """What the vendor does with its next request."""

    ACCEPT = "accept"
    REFUSE_RATE = "refuse_429"
    REFUSE_RATE_UNTOLD = "refuse_429_untold"
    """Without a word on when to come again."""
    REFUSE_PERMANENT = "refuse_4xx"
    REFUSE_AUTH = "refuse_401"
    FORBID = "forbid_403"
    UNREACHABLE = "unreachable"
    """Nobody is there to take it or to refuse it."""
    UNSENT = "unsent"
    """It does not leave this machine."""
    FAIL = "fail_5xx"
    """Not accepted, and the client cannot tell, as after every answer of that kind."""
    UNKNOWN = "unknown"
    """Not accepted, and the client cannot tell."""
    ACCEPTED_BUT_UNKNOWN = "accepted_but_unknown"
    """Accepted, and the client cannot tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accept:
    """One thing that happened in the world."""

    key: str | None
    action: str
    target: str
    at: datetime
    vendor_id: str


class MemoryVendor:
    """The Vendor port with the abilities of a real one: deduplication by key or not, and a look-up or not."""

    def __init__(
        self,
        *,
        clock: Clock,
        name: str = "helpdesk",
        dedupes_by_key: timedelta | None = None,
        lookup: Lookup = Lookup.NONE,
        lookup_lag_s: float = 20.0,
        script: Iterable[Says] = (),
        takes_s: float = 0.0,
        rate_retry_s: float | None = 1.0,
        call_reply: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.dedupes_by_key, self.lookup = name, dedupes_by_key, lookup
        self.script: deque[Says] = deque(script)
        """Answers to the next effects, one each; accepts when it is empty."""
        self.call_script: deque[Says] = deque()
        """The same for calls."""
        self.accepts: list[Accept] = []
        self.requests = 0
        self.calls = 0
        self.lookups = 0
        self._clock, self._lag, self._takes_s = clock, timedelta(seconds=lookup_lag_s), takes_s
        self._rate_retry_s, self._call_reply = rate_retry_s, dict(call_reply or {})
        self._by_key: dict[str, list[Accept]] = {}
        self._lock = threading.RLock()

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        """One request, one verdict."""
        if self._takes_s:
            self._clock.sleep(self._takes_s)
        with self._lock:
            if isinstance(request, Call):
                return self._call()
            self.requests += 1
            says = self.script.popleft() if self.script else Says.ACCEPT
            match says:
                case Says.ACCEPT:
                    return Accepted(self._accept(request, key).vendor_id)
                case Says.ACCEPTED_BUT_UNKNOWN:
                    self._accept(request, key)
                    return Unknown("read_timeout")
            return self._not_accepted(says)

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        """What the vendor can tell about a key: at once, after its lag, or nothing."""
        with self._lock:
            self.lookups += 1
            if self.lookup is Lookup.NONE:
                return NoAnswer("no_lookup")
            known = self._by_key.get(key)
            if not known:
                return Absent()
            if self.lookup is Lookup.EVENTUAL and known[0].at + self._lag > self._clock.now():
                return Absent()
            return Found(known[0].vendor_id, times=len(known))

    def accepted(self, key: str) -> list[Accept]:
        """What was accepted under a key; more than one is a duplicate that a customer sees."""
        return list(self._by_key.get(key, ()))

    def duplicates(self) -> dict[str, int]:
        """Keys accepted more than once, with how often."""
        return {key: len(accepts) for key, accepts in self._by_key.items() if len(accepts) > 1}

    def _call(self) -> Answer:
        self.calls += 1
        says = self.call_script.popleft() if self.call_script else Says.ACCEPT
        if says is Says.ACCEPT:
            return Accepted(f"{self.name}-call-{self.calls}", Sensitive(dict(self._call_reply)))
        return self._not_accepted(says)

    def _not_accepted(self, says: Says) -> Answer:
        match says:
            case Says.REFUSE_RATE:
                return Refused("429", retry_after_s=self._rate_retry_s)
            case Says.REFUSE_RATE_UNTOLD:
                return Refused("429")
            case Says.REFUSE_PERMANENT:
                return Refused("422", permanent=True)
            case Says.REFUSE_AUTH:
                return Refused("401", auth=True)
            case Says.FORBID:
                return Refused("403", auth=True)
            case Says.FAIL:
                return Unknown("502")
            case Says.UNREACHABLE:
                return Refused("unreachable")
            case Says.UNSENT:
                return Refused("no_token", retry_after_s=self._rate_retry_s, unsent=True)
        return Unknown("read_timeout")

    def _accept(self, request: Effect, key: str | None, at: datetime | None = None) -> Accept:
        """It happens: now, or at the moment at which a request arrived that nobody waits for any more."""
        now = at or self._clock.now()
        known = self._by_key.get(key, []) if key is not None else []
        if known and self.dedupes_by_key is not None and now < known[-1].at + self.dedupes_by_key:
            return known[-1]
        accept = Accept(
            key=key,
            action=request.action,
            target=request.target,
            at=now,
            vendor_id=f"{self.name}-{len(self.accepts) + 1}",
        )
        self.accepts.append(accept)
        if key is not None:
            self._by_key.setdefault(key, []).append(accept)
        return accept
