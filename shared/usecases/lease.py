"""Lease: the permits that one environment holds, for as long as its account's burst lasts."""

from __future__ import annotations

from shared.core.rate import SECOND, Want


class Lease:
    """Requests and tokens in hand, and until when. Not locked by itself."""

    def __init__(self, lasts_us: int) -> None:
        self._lasts_us = lasts_us
        self._requests, self._tokens, self._until_us = 0, 0, 0
        self.at_us = 0
        """By when all of it may be spent; the calls before the last one earlier, each by the time of those after it."""

    def alive(self, now_us: int) -> bool:
        """True while its permits may be spent."""
        return now_us < self._until_us

    def add(self, requests: int, tokens: int, now_us: int, at_us: int) -> None:
        """More was taken, for up to `at_us`: all that is in hand and still good lives on from then."""
        alive = self.alive(now_us)
        self._requests = requests + (self._requests if alive else 0)
        self._tokens = tokens + (self._tokens if alive else 0)
        self.at_us = at_us
        self._until_us = max(now_us, at_us) + self._lasts_us

    def has(self, want: Want, now_us: int, *, tokens: bool) -> bool:
        """True when it covers a request; `tokens`: somebody counts them."""
        return self.alive(now_us) and self._requests >= want.requests and (self._tokens >= want.tokens or not tokens)

    def short_of(self, want: Want, now_us: int) -> Want:
        """What it lacks for a request."""
        if not self.alive(now_us):
            return want
        return Want(requests=max(0, want.requests - self._requests), tokens=max(0, want.tokens - self._tokens))

    def rest(self, want: Want) -> Want:
        """What is left after a request."""
        return Want(requests=max(0, self._requests - want.requests), tokens=max(0, self._tokens - want.tokens))

    def spend(self, requests: int, tokens: int) -> None:
        """A call goes out; or an answer tells that it used less (a negative amount)."""
        self._requests -= requests
        self._tokens -= tokens

    def restore(self, requests: int, tokens: int) -> None:
        """What was not used comes back. A lease that was voided meanwhile takes nothing: quiet is quiet."""
        if self._until_us:
            self._requests += requests
            self._tokens += tokens

    def void(self) -> None:
        """Trouble: nothing of it may be spent any more."""
        self._requests = self._tokens = self._until_us = self.at_us = 0

    def unused(self, mean_tokens: float) -> bool:
        """True when it holds anything worth returning."""
        return self._requests > 0 or self._tokens > mean_tokens / 4

    def outlived_by(self, demand: float, now_us: int) -> bool:
        """True when so many calls a second will use it up in its time."""
        return self._requests > 0 and demand * max(0, self._until_us - now_us) / SECOND >= self._requests

    def emptied(self) -> Want:
        """All that it held; it holds nothing any more."""
        held = Want(requests=max(0, self._requests), tokens=self._tokens)
        self._requests = self._tokens = 0
        return held
