"""Submit: a run takes what it may, groups it, and hands it to its providers as batches; what is over goes back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from shared.core import lifecycle, rate
from shared.core.account import AccountSpec, Limit
from shared.core.batch import (
    Batch,
    Group,
    Member,
    NotTaken,
    NoWord,
    Prompt,
    Request,
    Taken,
    fitting,
    grouped,
    tag_of,
)
from shared.core.batch_ports import BatchProvider
from shared.core.budget import Refusal, Want
from shared.core.errors import BadInput, PenstockError, Unavailable, UnreadableRow
from shared.core.job import Category, Job
from shared.core.lane import run_of
from shared.core.outcome import Fail, checked
from shared.core.ports import ContentStore
from shared.core.run import Mode
from shared.core.sensitive import Sensitive
from shared.usecases.deadline import RECORD_MARGIN_S, Deadline
from shared.usecases.keep_batches import ASK_S, BatchKeeper
from shared.usecases.persist import persist
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.take_run import RunCounts, closed_by, take

HELD_S = 600
"""How long a job that a switch holds is left alone: the run after the next asks again."""
WRITES_S = 0.02
"""What one write takes, for the time that handing a batch over needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """What a submitting run works with."""

    stage: str
    keeper: BatchKeeper
    content: ContentStore
    board: SwitchBoard
    group_of: Callable[[Job], Group]
    """What a job must have in common with others; raises BadInput for a row that is none of the lane's."""
    prompt_of: Callable[[Job, Sensitive[Mapping[str, Any]]], Prompt]
    """What is asked for one job; raises BadInput for a payload that cannot be used."""

    def run(self, run_id: str, deadline: Deadline) -> dict[str, int]:
        """The counts of one run. What an earlier run left half-way comes first."""
        counts, keeper = RunCounts(), self.keeper
        silent: set[str] = set()
        batches = keeper.under_way()
        keeper.keep_holds(batches)
        for batch in batches:
            if deadline.remaining_s <= ASK_S:
                break
            if batch.group.provider not in silent:
                silent |= keeper.silent_after(lambda: keeper.resume(batch, counts), batch, counts)  # noqa: B023
        closed = closed_by(keeper.lane, self.board, paid=True)
        if closed is None:
            _Submission(of=self, run_id=run_id, deadline=deadline, counts=counts, silent=silent).make()
        else:
            counts.add("held")
            keeper.telemetry.event("run_held", lane=keeper.lane.name, run_id=run_id, by=closed)
        return counts.plain(run_of(keeper.lane))


