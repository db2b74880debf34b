"""What admission looks at, gathered: the lane, the switches, how full its queue is, and what its accounts have left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from shared.core import rate
from shared.core.account import AccountSpec
from shared.core.admission import URGENT, AccountView, Capacity, View
from shared.core.capacity import cap_wanted
from shared.core.errors import Unavailable, UnknownLane, UnreadableRow
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.ports import BudgetLedger, Clock, ControlStore, LaneQueues, Telemetry
from shared.core.rate import SECOND, Budget, Want
from shared.usecases.switchboard import SwitchBoard

CACHED_S = 2
BACKLOG_S = 90
"""So long after a run found a backlog newcomers go behind it: past the next run, which looks again."""
BLOCK_S = 10
"""So much of an account's line is taken at once for a backlog: a write for each second's starts would be one a job."""
BLOCK_LEAST, BLOCK_MOST = 2, 20
"""And so many calls at least and at most: of a fast account a second's starts are many, and who is refused stands
behind all of it."""
URGENT_SHARE = 2
"""Urgent jobs stand in line with twice their span: they pass the others at half of the pace, and starve nobody."""


class Viewer:
    """Builds views. Queues and accounts are asked at most every two seconds; what is sent in between is added."""

    def __init__(
        self,
        *,
        lanes: Mapping[str, LaneSpec],
        board: SwitchBoard,
        control: ControlStore,
        queues: LaneQueues,
        clock: Clock,
        accounts: Mapping[str, AccountSpec] | None = None,
        budgets: BudgetLedger | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._lanes, self._board, self._control = lanes, board, control
        self._queues, self._clock = queues, clock
        self._accounts, self._ledger, self._telemetry = dict(accounts or {}), budgets, telemetry
        self._capacity: dict[str, tuple[datetime, Capacity]] = {}
        self._budgets: dict[str, tuple[datetime, Budget | None]] = {}
        """As last read; None: it could not be read."""
        self._lines_us: dict[str, int] = {}
        """Up to here starts were given out by this process."""
        self._blocks_us: dict[str, int] = {}
        """Up to here the line is this process's own to give out."""
        self._unwritten_us: dict[str, int] = {}
        self._probes_us: dict[str, int] = {}
        self._urgent_us: dict[str, int] = {}
        self._backlogs_us: dict[str, int] = {}
        self._left_behind: set[str] = set()
        """Whose jobs were found to wait since the lines were written last."""

    def of(self, lane: str, task: str | None = None) -> View:
        """The view for a lane's jobs of a task, or of any task, now."""
        spec = self.lane(lane)
        return View(
            lane=spec,
            switches=self._board.read(),
            capacity=self._capacity_of(spec),
            accounts=tuple(map(self._account, self.accounts_of(spec, task))),
        )

    def accounts_of(self, lane: LaneSpec, task: str | None = None) -> tuple[AccountSpec, ...]:
        """The accounts a lane spends; for a task, those with the vendors that it calls."""
        called = lane.vendors if task is None else lane.vendors_of(task)
        every = (self._accounts[name] for name in lane.accounts)
        return tuple(account for account in every if called == lane.vendors or account.vendor in called)

    def knows(self, lane: str) -> bool:
        """True for a lane of this stage."""
        return lane in self._lanes

    def lane(self, name: str) -> LaneSpec:
        """The lane of that name, or UnknownLane."""
        spec = self._lanes.get(name)
        if spec is None:
            raise UnknownLane(name, tuple(sorted(self._lanes)))
        return spec

    def sent(self, job: Job, start: datetime, *, to_tell: bool = True) -> None:
        """Count what is being sent: in its queue until that is asked again, and in the line of its accounts, which
        `write_lines` tells of it unless it is not `to_tell`."""
        seen_at, capacity = self._capacity[job.lane]
        self._capacity[job.lane] = (seen_at, Capacity(depth=capacity.depth + 1, limit=capacity.limit))
        for account in self.accounts_of(self.lane(job.lane), job.task):
            self._promise(account, job, rate.us_of(start), to_tell=to_tell)

    def backlog(self, lane: LaneSpec, task: str | None = None) -> bool:
        """True while jobs of an account of the lane, or of the task, wait in the table for their turn."""
        now_us = rate.us_of(self._clock.now())
        return any(self._backlog_us(spec) > now_us for spec in self.accounts_of(lane, task))

    def left_behind(self, lane: LaneSpec, task: str | None = None) -> None:
        """Jobs of this lane wait for their turn at its accounts; `write_lines` tells it, if it is not known."""
        now_us = rate.us_of(self._clock.now())
        for spec in self.accounts_of(lane, task):
            self._left_behind.add(spec.name)
            if self._budget(spec) is not None and self._backlog_us(spec) < now_us + BACKLOG_S * SECOND // 3:
                self._backlogs_us[spec.name] = now_us + BACKLOG_S * SECOND
                self._unwritten_us.setdefault(spec.name, 0)

    def _backlog_us(self, spec: AccountSpec) -> int:
        budget = self._budget(spec)
        return max(self._backlogs_us.get(spec.name, 0), budget.backlog_us if budget is not None else 0)

    def shut(self, lane: LaneSpec) -> bool:
        """True while an account of the lane takes nothing but probes."""
        budgets = [self._budget(spec) for spec in self.accounts_of(lane)]
        return any(budget is not None and budget.terms.shut is not None for budget in budgets)

    def look_again(self) -> None:
        """Forget what the accounts said; the promises made here stay."""
        self._budgets.clear()

    def write_lines(self, *, paces: bool = False) -> None:
        """Tell the accounts what was promised here, so that others stand behind it: one write each. One that cannot
        be told loses the promise: others may start at the same time, and whoever is refused waits for a turn. While
        jobs wait for their turn, the backlog is told for as long; to who `paces` it, what comes next is promised, too:
        nobody else would give it out."""
        if self._ledger is None:
            return
        now_us = rate.us_of(self._clock.now())
        for name, span_us in self._unwritten_us.items():
            backlog_us, more_us = self._backlogs_us.get(name, 0), 0
            if span_us and name in self._left_behind:
                more_us = self._more_us(self._accounts[name]) if paces else 0
                backlog_us = self._backlogs_us[name] = now_us + BACKLOG_S * SECOND
            # Where what was promised here begins; the account puts it behind what others promised meanwhile.
            given_us = self._lines_us.get(name, 0)
            try:
                start_us = self._ledger.reserve(
                    self._accounts[name],
                    span_us + more_us,
                    not_before_us=max(now_us, given_us - span_us if span_us else 0),
                    backlog_us=backlog_us,
                )
            except (Unavailable, UnreadableRow) as exc:
                self._unreadable(self._accounts[name], exc)
                continue
            if more_us:
                self._lines_us[name] = max(given_us, start_us + span_us)
                self._blocks_us[name] = start_us + span_us + more_us
        self._unwritten_us.clear()
        self._left_behind.clear()

    def _promise(self, spec: AccountSpec, job: Job, start_us: int, *, to_tell: bool) -> None:
        budget = self._budget(spec)
        if budget is None or not rate.enforced(spec, budget.terms):
            # A line that grows while nobody keeps to it would hold everybody up when the budget is on again.
            return
        if budget.terms.shut is not None:
            self._probes_us[spec.name] = start_us + int(budget.terms.shut.probe_every_s * SECOND)
            return
        if job.permit_at is not None:
            # Its place in line was promised when it was refused.
            return
        want, now_us = rate.want_of(job, budget), rate.us_of(self._clock.now())
        span_us = rate.span_of(spec, budget, want, start_us)
        # From when the account has room, or all who come before that would be given that one moment; not from the job's
        # start: one that waits for its own time must not make the others wait for it.
        refusal = rate.refused(spec, budget, want, now_us)
        free_us = now_us if refusal is None else max(now_us, refusal.retry_us)
        self._lines_us[spec.name] = max(self._line_us(spec, budget), free_us) + span_us
        if job.priority == URGENT:
            self._urgent_us[spec.name] = max(self._urgent_us.get(spec.name, 0), now_us) + URGENT_SHARE * span_us
        beyond_us = min(span_us, self._lines_us[spec.name] - self._blocks_us.get(spec.name, 0))
        if to_tell and beyond_us > 0:
            self._unwritten_us[spec.name] = self._unwritten_us.get(spec.name, 0) + beyond_us

    def _account(self, spec: AccountSpec) -> AccountView:
        budget = self._budget(spec)
        if budget is None:
            return AccountView(spec=spec, budget=Budget(), readable=False)
        return AccountView(
            spec=spec, budget=budget, line_us=self._line_us(spec, budget), urgent_us=self._urgent_us.get(spec.name, 0)
        )

    def _line_us(self, spec: AccountSpec, budget: Budget) -> int:
        """From when starts are free. What is left of an own block is given out first, where a job fits into it."""
        given_us, block_us = self._lines_us.get(spec.name, 0), self._blocks_us.get(spec.name, 0)
        return given_us if given_us + self._usual_us(spec, budget) <= block_us else max(given_us, budget.line_us)

    def _usual_us(self, spec: AccountSpec, budget: Budget) -> int:
        """How long a usual call keeps an account busy."""
        now_us = rate.us_of(self._clock.now())
        return rate.span_of(spec, budget, Want(requests=1, tokens=budget.usual_tokens), now_us)

    def _more_us(self, spec: AccountSpec) -> int:
        """What is taken of a line beyond what was given out: whole calls, so that none of it is left over."""
        budget = self._budget(spec)
        usual_us = 0 if budget is None else self._usual_us(spec, budget)
        return usual_us * max(BLOCK_LEAST, min(BLOCK_MOST, BLOCK_S * SECOND // usual_us)) if usual_us else 0

    def _budget(self, spec: AccountSpec) -> Budget | None:
        if self._ledger is None:
            return Budget()
        now = self._clock.now()
        known = self._budgets.get(spec.name)
        if known is None or now - known[0] >= timedelta(seconds=CACHED_S):
            known = self._budgets[spec.name] = (now, self._read(spec, self._ledger))
        budget, given_us = known[1], self._probes_us.get(spec.name, 0)
        shut = None if budget is None else budget.terms.shut
        if budget is not None and shut is not None and given_us > shut.probe_us:
            # Probes that were sent are on their way: the next one follows them.
            budget = replace(budget, terms=replace(budget.terms, shut=replace(shut, probe_us=given_us)))
        return budget

    def _read(self, spec: AccountSpec, ledger: BudgetLedger) -> Budget | None:
        """One account that cannot be read holds up its own jobs only, never the stream or the other lanes."""
        try:
            return ledger.read(spec)
        except (Unavailable, UnreadableRow) as exc:
            self._unreadable(spec, exc)
            return None

    def _unreadable(self, spec: AccountSpec, exc: Exception) -> None:
        if self._telemetry is not None:
            self._telemetry.error("budget_unreadable", exc, account=spec.name)

    def _cap(self, lane: LaneSpec) -> int:
        """The wanted cap; a row that cannot be read stops nobody: the baseline counts then, loudly."""
        try:
            return cap_wanted(self._control.capacity(lane.name), lane)
        except UnreadableRow as exc:
            if self._telemetry is not None:
                self._telemetry.error("cap_unreadable", exc, lane=lane.name)
            return lane.baseline

    def _capacity_of(self, lane: LaneSpec) -> Capacity:
        if lane.run is not None:
            # It has no queue: a run takes as many as it may.
            return Capacity(depth=0, limit=lane.run.max_jobs_per_run)
        now = self._clock.now()
        known = self._capacity.get(lane.name)
        if known is not None and now - known[0] < timedelta(seconds=CACHED_S):
            return known[1]
        # Whatever the control table says, the ceiling holds.
        cap = min(self._cap(lane), lane.ceiling)
        # What runs is no backlog: only messages that wait for a worker fill the window.
        depth = self._queues.depth(lane.name)
        capacity = Capacity(depth=depth.visible + depth.delayed, limit=lane.queue_limit_at(cap))
        self._capacity[lane.name] = (now, capacity)
        return capacity
