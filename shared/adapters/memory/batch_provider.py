"""A batch provider in memory, on virtual time: does as it is told, and keeps a record of what it was paid for."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from shared.core.batch import (
    Answered,
    Declined,
    NotTaken,
    NoWord,
    Over,
    Progress,
    Request,
    ResultLine,
    Submission,
    Taken,
    UnderWay,
    Unreadable,
    Vanished,
)
from shared.core.errors import BadInput, Unavailable
from shared.core.ports import Clock
from shared.core.sensitive import Sensitive

TOKEN_LIMIT = "token_limit_exceeded"


class SubmitSays(StrEnum):
    """What becomes of the next submission."""

    TAKE = "take"
    LOSE_BEFORE = "lose_before"
    """Not taken, and the client cannot tell."""
    LOSE_AFTER = "lose_after"
    """Taken, and the client cannot tell."""
    REFUSE_RATE = "refuse_429"
    REFUSE_TOKENS = "refuse_token_limit"
    REFUSE_AUTH = "refuse_401"
    REFUSE_PERMANENT = "refuse_400"


class LineSays(StrEnum):
    """What a request's line in the result file is like. The work is done and paid for, unless it is refused."""

    ANSWER = "answer"
    CUT = "cut"
    REFUSED = "refused"
    """For good."""
    RATE = "rate_limited"
    ERROR = "server_error"
    EXPIRED = "expired"
    MISSING = "missing"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    MALFORMED = "malformed"
    NAMELESS = "nameless"
    """Malformed, and not even its id can be read."""


UNPAID = (LineSays.REFUSED, LineSays.RATE, LineSays.ERROR, LineSays.EXPIRED)
_REFUSALS: Mapping[SubmitSays, Submission] = {
    SubmitSays.LOSE_BEFORE: NoWord("timeout"),
    SubmitSays.REFUSE_RATE: NotTaken("429", limited=True, retry_after_s=30.0),
    SubmitSays.REFUSE_TOKENS: NotTaken(TOKEN_LIMIT, limited=True),
    SubmitSays.REFUSE_AUTH: NotTaken("401", auth=True),
    SubmitSays.REFUSE_PERMANENT: NotTaken("400", permanent=True),
}


def _rewrite(request: Request) -> str:
    return f"rewritten {request.custom_id}"


@dataclass(slots=True, kw_only=True)
class Behaviour:
    """How its batches go from now on; the next one that is taken keeps what stands here."""

    takes_s: float = 0.0
    """From the first request to the last; they are done one after the other."""
    expires_s: float = 86_400.0
    listed_after_s: float = 0.0
    """How long it cannot be found by its tag yet."""
    fails_with: str = ""
    """A code: the batch as a whole fails while it is looked at."""
    enqueued_tokens: int | None = None
    """What all batches under way may hold; one that does not fit fails with `token_limit_exceeded`."""
    lines: Mapping[str, LineSays] = field(default_factory=dict)
    """By custom id; an answer where there is none."""
    unknown_lines: int = 0
    """Lines nobody asked for."""
    in_order: bool = False
    answer: Callable[[Request], str] = _rewrite