@dataclass(slots=True, kw_only=True)
class _Submission:
    """What one run claims and hands over. Whoever it has claimed and not handed over goes back, whatever happens."""

    of: Submitter
    run_id: str
    deadline: Deadline
    counts: RunCounts
    silent: set[str]
    """Providers that gave no answer in this run: they are not asked again, and given nothing new."""
    claimed: dict[str, Job] = field(default_factory=dict)
    """By custom id: those whose fate is not decided yet."""
    spared: list[str] = field(default_factory=list)
    """Put back because a switch holds them alone."""

    @property
    def keeper(self) -> BatchKeeper:
        return self.of.keeper

    def make(self) -> None:
        try:
            number = 0
            for group, requests in grouped(self._wanted()).items():
                left: Sequence[Request] = requests
                while left:
                    number += 1
                    done = self._hand_over(tag_of(self.of.stage, self.run_id, number), group, left)
                    if not done:
                        self._overflow([one.custom_id for one in left], group)
                        break
                    left = left[done:]
        except Exception:
            # A store that is down, an answer nobody expected: those who are in no intent lose no attempt by it.
            with suppress(PenstockError):
                self._overflow(list(self.claimed), None)
            raise

    def _wanted(self) -> list[tuple[Group, Request]]:
        keeper = self.keeper
        # A little before the end nobody new is claimed: those who are must still be handed over, or go back.
        margin_s = min(2 * ASK_S, max(0.0, self.deadline.remaining_s) / 2)
        claiming = Deadline(at=self.deadline.at - timedelta(seconds=margin_s), clock=keeper.clock)
        wanted: list[tuple[Group, Request]] = []
        for job in take(
            keeper.lane,
            Mode.BATCH,
            run_id=self.run_id,
            deadline=claiming,
            jobs=keeper.jobs,
            clock=keeper.clock,
            telemetry=keeper.telemetry,
            spared=self.spared,
        ):
            member = Member(job_id=job.job_id, fence=job.fence)
            self.claimed[member.custom_id] = job
            prepared = self._prepared(job)
            if isinstance(prepared, tuple):
                group, prompt = prepared
                self.counts.add("claimed", model=f"{group.provider}/{group.model}")
                wanted.append((group, Request(custom_id=member.custom_id, prompt=prompt)))
            else:
                self.counts.add("claimed")
                self._decided(member.custom_id, prepared)
            if claiming.remaining_s < 2 * WRITES_S * len(self.claimed):
                break
        return wanted

    def _prepared(self, job: Job) -> tuple[Group, Prompt] | Job:
        """What is asked for a job, or what becomes of it instead: one that cannot be asked harms no neighbour."""
        keeper, now = self.keeper, self.keeper.clock.now()

        def failed(error: str) -> Job:
            return lifecycle.settled(job, checked(Fail(Category.MALFORMED, error[:96])), keeper.lane, now)

        standing = self.of.board.read().for_job(job, keeper.lane.vendors_of(job.task))
        if standing.closes_admission or standing.paid_calls_closed_by is not None:
            self.spared.append(job.job_id)
            scope = standing.paid_calls_closed_by or standing.scope
            return lifecycle.overflowed(job, now + timedelta(seconds=HELD_S), f"switches:{scope}", now)
        try:
            group = self.of.group_of(job)
            if group.provider not in keeper.providers:
                return failed("unknown_provider")
            ref = job.payload_ref
            data = None if ref is None else persist(lambda: self.of.content.get(ref), keeper.clock)
            if data is None:
                return failed("payload_missing")
            payload = json.loads(data)
            if not isinstance(payload, dict):
                # What enqueue wrote there is an object; this was written by somebody else.
                return failed("payload_unreadable")
            prompt = self.of.prompt_of(job, Sensitive(payload))
        except Unavailable as exc:
            keeper.telemetry.error("attempt_store_fault", exc, job_id=job.job_id)
            return lifecycle.overflowed(job, now + timedelta(seconds=self._overflow_s), f"store:{exc.code}", now)
        except ValueError:
            return failed("payload_unreadable")
        except BadInput as exc:
            keeper.telemetry.error("job_not_askable", exc, job_id=job.job_id)
            return failed(f"bad_input:{exc.field}")
        spec = keeper.accounts.get(group.provider)
        most = None if spec is None else spec.configured(Limit.BATCH_TOKENS)
        # One that no batch can hold would go back and forth for ever.
        return failed("larger_than_account") if most is not None and prompt.tokens > most else (group, prompt)

    def _hand_over(self, tag: str, group: Group, requests: Sequence[Request]) -> int:
        """Hand one batch over: how many of the requests had their turn; 0 when none could be handed over now."""
        keeper, provider, counts = self.keeper, self.keeper.providers[group.provider], self.counts
        in_time = int((self.deadline.remaining_s - ASK_S - RECORD_MARGIN_S) / WRITES_S)
        if in_time < 1:
            counts.add("out_of_time")
            return 0
        # Looked at once more just before the intent: claiming takes its time.
        closed = closed_by(keeper.lane, self.of.board, paid=True)
        if closed is not None or group.provider in self.silent:
            counts.add("held" if closed is not None else "provider_silent")
            return 0
        mine = requests[: min(in_time, len(requests))]
        room = self._room(tag, group, mine)
        fits = fitting(mine, most_tokens=room, most_lines=provider.most_lines, most_bytes=provider.most_bytes)
        if not fits:
            return 0
        mine = mine[:fits]
        jobs = {one.custom_id: self.claimed[one.custom_id] for one in mine}
        batch = Batch(
            tag=tag,
            run_id=self.run_id,
            group=group,
            count=fits,
            tokens=sum(one.prompt.tokens for one in mine),
            intent_at=keeper.clock.now(),
        )
        members = tuple(Member(job_id=job.job_id, fence=job.fence) for job in jobs.values())
        # From here on they are the batch's, whether or not its write was heard of.
        self.claimed = {name: job for name, job in self.claimed.items() if name not in jobs}
        if persist(lambda: keeper.batches.intend(batch, members), keeper.clock) is not None:
            keeper.telemetry.event("batch_tag_taken", tag=tag)
            return fits
        answer = provider.submit(tag, mine, timeout_s=ASK_S)
        match answer:
            case Taken(provider_id=provider_id):
                counts.add("batches")
                counts.add("submitted", fits, model=f"{group.provider}/{group.model}")
                keeper.hand_over(keeper.submitted(batch, provider_id), {job.job_id: job for job in jobs.values()})
            case NotTaken():
                self._refused(batch, answer, provider)
            case NoWord(reason=reason):
                # Perhaps it has it. The next run asks by the tag; nobody sends it again.
                counts.add("batches_unknown")
                self.silent.add(group.provider)
                keeper.telemetry.event("batch_unanswered", tag=tag, reason=reason)
        return fits

    def _refused(self, batch: Batch, answer: NotTaken, provider: BatchProvider) -> None:
        keeper, now = self.keeper, self.keeper.clock.now()
        self.counts.add("rate_limited" if answer.limited else "refused_batches")
        keeper.telemetry.event("batch_refused", tag=batch.tag, provider=provider.name, reason=answer.reason)
        if answer.permanent:
            keeper.send_back(batch, f"batch_refused:{answer.reason}"[:96], self.counts)
            return
        until = now + timedelta(seconds=max(self._overflow_s, answer.retry_after_s or 0))
        if answer.auth:
            # Nothing is wrong with the jobs: they wait until somebody has renewed the key.
            until = now + timedelta(seconds=keeper.lane.backoff_s[0] if keeper.lane.backoff_s else self._overflow_s)
        keeper.send_back(batch, f"{'auth' if answer.auth else 'limited'}:{provider.name}", self.counts, until=until)

    def _room(self, tag: str, group: Group, requests: Sequence[Request]) -> int | None:
        """The tokens that the account lets this batch hold; None without an account. Held under the tag."""
        keeper = self.keeper
        spec: AccountSpec | None = keeper.accounts.get(group.provider)
        if spec is None or keeper.budgets is None:
            return None
        want = Want(requests=1, batch_tokens=sum(one.prompt.tokens for one in requests))
        least = Want(requests=1, batch_tokens=requests[0].prompt.tokens)
        now_us = rate.us_of(keeper.clock.now())
        # Until the provider has it: a run that dies before that takes nothing with it for longer.
        hold_s = float(keeper.lane.claim_timeout_s)
        try:
            taken = keeper.budgets.take(spec, want, least=least, now_us=now_us, hold=tag, hold_s=hold_s)
        except (Unavailable, UnreadableRow) as exc:
            keeper.telemetry.error("budget_unreadable", exc, account=spec.name)
            return 0
        if isinstance(taken, Refusal):
            self.counts.add("capacity_errors")
            keeper.telemetry.event("batch_waits", account=spec.name, limit=taken.limit)
            return 0
        return taken.want.batch_tokens

    @property
    def _overflow_s(self) -> int:
        return run_of(self.keeper.lane).overflow_backoff_seconds

    def _overflow(self, names: Sequence[str], group: Group | None) -> None:
        """Claimed, and not handed over: back in the same run, no attempt used."""
        where = "run" if group is None else group.provider
        for name in names:
            job, now = self.claimed[name], self.keeper.clock.now()
            until = now + timedelta(seconds=self._overflow_s)
            self.counts.add("overflow")
            self._decided(name, lifecycle.overflowed(job, until, f"overflow:{where}", now), group)

    def _decided(self, name: str, after: Job, group: Group | None = None) -> None:
        """One job's end in this run that is not a batch's."""
        if self.keeper.move(self.claimed.pop(name), after):
            model = "" if group is None else f"{group.provider}/{group.model}"
            self.counts.add("failed" if after.status.ended else "requeued", model=model)
