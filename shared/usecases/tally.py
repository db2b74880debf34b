"""Tally: what happens in a batch, counted while it runs and written once when it is over."""

from __future__ import annotations

import threading
from datetime import datetime

from shared.core.effects import Accepted, Answer, Refused, Unknown
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.outcome import Fail, Outcome, Retry
from shared.core.ports import Clock, SignalLedger, Telemetry
from shared.core.signals import Counts, VendorCounts


class Tally:
    """What one environment has seen since it last wrote it. Safe for the threads of a batch."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._lock = threading.Lock()

    def claimed(self, job: Job, now: datetime) -> None:
        """A job is started; how long it was due tells how far behind the lane is."""
        self._add(Counts(claims=1, oldest_age_s=max(0, int((now - job.runnable_at).total_seconds()))))

    def settled(self, after: Job, outcome: Outcome) -> None:
        """An attempt is over."""
        self._add(
            Counts(
                completed=after.status is Status.COMPLETED,
                failed=after.status is Status.FAILED,
                errors=isinstance(outcome, Retry | Fail),
            )
        )

    def recovered(self, after: Job) -> None:
        """A dead worker's job was taken back: it may have failed by that."""
        self._add(Counts(failed=after.status is Status.FAILED, errors=1))

    def died(self, jobs: int) -> None:
        """So many jobs failed that no worker held."""
        self._add(Counts(failed=jobs))

    def broke(self) -> None:
        """A message's handling ended in an error that nobody expected."""
        self._add(Counts(errors=1))

    def heard(self, vendor: str, answer: Answer) -> None:
        """A vendor answered a call or an effect, or did not. What never left this machine says nothing of it."""
        if isinstance(answer, Refused) and answer.unsent:
            return
        limited = isinstance(answer, Refused) and answer.rate_limited
        down = isinstance(answer, Unknown) or (isinstance(answer, Refused) and (answer.unreachable or answer.auth))
        tokens = answer.report.tokens_used or 0 if isinstance(answer, Accepted) else 0
        self._add(Counts(vendors={vendor: VendorCounts(calls=1, limited=limited, errors=down, tokens=tokens)}))

    def take(self) -> Counts:
        """Everything since the last time; it is not told again."""
        with self._lock:
            counts, self._counts = self._counts, Counts()
        return counts

    def _add(self, more: Counts) -> None:
        with self._lock:
            self._counts += more


def write_tally(
    tally: Tally, *, lane: LaneSpec, signals: SignalLedger | None, clock: Clock, telemetry: Telemetry
) -> None:
    """One write for all that was counted. Never raises: a batch is not undone because nobody could be told of it."""
    counts = tally.take()
    if signals is None or counts.nothing:
        return
    try:
        signals.add(lane.name, clock.now(), counts, minute_s=lane.minute_s)
    except Exception as exc:
        telemetry.error("signals_unwritten", exc, lane=lane.name)