@dataclass(slots=True, kw_only=True)
class KeptBatch:
    """One batch as the provider has it."""

    provider_id: str
    tag: str
    requests: tuple[Request, ...]
    taken_at: datetime
    does: Behaviour
    fails_with: str = ""
    stopped_at: datetime | None = None
    vanished: bool = False

    @property
    def tokens(self) -> int:
        """All that it may use."""
        return sum(request.prompt.tokens for request in self.requests)

    def listed(self, now: datetime) -> bool:
        """It can be found."""
        return not self.vanished and now >= self.taken_at + timedelta(seconds=self.does.listed_after_s)

    def says(self, request: Request) -> LineSays:
        """What one of its lines is like."""
        return self.does.lines.get(request.custom_id, LineSays.ANSWER)

    def done(self, now: datetime) -> int:
        """How many of its requests were worked on by then."""
        if self.fails_with:
            return 0
        ends = self.taken_at + timedelta(seconds=self.does.expires_s)
        passed_s = (min(now, ends, self.stopped_at or ends) - self.taken_at).total_seconds()
        total, takes_s = len(self.requests), self.does.takes_s
        return total if passed_s >= takes_s else int(total * passed_s / takes_s)

    def status(self, now: datetime) -> str:
        """Where it stands, in the port's words."""
        if self.fails_with:
            return "failed"
        if self.stopped_at is not None:
            return "cancelled"
        done = self.done(now)
        if done == len(self.requests):
            return "completed"
        if now >= self.taken_at + timedelta(seconds=self.does.expires_s):
            return "expired"
        return "in_progress" if done else "validating"

    def under_way(self, now: datetime) -> bool:
        """It holds its tokens until it ends."""
        return self.status(now) in ("validating", "in_progress")

    def lines(self, now: datetime) -> tuple[list[ResultLine], list[ResultLine]]:
        """Its two files: answers and refusals."""
        output: list[ResultLine] = [
            Answered(custom_id=f"nobody-{number}.1", text=Sensitive("unasked"))
            for number in range(self.does.unknown_lines)
        ]
        errors: list[ResultLine] = []
        done = self.done(now)
        for place, request in enumerate(self.requests):
            if place < done:
                file = errors if self.says(request) in UNPAID else output
                file += self._lines(request)
            elif self.stopped_at is None:
                # Not begun: an expired batch says so line by line, a cancelled one says nothing.
                errors.append(_expired(request))
        return (output, errors) if self.does.in_order else (output[::-1], errors[::-1])

    def _lines(self, request: Request) -> list[ResultLine]:
        name, says = request.custom_id, self.says(request)
        words = self.does.answer(request)
        good = Answered(custom_id=name, text=Sensitive(words), tokens=request.prompt.tokens, cut=says is LineSays.CUT)
        match says:
            case LineSays.REFUSED:
                return [Declined(custom_id=name, reason="400", permanent=True)]
            case LineSays.RATE:
                return [Declined(custom_id=name, reason="rate_limit_exceeded", limited=True)]
            case LineSays.ERROR:
                return [Declined(custom_id=name, reason="500")]
            case LineSays.EXPIRED:
                return [_expired(request)]
            case LineSays.DUPLICATE:
                return [good, good]
            case LineSays.CONFLICT:
                return [good, Answered(custom_id=name, text=Sensitive(f"not {words}"), tokens=request.prompt.tokens)]
            case LineSays.MALFORMED:
                return [Unreadable(custom_id=name)]
            case LineSays.NAMELESS:
                return [Unreadable()]
            case LineSays.MISSING:
                return []
        return [good]


