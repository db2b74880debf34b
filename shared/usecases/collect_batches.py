"""Collect: each line of a batch ends its own job; what has no end goes back, and only that is submitted again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from shared.contract import names
from shared.core import lifecycle
from shared.core.batch import (
    Answered,
    Batch,
    BatchState,
    Declined,
    LineFault,
    Member,
    NoWord,
    Over,
    UnderWay,
    Vanished,
    judge,
)
from shared.core.errors import BadInput, Unavailable
from shared.core.job import Category, Job, Status
from shared.core.lane import run_of
from shared.core.outcome import Done, Fail, is_code
from shared.core.ports import ContentStore, SignalLedger
from shared.core.sensitive import Sensitive
from shared.core.signals import Counts, VendorCounts
from shared.usecases.deadline import Deadline
from shared.usecases.keep_batches import ASK_S, BatchKeeper
from shared.usecases.persist import persist
from shared.usecases.take_run import RunCounts

LOST_S = 48 * 3600
"""Results that cannot be read so long after the submission are gone; a provider takes a day at most."""
UNSEEN = "unseen_once"
FORGOTTEN_S = 600
"""A batch that its provider does not know so long after it was submitted is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """What a collecting run works with."""

    keeper: BatchKeeper
    content: ContentStore
    accept: Callable[[Sensitive[str]], bytes | None]
    """What of an answer is kept, as stored; None for an answer that is none."""
    result: str
    """How a job that was answered ends, in a word; also the name under which its answer is kept."""
    signals: SignalLedger | None = None
    """Where what was paid for is told, once a run."""

    def run(self, run_id: str, deadline: Deadline) -> dict[str, int]:
        """The counts of one run: every batch that has not ended is looked at, oldest first, while there is time."""
        counts, keeper = RunCounts(), self.keeper
        silent: set[str] = set()
        batches = keeper.under_way()
        keeper.keep_holds(batches)
        for batch in batches:
            if deadline.remaining_s <= ASK_S:
                counts.add("out_of_time")
                break
            counts.add("batches")
            if batch.group.provider not in silent:
                silent |= keeper.silent_after(lambda: self._go_on(batch, deadline, counts), batch, counts)  # noqa: B023
        self._tell(counts)
        return counts.plain(run_of(keeper.lane))

    def _tell(self, counts: RunCounts) -> None:
        """What the answers of this run cost, for whoever watches the lane's spending. One write."""
        if self.signals is None:
            return
        keeper, totals = self.keeper, counts.totals
        vendors = {
            provider: VendorCounts(calls=totals[f"{provider}.answers"], tokens=totals[f"{provider}.tokens"])
            for provider in keeper.providers
            if totals[f"{provider}.answers"]
        }
        told = Counts(completed=totals["succeeded"], failed=totals["failed"], vendors=vendors)
        if told.nothing:
            return
        try:
            self.signals.add(keeper.lane.name, keeper.clock.now(), told, minute_s=keeper.lane.minute_s)
        except Unavailable as exc:
            keeper.telemetry.error("signals_unwritten", exc, lane=keeper.lane.name)

    def _go_on(self, batch: Batch, deadline: Deadline, counts: RunCounts) -> None:
        ready = self.keeper.resume(batch, counts)
        if ready is not None and ready.state is BatchState.HANDED:
            self._look(ready, deadline, counts)

    def _look(self, batch: Batch, deadline: Deadline, counts: RunCounts) -> None:
        keeper = self.keeper
        provider = keeper.providers.get(batch.group.provider)
        if provider is None or batch.provider_id is None:
            keeper.telemetry.event("provider_missing", tag=batch.tag, provider=batch.group.provider)
            return
        progress = provider.progress(batch.provider_id, timeout_s=ASK_S)
        match progress:
            case UnderWay():
                counts.add("batches_under_way")
            case NoWord(reason=reason):
                counts.add("batches_unknown")
                keeper.telemetry.event("batch_unanswered", tag=batch.tag, reason=reason)
            case Vanished():
                since = batch.submitted_at or batch.intent_at
                if keeper.clock.now() < since + timedelta(seconds=FORGOTTEN_S):
                    return
                counts.add("batches_vanished")
                if batch.ending != UNSEEN:
                    # Once may be a mistake of theirs, and what is paid for is not asked for again lightly.
                    keeper.note(batch, UNSEEN)
                    return
                self._end_all(batch, "batch_vanished", deadline, counts)
            case Over():
                self._collect(batch, progress, deadline, counts)

    def _collect(self, batch: Batch, over: Over, deadline: Deadline, counts: RunCounts) -> None:
        keeper = self.keeper
        provider = keeper.providers[batch.group.provider]
        members = keeper.members(batch)
        try:
            if over.status == "completed" and over.output is None and over.errors is None:
                raise Unavailable("result files", "not_named")
            verdict = judge(members, provider.results(over, timeout_s=ASK_S))
        except Unavailable as exc:
            counts.add("results_unavailable")
            keeper.telemetry.error("results_unavailable", exc, tag=batch.tag)
            if keeper.clock.now() >= (batch.submitted_at or batch.intent_at) + timedelta(seconds=LOST_S):
                self._end_all(batch, "results_lost", deadline, counts)
            # Else its files stay where they are: the next run reads them.
            return
        except BadInput as exc:
            counts.add("results_unreadable")
            keeper.telemetry.error("results_unreadable", exc, tag=batch.tag)
            self._end_all(batch, "results_unreadable", deadline, counts)
            return
        for fault, count in verdict.faults.items():
            counts.add(fault.value, count)
            keeper.telemetry.event("batch_lines", tag=batch.tag, fault=fault.value, count=count)
        if over.status == "failed":
            keeper.telemetry.event("batch_failed", tag=batch.tag, reason=over.reason)
        if over.limited:
            counts.add("rate_limited")
        for member in members:
            if deadline.remaining_s <= 0:
                # Who has an end keeps it; the next run reads the files again and goes on with the rest.
                counts.add("out_of_time")
                return
            given = verdict.lines[member.custom_id]
            if over.status == "failed" and given is LineFault.MISSING:
                reason = f"batch_failed:{over.reason or 'unknown'}"
                self._end(member, reason, batch, counts, overflows=over.limited)
            else:
                self._end(member, given, batch, counts)
        keeper.end(batch, over.status)

    def _end_all(self, batch: Batch, reason: str, deadline: Deadline, counts: RunCounts) -> None:
        for member in self.keeper.members(batch):
            if deadline.remaining_s <= 0:
                counts.add("out_of_time")
                return
            self._end(member, reason, batch, counts)
        self.keeper.end(batch, reason)

    def _end(
        self,
        member: Member,
        given: Answered | Declined | LineFault | str,
        batch: Batch,
        counts: RunCounts,
        *,
        overflows: bool = False,
    ) -> None:
        """One job's end, by its own line."""
        keeper = self.keeper
        job = keeper.row(member, Status.BATCH_SUBMITTED)
        if job is None:
            if isinstance(given, Answered) and self._left(member):
                counts.add(LineFault.LATE.value)
            return
        after = self._after(job, given, overflows=overflows)
        if isinstance(given, Declined) and (given.limited or given.auth):
            counts.add("rate_limited" if given.limited else "refused_lines")
        if keeper.move(job, after):
            keeper.count(after, counts, batch)
            if isinstance(given, Answered):
                # Cut off or not, it was paid for; a provider that does not say is believed to have used the estimate.
                used = given.tokens if given.tokens is not None else batch.tokens // max(1, batch.count)
                counts.add(f"{batch.group.provider}.answers")
                counts.add(f"{batch.group.provider}.tokens", used)

    def _after(self, job: Job, given: Answered | Declined | LineFault | str, *, overflows: bool) -> Job:
        lane, now = self.keeper.lane, self.keeper.clock.now()
        if overflows:
            # Nothing is wrong with it, and nothing was paid for: it waits for room.
            until = now + timedelta(seconds=run_of(lane).overflow_backoff_seconds)
            return lifecycle.overflowed(job, until, "overflow:batch", now)
        match given:
            case Answered(text=text, cut=cut):
                kept = None if cut else self._accepted(text)
                if kept is None:
                    return lifecycle.sent_back(job, "answer_cut" if cut else "answer_invalid", lane, now)
                ref = f"{names.RESULTS}{job.job_id}/{self.result}"
                # The text first: a job that says it is done has its answer.
                persist(lambda: self.content.put(ref, kept), self.keeper.clock)
                return lifecycle.settled(job, Done(self.result, ref), lane, now)
            case Declined(reason=reason, permanent=True):
                return lifecycle.settled(job, Fail(Category.VENDOR_PERMANENT, _code("vendor", reason)), lane, now)
            case Declined(limited=limited, auth=auth) if limited or auth:
                # Nothing is wrong with the job: it waits, and has all its tries.
                until = now + timedelta(seconds=run_of(lane).overflow_backoff_seconds if limited else lane.backoff_s[0])
                return lifecycle.overflowed(job, until, "limited:line" if limited else "auth:line", now)
            case Declined(reason=reason, expired=expired):
                error = LineFault.EXPIRED.value if expired else _code("vendor", reason)
                return lifecycle.sent_back(job, error, lane, now)
            case LineFault():
                return lifecycle.sent_back(job, given.value, lane, now)
            case str():
                return lifecycle.sent_back(job, _code("", given), lane, now)

    def _accepted(self, text: Sensitive[str]) -> bytes | None:
        try:
            return self.accept(text)
        except Exception as exc:
            # One strange answer must not keep its neighbours from theirs.
            self.keeper.telemetry.error("answer_not_accepted", exc)
            return None

    def _left(self, member: Member) -> bool:
        """True when the job is no longer this batch's: it was withdrawn, or went another way."""
        job = self.keeper.read(member)
        return job is None or job.fence != member.fence or job.status is not Status.COMPLETED


def _code(kind: str, reason: str) -> str:
    """A reason as a row may keep it."""
    said = f"{kind}:{reason}" if kind else reason
    return said[:96] if is_code(said[:96]) else f"{kind or 'batch'}:refused"
