"""Keep batches: bring each that was begun to where its record and its provider agree, whoever began it.

A batch whose answer was lost is looked for by its tag. Found, it is adopted; absent, its jobs go back, once nobody can
be at it any more. Nobody submits under a tag twice, so no batch is paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared.core import lifecycle, rate
from shared.core.account import AccountSpec
from shared.core.batch import Batch, BatchState, Member, NoWord
from shared.core.batch_ports import BatchProvider, BatchStore
from shared.core.budget import Want
from shared.core.errors import BatchMoved, Unavailable, UnreadableRow
from shared.core.job import Job, Status
from shared.core.lane import LaneSpec
from shared.core.outcome import Retry, Submitted
from shared.core.ports import BudgetLedger, Clock, JobStore, Telemetry
from shared.usecases.persist import persist
from shared.usecases.take_run import RunCounts
from shared.usecases.try_move import try_move

HOLD_S = 26 * 3600.0
"""How long a batch may hold its tokens at most: a provider's day, and time to collect it."""
ASK_S = 20.0
"""What one question to a provider may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchKeeper:
    """What submitter and collector share."""

    lane: LaneSpec
    providers: Mapping[str, BatchProvider]
    jobs: JobStore
    batches: BatchStore
    clock: Clock
    telemetry: Telemetry
    accounts: Mapping[str, AccountSpec]
    """By provider: the account that its batches are charged to."""
    budgets: BudgetLedger | None = None

    def under_way(self) -> list[Batch]:
        """Every batch that has not ended; what cannot be read is left for an operator, and told."""
        try:
            return persist(lambda: self.batches.under_way(self.lane.name), self.clock)
        except UnreadableRow as exc:
            self.telemetry.error("batch_unreadable", exc, lane=self.lane.name)
            return persist(lambda: self.batches.under_way(self.lane.name, readable=True), self.clock)

    def keep_holds(self, batches: Sequence[Batch]) -> None:
        """Every batch that a provider works on holds its tokens, whatever became of the write that said so."""
        for provider, spec in self.accounts.items():
            mine = [one for one in batches if one.group.provider == provider and one.provider_id is not None]
            if not mine or self.budgets is None:
                continue
            try:
                held = self.budgets.read(spec).holds
            except (Unavailable, UnreadableRow) as exc:
                self.telemetry.error("budget_unreadable", exc, account=spec.name)
                continue
            for one in mine:
                if one.tag not in held or held[one.tag].batch_tokens < one.tokens:
                    self.hold(one, HOLD_S)

    def silent_after(self, ask: Callable[[], object], batch: Batch, counts: RunCounts) -> set[str]:
        """The batch's provider, if it gave no answer while `ask` was made: the others' time is not spent on it."""
        before = counts.totals["batches_unknown"]
        ask()
        return {batch.group.provider} if counts.totals["batches_unknown"] > before else set()

    def resume(self, batch: Batch, counts: RunCounts) -> Batch | None:
        """The batch once every job of it says `batch_submitted`; None when it is not there yet, or was given up."""
        if batch.state is BatchState.INTENDED:
            found = self._found(batch, counts)
            if found is None:
                return None
            batch = found
        if batch.state is BatchState.ENDED:
            return None
        return self.hand_over(batch) if batch.state is BatchState.SUBMITTED else batch

    def submitted(self, batch: Batch, provider_id: str) -> Batch:
        """Record that the provider has it: before anything else is done."""
        after = replace(batch, state=BatchState.SUBMITTED, provider_id=provider_id, submitted_at=self.clock.now())
        try:
            persist(lambda: self.batches.move(batch, after), self.clock)
        except BatchMoved as moved:
            # Somebody else adopted it meanwhile: what they wrote holds.
            if moved.current is None:
                raise
            return moved.current
        self.telemetry.event("batch_submitted", tag=batch.tag, provider_id=provider_id, jobs=batch.count)
        self.hold(after, HOLD_S)
        return after

    def hand_over(self, batch: Batch, claimed: Mapping[str, Job] | None = None) -> Batch:
        """Each job of it becomes `batch_submitted`, if it still is under the claim that put it there."""
        if batch.state is not BatchState.SUBMITTED:
            # Somebody else was faster; what they wrote holds.
            return batch
        for member in self.members(batch):
            job = (claimed or {}).get(member.job_id) or self.read(member)
            if job is not None and job.status is Status.PROCESSING and job.fence == member.fence:
                self.move(job, lifecycle.settled(job, Submitted(batch.tag), self.lane, self.clock.now()))
        after = replace(batch, state=BatchState.HANDED)
        try:
            persist(lambda: self.batches.move(batch, after), self.clock)
        except BatchMoved as moved:
            return moved.current or after
        return after

    def end(self, batch: Batch, ending: str) -> None:
        """Every job of it has its end: what it held goes back, and it leaves those under way."""
        if not self._gave_back(batch):
            # It stays under way: the next run finds nothing left to do for it but this.
            return
        after = replace(batch, state=BatchState.ENDED, ended_at=self.clock.now(), ending=ending)
        try:
            persist(lambda: self.batches.move(batch, after), self.clock)
        except BatchMoved:
            return
        self.telemetry.event("batch_ended", tag=batch.tag, ending=ending, jobs=batch.count)

    def note(self, batch: Batch, what: str) -> None:
        """Remember something about a batch until the next look."""
        with suppress(BatchMoved):
            persist(lambda: self.batches.move(batch, replace(batch, ending=what)), self.clock)

    def members(self, batch: Batch) -> tuple[Member, ...]:
        """Who is in it."""
        return persist(lambda: self.batches.members(batch.tag), self.clock)

    def row(self, member: Member, status: Status) -> Job | None:
        """The job, if it still is in that state under that claim."""
        job = self.read(member)
        return job if job is not None and job.status is status and job.fence == member.fence else None

    def move(self, before: Job, after: Job) -> bool:
        """False when somebody else moved the job first."""
        return try_move(before, after, jobs=self.jobs, clock=self.clock, telemetry=self.telemetry)

    def send_back(self, batch: Batch, reason: str, counts: RunCounts, *, until: datetime | None = None) -> None:
        """The provider does not have it: its jobs go back and it ends. `until`: as overflow, no attempt used."""
        for member in self.members(batch):
            job = self.row(member, Status.PROCESSING)
            if job is None:
                continue
            now = self.clock.now()
            after = (
                lifecycle.settled(job, Retry(reason), self.lane, now)
                if until is None
                else lifecycle.overflowed(job, until, reason, now)
            )
            if self.move(job, after):
                self.count(after, counts, batch)
        self.end(batch, reason)

    def count(self, after: Job, counts: RunCounts, batch: Batch) -> None:
        """One job's end in a run, by provider and model."""
        name = {Status.COMPLETED: "succeeded", Status.FAILED: "failed"}.get(after.status, "requeued")
        counts.add(name, model=f"{batch.group.provider}/{batch.group.model}")

    def hold(self, batch: Batch, hold_s: float) -> None:
        """Keep what it takes of the account's batch tokens, and no more, for so long."""
        spec = self.accounts.get(batch.group.provider)
        if spec is None or self.budgets is None:
            return
        want = Want(requests=0, batch_tokens=batch.tokens)
        try:
            self.budgets.take(
                spec, want, least=want, now_us=rate.us_of(self.clock.now()), hold=batch.tag, hold_s=hold_s
            )
        except (Unavailable, UnreadableRow) as exc:
            self.telemetry.error("batch_hold_not_kept", exc, tag=batch.tag)

    # --------------------------------------------------------------------------------------------------- inside
    def _found(self, batch: Batch, counts: RunCounts) -> Batch | None:
        """An intent without an answer: adopt what carries its tag, or give it up once nobody can be at it."""
        provider = self.providers.get(batch.group.provider)
        if provider is None:
            self.telemetry.event("provider_missing", tag=batch.tag, provider=batch.group.provider)
            return None
        found = provider.find(batch.tag, timeout_s=ASK_S, since=batch.intent_at)
        if isinstance(found, NoWord):
            counts.add("batches_unknown")
            return None
        if found:
            counts.add("batches_adopted")
            for spare in found[1:]:
                # Never from here, since nobody submits under one tag twice; if somebody did, one of them is enough.
                self.telemetry.event("batch_spare", tag=batch.tag, provider_id=spare)
                provider.cancel(spare, timeout_s=ASK_S)
            return self.submitted(batch, found[0])
        if self.clock.now() >= batch.intent_at + timedelta(seconds=self.lane.claim_timeout_s):
            counts.add("batches_absent")
            self.send_back(batch, "batch_not_submitted", counts)
        return None

    def _gave_back(self, batch: Batch) -> bool:
        spec = self.accounts.get(batch.group.provider)
        if spec is None or self.budgets is None:
            return True
        try:
            self.budgets.give_back(spec, Want(requests=0), now_us=rate.us_of(self.clock.now()), hold=batch.tag)
        except (Unavailable, UnreadableRow) as exc:
            self.telemetry.error("batch_hold_not_returned", exc, tag=batch.tag)
            return False
        return True

    def read(self, member: Member) -> Job | None:
        """The job as it stands; None when it is gone or cannot be read, which is told."""
        try:
            return persist(lambda: self.jobs.get(member.job_id), self.clock)
        except UnreadableRow as exc:
            self.telemetry.error("row_unreadable", exc, job_id=member.job_id)
            return None