class MemoryBatchProvider:
    """The BatchProvider port. `submits`, `finds`, `looks` and `reads` script the next answers of each method."""

    def __init__(
        self, *, clock: Clock, name: str = "openai", most_lines: int = 50_000, most_bytes: int = 200_000_000
    ) -> None:
        self.name, self.most_lines, self.most_bytes = name, most_lines, most_bytes
        self.does = Behaviour()
        self.submits: deque[SubmitSays] = deque()
        self.finds: deque[NoWord] = deque()
        self.looks: deque[Progress] = deque()
        self.reads: deque[Unavailable | BadInput] = deque()
        self.batches: dict[str, KeptBatch] = {}
        self.asked: Counter[str] = Counter()
        """Calls by method."""
        self._clock = clock
        self._lock = threading.RLock()

    # ------------------------------------------------------------------------------------------------- the port
    def submit(self, tag: str, requests: Sequence[Request], *, timeout_s: float) -> Submission:
        """One submission, one answer."""
        if not 0 < len(requests) <= self.most_lines:
            return NotTaken("too_many_lines" if requests else "no_lines", permanent=True)
        if sum(_size(request) for request in requests) > self.most_bytes:
            return NotTaken("too_large", permanent=True)
        with self._lock:
            self.asked["submit"] += 1
            says = self.submits.popleft() if self.submits else SubmitSays.TAKE
            if says in _REFUSALS:
                return _REFUSALS[says]
            provider_id = f"{self.name}-batch-{len(self.batches) + 1}"
            batch = KeptBatch(
                provider_id=provider_id,
                tag=tag,
                requests=tuple(requests),
                taken_at=self._clock.now(),
                does=replace(self.does),
                fails_with=self.does.fails_with,
            )
            most = self.does.enqueued_tokens
            if not batch.fails_with and most is not None and self.enqueued() + batch.tokens > most:
                batch.fails_with = TOKEN_LIMIT
            self.batches[provider_id] = batch
            return NoWord("timeout") if says is SubmitSays.LOSE_AFTER else Taken(provider_id)

    def find(self, tag: str, *, timeout_s: float, since: datetime | None = None) -> list[str] | NoWord:
        """Those that carry the tag."""
        with self._lock:
            self.asked["find"] += 1
            if self.finds:
                return self.finds.popleft()
            now = self._clock.now()
            return [batch.provider_id for batch in self.tagged(tag) if batch.listed(now)]

    def progress(self, provider_id: str, *, timeout_s: float) -> Progress:
        """How far it is now."""
        with self._lock:
            self.asked["progress"] += 1
            if self.looks:
                return self.looks.popleft()
            batch = self.batches.get(provider_id)
            return Vanished() if batch is None or batch.vanished else self._look(batch)

    def results(self, over: Over, *, timeout_s: float) -> Iterator[ResultLine]:
        """Every line, as it was told to be."""
        with self._lock:
            self.asked["results"] += 1
            if self.reads:
                raise self.reads.popleft()
            files = [name.rpartition("/") for name in (over.output, over.errors) if name is not None]
            if any(name not in self.batches for name, _, _ in files):
                raise Unavailable("result file", "404")
            now = self._clock.now()
            lines = [line for name, _, kind in files for line in self.batches[name].lines(now)[kind == "errors"]]
        yield from lines

    def cancel(self, provider_id: str, *, timeout_s: float) -> None:
        """Stop it where it is."""
        with self._lock:
            self.asked["cancel"] += 1
            batch = self.batches.get(provider_id)
            if batch is not None and batch.under_way(self._clock.now()):
                batch.stopped_at = self._clock.now()

    # ---------------------------------------------------------------------------------------------- the back door
    def tagged(self, tag: str) -> list[KeptBatch]:
        """The batches under a tag; more than one is work paid for twice."""
        return [batch for batch in self.batches.values() if batch.tag == tag]

    def paid(self) -> Counter[str]:
        """How often each request was worked on so far, by its custom id."""
        found: Counter[str] = Counter()
        for batch in self.batches.values():
            done = batch.requests[: batch.done(self._clock.now())]
            found.update(each.custom_id for each in done if batch.says(each) not in UNPAID)
        return found

    def enqueued(self) -> int:
        """The tokens of all batches under way."""
        now = self._clock.now()
        return sum(batch.tokens for batch in self.batches.values() if batch.under_way(now))

    def vanish(self, provider_id: str) -> None:
        """Forget a batch, as far as anybody who asks can tell."""
        self.batches[provider_id].vanished = True

    def _look(self, batch: KeptBatch) -> UnderWay | Over:
        now = self._clock.now()
        status, done = batch.status(now), batch.done(now)
        if status in ("validating", "in_progress"):
            return UnderWay(status, done=done, total=len(batch.requests))
        if status == "failed":
            return Over(status=status, reason=batch.fails_with, limited=batch.fails_with == TOKEN_LIMIT)
        output, errors = batch.lines(now)
        return Over(
            status=status,
            output=f"{batch.provider_id}/output" if output else None,
            errors=f"{batch.provider_id}/errors" if errors else None,
        )


def _expired(request: Request) -> Declined:
    return Declined(custom_id=request.custom_id, reason="batch_expired", expired=True)


def _size(request: Request) -> int:
    """About what a line of it would take; the text itself is not looked at."""
    return len(request.custom_id) + len(request.prompt.instructions) + 4 * request.prompt.tokens
