"""Trace what people and the engine changed of a lane between two moments, out of the history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from shared.core.history import HistoryEvent
from shared.core.job import Category, Job
from shared.core.lane import LaneSpec
from shared.core.plan import Progress
from shared.core.plan_ports import PlanStore
from shared.core.ports import Clock, History
from shared.core.validation_facts import Change, Replay
from shared.usecases.persist import persist
from shared.usecases.plan_redrive import subject_of as redrives_of

MOST_EVENTS = 20_000
"""Read of one subject: two weeks of a decision a minute."""
MOST_SUBJECTS = 20_000
BY_HAND = ("cancel", "dismiss", "reset", "schedule", "evidence")
"""Moves of a job that a person makes."""
ENGINE = ("governor", "redriver")
_OF_JOBS = (*BY_HAND, "resolution_requested", "resolution_confirmed")
_SAYS_WHY = ("why", "cause", "evidence")


@dataclass(slots=True)
class Trace:
    """What was found in the history, oldest first."""

    changes: list[Change] = field(default_factory=list)
    decisions: list[HistoryEvent] = field(default_factory=list)
    switches: list[HistoryEvent] = field(default_factory=list)
    redrives: list[HistoryEvent] = field(default_factory=list)
    replays: dict[str, Replay] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracer:
    """What it takes to trace."""

    lane: LaneSpec
    since: datetime
    until: datetime
    history: History
    plans: PlanStore
    clock: Clock
    threads: int = 1
    tell: Callable[[str], None] = lambda text: None

    def trace(self, jobs: Sequence[Job]) -> Trace:
        """Everything about the lane, its vendors, its accounts and its jobs."""
        lane, trace = self.lane, Trace()
        scopes = ["all", f"lane/{lane.name}", *(f"vendor/{vendor}" for vendor in lane.vendors)]
        scopes += [f"task/{lane.name}/{task}" for task in lane.tasks]
        scopes += sorted({f"tenant/{lane.name}/{job.tenant}" for job in jobs})
        trace.switches = self._all([f"switch/{scope}" for scope in scopes], trace)
        capacity = self._all([f"capacity/{lane.name}"], trace)
        trace.decisions = [event for event in capacity if event.kind == "decision"]
        budgets = self._all([f"budget/{account}" for account in lane.accounts], trace)
        trace.redrives = self._all([redrives_of(lane.name)], trace)
        of_jobs = self._all(_touched(jobs, self.since), trace)
        audits = [event for event in self._all(["audit"], trace) if event.kind == "repair"]
        self._plans(jobs, trace)
        for event in [*trace.switches, *capacity, *budgets, *trace.redrives, *of_jobs, *audits]:
            if event.kind != "decision" and event.by not in ENGINE:
                trace.changes.append(_change(event, trace.replays))
        trace.changes.sort(key=lambda change: change.at)
        return trace

    def _all(self, subjects: Sequence[str], trace: Trace) -> list[HistoryEvent]:
        if len(subjects) > MOST_SUBJECTS:
            kind = subjects[-1].split("/")[0]
            trace.gaps.append(f"of {len(subjects):,} histories ({kind}) only {MOST_SUBJECTS:,} were read")
        events: list[HistoryEvent] = []
        with ThreadPoolExecutor(max_workers=max(1, self.threads)) as pool:
            for subject, found in zip(subjects, pool.map(self._of, subjects[:MOST_SUBJECTS]), strict=False):
                if len(found) == MOST_EVENTS and found[-1].at >= self.since:
                    trace.gaps.append(
                        f"the history of {subject} is longer than the {MOST_EVENTS:,} events that are read"
                    )
                events += [event for event in found if self.since <= event.at <= self.until]
        self.tell(f"{len(subjects):,} histories read")
        return sorted(
            (event for event in events if not event.subject.startswith("job/") or event.kind in _OF_JOBS),
            key=lambda event: (event.at, event.event_id),
        )

    def _of(self, subject: str) -> list[HistoryEvent]:
        return persist(lambda: self.history.of(subject, limit=MOST_EVENTS), self.clock)

    def _plans(self, jobs: Sequence[Job], trace: Trace) -> None:
        """Those that were spoken of, and those that a job names."""
        named = {str(event.detail["plan"]) for event in trace.redrives if event.detail.get("plan")}
        named |= {job.plan_id for job in jobs if job.plan_id is not None}
        for plan_id in sorted(named):
            plan = persist(partial(self.plans.get, plan_id), self.clock)
            if plan is None:
                continue
            steps = persist(partial(self.plans.steps, plan_id), self.clock)
            manifest = persist(partial(self.plans.manifest, plan_id), self.clock)
            ids = frozenset(entry.job_id for entry in manifest)
            trace.replays[plan_id] = Replay(plan=plan, progress=Progress(steps=steps), manifest=ids)


def _touched(jobs: Iterable[Job], since: datetime) -> list[str]:
    """The histories of jobs that a person moved, and of the runs that moved many; no other job's is read."""
    found: set[str] = set()
    for job in jobs:
        for move in job.moves:
            reason, _, detail = move.reason.partition(":")
            if move.at >= since and reason in BY_HAND:
                found.add(detail if detail.startswith("bulk/") else f"job/{job.job_id}")
        if job.category is Category.OUTCOME_UNKNOWN:
            found.add(f"job/{job.job_id}")
    return sorted(found)


def _change(event: HistoryEvent, replays: Mapping[str, Replay]) -> Change:
    detail = event.detail
    replay = replays.get(str(detail.get("plan", "")))
    why = next((str(detail[name]) for name in _SAYS_WHY if detail.get(name)), "")
    if not why and replay is not None:
        # Whoever approves or starts a plan says yes to its cause.
        why = replay.plan.cause
    if event.kind == "repair":
        why = "what an audit found"
    return Change(at=event.at, by=event.by, what=_what(event), why=why, subject=event.subject)


def _what(event: HistoryEvent) -> str:
    detail, about = event.detail, event.subject.partition("/")[2]
    match event.kind:
        case "switch":
            paid = "" if detail.get("automation_enabled", True) else ", paid calls forbidden"
            overruled = ", the checklist overruled" if detail.get("anyway") else ""
            return f"{about} set to {detail.get('level', '?')}{paid}{overruled}"
        case "pin":
            return f"cap pinned to {detail.get('cap', '?')} until {detail.get('until', '?')}"
        case "unpin":
            return "cap no longer pinned"
        case "budget":
            said = ", ".join(f"{name} {value}" for name, value in detail.items() if name != "why")
            return f"budget of {about}: {said}"
        case "planned" | "approved" | "started" | "aborted":
            return f"redrive {detail.get('plan', '?')} {event.kind}"
        case "schedule_jobs":
            return f"many jobs given another time ({about})"
        case "repair":
            return f"{detail.get('repaired', '?')} jobs repaired"
    return f"job {about}: {event.kind.replace('_', ' ')}"
