"""The batches of one account: what it took, how far each is at a given moment, and what was paid for.

Nothing here reads a clock: where a batch stands follows from the time it is asked at.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ops.vendors.batch_config import UNPAID, BatchConfig, LineFault

ENDED = ("completed", "failed", "expired", "cancelled")
TOKEN_LIMIT = "token_limit_exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One request of a batch. Its answer is made when somebody reads the results."""

    custom_id: str
    tokens: int
    answer: Callable[[datetime], Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a line: an answer, unless there is a fault."""

    line: Line
    fault: LineFault | None = None


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch that was taken; `source` is the file or the request it came in."""

    batch_id: str
    tag: str
    lines: Sequence[Line]
    taken_at: datetime
    config: BatchConfig
    seed: int
    source: str = ""
    endpoint: str = ""
    code: str = ""
    """Why it failed as a whole."""
    cancelled_at: datetime | None = None
    _last: list[Outcome] | None = None
    """What it ended with; it does not change any more."""

    @property
    def tokens(self) -> int:
        """What it holds of the account's limit until it ends."""
        return sum(line.tokens for line in self.lines)

    def at(self, seconds: float) -> datetime:
        """So long after it was taken."""
        return self.taken_at + timedelta(seconds=seconds)

    def vanished(self, now: datetime) -> bool:
        """Nobody knows it any more."""
        return self.config.vanishes_s is not None and now >= self.at(self.config.vanishes_s)

    def status(self, now: datetime) -> str:
        """Where it stands, in the words of the OpenAI API."""
        config, validated = self.config, self.config.validating_s
        if self.cancelled_at is not None and now >= self.cancelled_at:
            stopped = now >= self.cancelled_at + timedelta(seconds=config.cancelling_s)
            return "cancelled" if stopped else "cancelling"
        if now < self.at(validated):
            return "validating"
        if self.code:
            return "failed"
        worked = validated + config.takes_s
        if now >= self.at(config.expires_s) and worked > config.expires_s:
            return "expired"
        if now < self.at(worked):
            return "in_progress"
        return "finalizing" if now < self.at(worked + config.finalizing_s) else "completed"

    def done(self, now: datetime) -> int:
        """How many of its lines were worked on by then."""
        if self.code:
            return 0
        until = min(now, self.at(self.config.expires_s), self.cancelled_at or now)
        passed_s = (until - self.at(self.config.validating_s)).total_seconds()
        if passed_s >= self.config.takes_s:
            return len(self.lines)
        return max(0, int(len(self.lines) * passed_s / self.config.takes_s))

    def outcomes(self, now: datetime) -> list[Outcome]:
        """What there is to read of it: in no order that means anything, unless it is told to keep one."""
        if self._last is not None:
            return self._last
        done, status = self.done(now), self.status(now)
        found = [Outcome(line=line, fault=self._fault(line)) for line in self.lines[:done]]
        if status == "expired":
            found += [Outcome(line=line, fault=LineFault.EXPIRED) for line in self.lines[done:]]
        if not self.config.in_order:
            found.sort(key=lambda outcome: self._digest("order", outcome.line.custom_id))
        self._last = found if status in ENDED else None
        return found

    def paid(self, now: datetime) -> list[str]:
        """The custom ids that were worked on, whether a line tells of it or not."""
        done = self.lines[: self.done(now)]
        return [line.custom_id for line in done if self._fault(line) not in UNPAID]

    def _fault(self, line: Line) -> LineFault | None:
        if line.custom_id in self.config.line_faults:
            return self.config.line_faults[line.custom_id]
        drawn = int(self._digest("line", line.custom_id)[:13], 16) / 16**13
        for fault, share in self.config.line_shares.items():
            if drawn < share:
                return fault
            drawn -= share
        return None

    def _digest(self, purpose: str, name: str) -> str:
        return hashlib.sha256(f"{self.seed}|{purpose}|{self.tag}|{name}".encode()).hexdigest()


@dataclass(slots=True)
class BatchDesk:
    """What one account keeps: files that were uploaded, batches that were taken, in order."""

    seed: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Batch] = field(default_factory=dict)

    def take(
        self,
        *,
        batch_id: str,
        tag: str,
        lines: Sequence[Line],
        now: datetime,
        config: BatchConfig,
        source: str = "",
        endpoint: str = "",
        code: str = "",
    ) -> Batch | None:
        """A new batch, which may fail at once; none where the account's token limit is told right away."""
        batch = Batch(
            batch_id=batch_id,
            tag=tag,
            lines=tuple(lines),
            taken_at=now,
            config=config,
            seed=self.seed,
            source=source,
            endpoint=endpoint,
            code=code or config.fails_with,
        )
        if config.enqueued_tokens is not None and self.enqueued(now) + batch.tokens > config.enqueued_tokens:
            if config.tokens_refused == "at_once":
                return None
            batch.code = batch.code or TOKEN_LIMIT
        self.batches[batch_id] = batch
        return batch

    def enqueued(self, now: datetime) -> int:
        """The tokens of all batches under way."""
        return sum(batch.tokens for batch in self.batches.values() if batch.status(now) not in ENDED and not batch.code)

    def get(self, batch_id: str, now: datetime) -> Batch | None:
        """The batch, unless it vanished."""
        batch = self.batches.get(batch_id)
        return None if batch is None or batch.vanished(now) else batch

    def known(self, now: datetime) -> list[Batch]:
        """Every batch that a list shows, oldest first."""
        listed = [batch for batch in self.batches.values() if now >= batch.at(batch.config.listed_after_s)]
        return [batch for batch in listed if not batch.vanished(now)]

    def cancel(self, batch: Batch, now: datetime) -> None:
        """Stop it where it is; one that has ended stays as it is."""
        if batch.status(now) not in (*ENDED, "cancelling"):
            batch.cancelled_at = now

    def report(self, now: datetime, tag: str = "") -> dict[str, object]:
        """For whoever tests: the batches, by tag where one is named, and how often each line was paid for."""
        asked = [batch for batch in self.batches.values() if not tag or batch.tag == tag]
        paid = Counter(name for batch in asked for name in batch.paid(now))
        return {
            "batches": [
                {
                    "id": batch.batch_id,
                    "tag": batch.tag,
                    "status": "vanished" if batch.vanished(now) else batch.status(now),
                    "at": batch.taken_at.isoformat(),
                    "custom_ids": [line.custom_id for line in batch.lines],
                    "tokens": batch.tokens,
                }
                for batch in asked
            ],
            "paid": dict(paid),
            "files": len(self.files),
            "enqueued_tokens": self.enqueued(now),
        }
