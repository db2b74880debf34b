"""Vendors that answer in every way there is, also to a request whose predecessor nobody knows the end of."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from shared.adapters.memory.vendor import MemoryVendor
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

LATEST_S = 60.0
"""A request on its way arrives within this time or not at all: well within the lane's visibility."""
WINDOWS_S = (360, 900, 3600, 86_400)
"""How long a vendor may remember our key: the shortest is over a minute after the first intent, for our purposes."""


class Way(StrEnum):
    """How a vendor treats one request."""

    ACCEPTED = "accepted"
    ACCEPTED_LOST = "accepted_answer_lost"
    ACCEPTED_5XX = "accepted_5xx"
    TIME_OUT = "time_out"
    SERVER_ERROR = "5xx"
    LATE = "accepted_late"
    """Our client gave up before the request arrived."""
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    PERMANENT = "422"
    LIMITED = "429"
    LIMITED_UNTIL = "429_retry_after"
    UNREACHABLE = "unreachable"
    UNSENT = "unsent"

    @property
    def opens(self) -> bool:
        """Nobody knows its end."""
        return self in OPENS


OPENS = frozenset({Way.ACCEPTED_LOST, Way.ACCEPTED_5XX, Way.TIME_OUT, Way.SERVER_ERROR, Way.LATE})
REFUSALS = tuple(way for way in Way if way is not Way.ACCEPTED and way not in OPENS)
ANSWERS: Mapping[Way, Answer] = {
    Way.ACCEPTED_LOST: Unknown("timeout"),
    Way.ACCEPTED_5XX: Unknown("502"),
    Way.TIME_OUT: Unknown("timeout"),
    Way.SERVER_ERROR: Unknown("500"),
    Way.LATE: Unknown("timeout"),
    Way.UNAUTHORIZED: Refused("401", auth=True),
    Way.FORBIDDEN: Refused("403", auth=True),
    Way.PERMANENT: Refused("422", permanent=True),
    Way.LIMITED: Refused("429"),
    Way.UNREACHABLE: Refused("unreachable"),
    Way.UNSENT: Refused("no_token", retry_after_s=5.0, unsent=True),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """What a vendor can do for us, and how it answers."""

    dedupes_s: int | None
    lookup: Lookup
    odds: tuple[float, ...]
    """One for each `Way`."""
    again: tuple[float, ...]
    """The same for a request whose predecessor nobody knows the end of."""
    lookup_fails: float
    takes_s: float


def drawn_nature(rng: random.Random) -> Nature:
    """Any combination of abilities; one vendor in five answers well, the others mix two to five ways of trouble. Two in
    five refuse what follows an unknown end, nearly always in one way."""
    trouble = dict.fromkeys(Way, 0.0) | {Way.ACCEPTED: 1.0}
    if rng.random() < 0.8:
        for way in rng.sample([way for way in Way if way is not Way.ACCEPTED], rng.randint(2, 5)):
            trouble[way] = rng.choice((0.2, 0.5, 1.0))
        trouble[rng.choice(sorted(OPENS))] += 0.5
    odds = tuple(trouble[way] for way in Way)
    stubborn = dict.fromkeys(Way, 0.1) | {rng.choice(REFUSALS): 10.0}
    return Nature(
        dedupes_s=rng.choice((None, None, *WINDOWS_S)),
        lookup=rng.choice(tuple(Lookup)),
        odds=odds,
        again=tuple(stubborn[way] for way in Way) if rng.random() < 0.4 else odds,
        lookup_fails=rng.choice((0.0, 0.0, 0.3)),
        takes_s=rng.choice((0.0, 0.0, 0.5, 3.0)),
    )


class StrangeVendor(MemoryVendor):
    """A vendor of one nature, until it is told to be `calm`."""

    def __init__(self, name: str, nature: Nature, rng: random.Random, seen: Counter[str], clock: Clock) -> None:
        super().__init__(
            clock=clock,
            name=name,
            dedupes_by_key=None if nature.dedupes_s is None else timedelta(seconds=nature.dedupes_s),
            lookup=nature.lookup,
        )
        self.nature, self.calm = nature, False
        self.note: Callable[[str], None] = lambda text: None
        self._rng, self._seen = rng, seen
        self._coming: list[tuple[datetime, Effect, str | None]] = []
        self._opened: set[str | None] = set()
        seen[f"vendor:{name}:{'dedupes' if nature.dedupes_s else 'no_key'}:{nature.lookup}"] += 1

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        """One request, treated in a drawn way."""
        if isinstance(request, Call):
            return self._asked()
        self.requests += 1
        if self.nature.takes_s and not self.calm:
            self._clock.sleep(self._rng.uniform(0, self.nature.takes_s))
        self._arrive()
        odds = self.nature.again if key in self._opened else self.nature.odds
        way = Way.ACCEPTED if self.calm else self._rng.choices(tuple(Way), odds)[0]
        self._seen[f"answer:{way}:{'again' if key in self._opened else 'first'}"] += 1
        if way.opens:
            self._opened.add(key)
        answer = self._answer(way, request, key, timeout_s)
        self.note(f"{self.name} treats {request.action} {request.target} ({(key or '')[:8]}) as {way}")
        return answer

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        """What it knows, unless the look-up itself fails."""
        self._arrive()
        if not self.calm and self._rng.random() < self.nature.lookup_fails:
            answer: LookupAnswer = NoAnswer("500")
        else:
            answer = super().look_up(key, timeout_s=timeout_s)
        word = {Found: "found", Absent: "absent", NoAnswer: "no_answer"}[type(answer)]
        self._seen[f"look_up:{word}"] += 1
        self.note(f"{self.name} is asked for {key[:8]}: {word}")
        return answer

    def has(self, key: str) -> str | None:
        """What a person at the vendor's own desk sees: the id of what it accepted under a key."""
        self._arrive()
        known = self._by_key.get(key)
        return known[0].vendor_id if known else None

    def _answer(self, way: Way, request: Effect, key: str | None, timeout_s: float) -> Answer:
        if way is Way.ACCEPTED:
            return Accepted(self._accept(request, key).vendor_id)
        if way in (Way.ACCEPTED_LOST, Way.ACCEPTED_5XX):
            self._accept(request, key)
        if way is Way.LATE:
            at = self._clock.now() + timedelta(seconds=self._rng.uniform(timeout_s, LATEST_S))
            self._coming.append((at, request, key))
        if way is Way.LIMITED_UNTIL:
            return Refused("429", retry_after_s=self._rng.choice((1.0, 30.0, 400.0)))
        return ANSWERS[way]

    def _asked(self) -> Answer:
        self.calls += 1
        dice = 1.0 if self.calm else self._rng.random()
        if dice < 0.04:
            return Unknown("500")
        if dice < 0.07:
            return Refused("429", retry_after_s=2.0)
        return Accepted(f"call-{self.calls}", Sensitive({"number": self._rng.randrange(6)}))

    def _arrive(self) -> None:
        now = self._clock.now()
        for one in sorted((one for one in self._coming if one[0] <= now), key=lambda one: one[0]):
            self._coming.remove(one)
            self._accept(one[1], one[2], one[0])
            self.note(f"{self.name} has taken {one[1].target} ({(one[2] or '')[:8]}) late")
