"""What a native redrive must meet before it is planned, and again before it starts. Each refusal says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from shared.core.account import AccountSpec
from shared.core.errors import BadInput, UnreadableRow
from shared.core.lane import LaneSpec
from shared.core.moment import iso
from shared.core.native import CANARY_FOR, PIN_MARGIN, moves_for, rate_of
from shared.core.plan import Entry, Fate, Progress, said
from shared.core.plan_ports import PlanStore
from shared.core.ports import Clock, ControlStore, DeadLetterQueues, History
from shared.usecases.persist import persist
from shared.usecases.plan_redrive import Planned, subject_of

PEEK_LIMIT = 40_000
"""More letters than this are not looked through one by one."""
PEEK_S, PEEKED_A_SECOND = 20, 100
"""Letters are hidden for as long as looking through all of them takes, and a little more."""
PLANS_LOOKED_AT = 200
OTHERWISE = "or leave --native out"


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeDesk:
    """What a native redrive is checked against."""

    lane: LaneSpec
    dead_letters: DeadLetterQueues
    control: ControlStore
    plans: PlanStore
    history: History
    clock: Clock
    accounts: tuple[AccountSpec, ...] = ()

    def planned(self, planned: Planned, rate: int | None) -> int:
        """The rate of a plan that may go natively. Raises BadInput: a move task cannot choose."""
        if planned.plan.chosen:
            raise BadInput("native", f"moves every dead letter of the lane: leave the filters out, {OTHERWISE}")
        if planned.refused:
            job_id, why = planned.refused[0]
            raise BadInput(
                "native",
                f"moves every dead letter of the lane, and {len(planned.refused):,} must not be replayed, as {job_id}:"
                f" {why}; then plan again, {OTHERWISE}",
            )
        if planned.unreadable:
            raise BadInput(
                "native", f"is refused while {planned.unreadable:,} rows cannot be read: see `penstock audit`"
            )
        chosen = rate_of(rate, planned.plan.count, self.lane, self.accounts)
        self.check(planned.manifest, chosen)
        return chosen

    def check(self, manifest: Iterable[Entry], rate: int) -> None:
        """Raises BadInput unless a move task would move exactly these jobs' letters, each error is shown to be gone,
        and the lane's cap is held at its baseline for as long as the move takes."""
        entries = tuple(manifest)
        if self.lane.admission == "scheduled":
            raise BadInput("native", f"is not for lane {self.lane.name}: its runs take jobs from the table")
        self._canaries(entries)
        self._throttled(len(entries), rate)
        self._all_that_stands_there(entries)

    def _all_that_stands_there(self, manifest: tuple[Entry, ...]) -> None:
        name, letters = self.lane.name, self.dead_letters
        depth = persist(lambda: letters.depth(name), self.clock)
        if depth.in_flight:
            raise BadInput(
                "native", f"cannot be told now: somebody looks at {depth.in_flight:,} dead letters; try in a minute"
            )
        if depth.total > PEEK_LIMIT:
            raise BadInput(
                "native",
                f"is for {PEEK_LIMIT:,} dead letters at most, and {depth.total:,} stand there: replay some by"
                " --category or --since without --native first",
            )
        hide_s = PEEK_S + depth.total // PEEKED_A_SECOND
        found = letters.receive(name, limit=PEEK_LIMIT, hide_s=hide_s)
        if unreadable := sum(message.job_id is None for message in found):
            raise BadInput(
                "native",
                f"moves all that stands there, and {unreadable:,} messages cannot be read: triage puts them into"
                f" quarantine within ten minutes; plan again then, {OTHERWISE}",
            )
        if (seen := len({message.message_id for message in found})) < depth.total:
            raise BadInput(
                "native",
                f"cannot be told now: {seen:,} of {depth.total:,} dead letters could be looked at; try in a minute,"
                f" {OTHERWISE}",
            )
        meant, there = {entry.job_id for entry in manifest}, {str(message.job_id) for message in found}
        if missing := sorted(meant - there):
            raise BadInput(
                "native",
                f"moves what stands there, and the letters of {said(missing)} do not: letters that are missing are sent"
                f" again within ten minutes; plan again then, {OTHERWISE}",
            )
        others = sorted(there - meant)
        if others:
            raise BadInput(
                "native",
                f"moves all that stands there, and letters of other jobs do: {said(others)}. Those of jobs that are no"
                " longer failed are removed within ten minutes; resolve or dismiss those that must not be replayed;"
                f" then plan again, {OTHERWISE}",
            )

    def _throttled(self, count: int, rate: int) -> None:
        """Held by a pin, not merely low: the governor would raise the cap for the very backlog that this makes."""
        lane, now = self.lane, self.clock.now()
        until = now + moves_for(count, rate) + PIN_MARGIN
        try:
            state = persist(lambda: self.control.capacity(lane.name), self.clock)
        except UnreadableRow:
            state = None
        pin = None if state is None else state.pinned(now)
        if pin is None or pin.cap > lane.baseline or pin.until < until:
            raise BadInput(
                "native",
                f"needs lane {lane.name} held at its baseline cap of {lane.baseline} until {iso(until)} at least:"
                f" `penstock capacity pin {lane.name} {lane.baseline} --for {_span(until, now)} --why …`",
            )

    def _canaries(self, manifest: tuple[Entry, ...]) -> None:
        shown = self._shown()
        missing = {
            (one.category, one.signature): one for one in manifest if not shown.get((one.category, one.signature))
        }
        if missing:
            (category, signature), first = next(iter(sorted(missing.items())))
            more = f" ({len(missing) - 1:,} more errors lack one, too)" if len(missing) > 1 else ""
            raise BadInput(
                "native",
                f"has no canary: replay one job with the error {category}/{signature} first and see it complete, with"
                f" `penstock redrive plan {self.lane.name} --job {first.job_id} --cause …`{more}",
            )

    def _shown(self) -> Mapping[tuple[str, str], bool]:
        """Each error that was replayed within a day, and whether the newest plan for it brought it to its end."""
        since, shown = self.clock.now() - CANARY_FOR, dict[tuple[str, str], bool]()
        events = persist(lambda: self.history.of(subject_of(self.lane.name), limit=PLANS_LOOKED_AT), self.clock)
        for plan_id in dict.fromkeys(str(event.detail.get("plan", "")) for event in events if event.at >= since):
            fates = Progress(steps=persist(lambda one=plan_id: self.plans.steps(one), self.clock)).fates  # type: ignore[misc]
            if not fates:
                continue
            entries = persist(lambda one=plan_id: self.plans.manifest(one), self.clock)  # type: ignore[misc]
            of_plan: dict[tuple[str, str], bool] = {}
            for one in entries:
                fate = fates.get(one.job_id)
                if fate in (Fate.COMPLETED, Fate.RELAPSED):
                    error = (one.category, one.signature)
                    of_plan[error] = fate is Fate.COMPLETED and of_plan.get(error, True)
            shown = {**of_plan, **shown}
        return shown


def _span(until: datetime, now: datetime) -> str:
    return f"{int((until - now).total_seconds() // 60) + 10}m"
