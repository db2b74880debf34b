"""Use: what the calls of one environment used of an account, and what no write has told the account of that yet."""

from __future__ import annotations

from shared.core.effects import Accepted, Answer, Refused
from shared.core.rate import SECOND
from shared.usecases.permit import Permit

OWED_CALLS = 3
"""What so many calls are charged with, one environment may owe an account, or be owed, until it takes from it again."""


class Use:
    """Tokens and time of calls. Not locked by itself."""

    def __init__(self) -> None:
        self.tokens = 0.0
        """Of a usual call."""
        self.newest = 0
        """Tokens of the newest call that told them."""
        self.call_us = SECOND
        """How long a usual call takes."""
        self._charged, self._owed = 0, 0
        """What the newest call was charged with, and the tokens used beyond all charges; negative: less was used."""

    def expect(self, tokens: int) -> None:
        """An estimate, for as long as nothing is known."""
        self.tokens = self.tokens or float(tokens)

    def heard(self, permit: Permit, answer: Answer, now_us: int) -> None:
        """The answer tells the use. A refused call used no tokens; one that met the limit keeps its charge, since what
        it was charged with is over when the quiet is: given back then, it would let a call out before its moment. A
        probe was let through without a charge."""
        accepted = isinstance(answer, Accepted)
        used = answer.report.tokens_used
        if used is None:
            free = isinstance(answer, Refused) and not answer.rate_limited
            used = 0 if free else permit.tokens
        self._charged = permit.tokens
        self._owed += used - permit.tokens if not permit.probe else used if accepted else 0
        if not accepted:
            return
        self.call_us += (max(0, now_us - permit.sent_us) - self.call_us) // 8
        if used:
            self.tokens += (used - self.tokens) / 8 if self.tokens else used
            self.newest = used

    def settling(self, tokens: int, most: float | None) -> int:
        """How much more or less than `tokens` the next take is charged: never so much that it would not fit into a
        minute of `most`."""
        room = self._owed if most is None else max(0, int(most) - tokens)
        return max(-tokens, min(self._owed, room))

    def settled(self, tokens: int) -> None:
        """So much of it was charged."""
        self._owed -= tokens

    def told(self) -> int:
        """All that is owed, which the caller tells the account now."""
        owed, self._owed = self._owed, 0
        return owed

    @property
    def owes(self) -> bool:
        """True when it is too much to wait for the next take."""
        return abs(self._owed) > OWED_CALLS * self._charged
