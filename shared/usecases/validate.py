"""Validate: gather what an incident left behind, from the rows, the vendors' records, the history and the logs.

Reads only. What cannot be read becomes a gap of the check it belongs to; the judgement is `core.validation`'s.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from shared.core.effects import EffectRow, EffectState, Found, Lookup, LookupAnswer, NoAnswer
from shared.core.errors import BadInput, UnreadableRow
from shared.core.incident import Incident
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.logs import Logs
from shared.core.moment import iso
from shared.core.plan_ports import PlanStore
from shared.core.ports import Clock, EffectStore, History, JobStore, Vendor
from shared.core.validation_facts import Facts, Looked
from shared.usecases.audit import UNTOUCHED_S, Auditor
from shared.usecases.keep_incident import incidents_of
from shared.usecases.persist import persist
from shared.usecases.sweep_logs import sweep_logs, unread
from shared.usecases.trace_changes import Tracer

LOOKUP_TIMEOUT_S = 5.0
LOOKUP_TRIES = 3
SILENT = 20
"""So many look-ups in a row without an answer, and the vendor is not asked any more."""
TOLD_EVERY = 200
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validator:
    """What a validation reads."""

    lane: LaneSpec
    jobs: JobStore
    effects: EffectStore
    history: History
    plans: PlanStore
    vendors: Mapping[str, Vendor]
    logs: Logs
    groups: Sequence[str]
    """The log groups of everything that handles the lane's jobs; its worker's is the first."""
    auditor: Auditor
    clock: Clock
    per_minute: Mapping[str, int] = field(default_factory=dict)
    """Look-ups a minute, by vendor; none: as fast as they are answered."""
    threads: int = 1
    tell: Tell = lambda text: None
    gaps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """What whoever made this already knows to be missing."""

    def facts(
        self,
        since: datetime,
        until: datetime,
        *,
        incident_id: str | None = None,
        sample: int | None = None,
        markers: Iterable[str] = (),
    ) -> Facts:
        """Everything about the lane between two moments. `sample`: look up only so many effects at their vendors."""
        if not since < until:
            raise BadInput("since", "must lie before the end of the time that is looked at")
        gaps: defaultdict[str, list[str]] = defaultdict(list, {name: list(some) for name, some in self.gaps.items()})
        found = incidents_of(self.lane.name, history=self.history, clock=self.clock)
        mine = chosen(found, since, until, incident_id)
        jobs, unreadable = self._jobs(since, until)
        self._expired(since, gaps)
        if unreadable:
            gaps["states"].append(f"{unreadable:,} rows cannot be read by this version: see `penstock audit`")
        moved = [job for job in jobs if job.updated_at >= since]
        looked, sampled_from = self._effects(moved, sample, gaps)
        jobs, looked = self._again(jobs, looked)
        swept = sweep_logs(
            self.groups,
            since=since,
            until=until,
            now=self.clock.now(),
            logs=self.logs,
            markers=markers,
            threads=self.threads,
            tell=self.tell,
        )
        ran = sum(job.fence > 0 or job.attempt_count > 0 or job.completed_at is not None for job in moved)
        gaps["leaks"] += [*swept.gaps, *(unread(swept.lines, self.groups[0], ran) if not swept.gaps else ())]
        trace = Tracer(
            lane=self.lane,
            since=since,
            until=until,
            history=self.history,
            plans=self.plans,
            clock=self.clock,
            threads=self.threads,
            tell=self.tell,
        ).trace(jobs)
        gaps["documented"] += trace.gaps
        return Facts(
            lane=self.lane,
            since=since,
            until=until,
            at=self.clock.now(),
            jobs=tuple(jobs),
            effects=tuple(looked),
            sampled_from=sampled_from,
            seen=tuple(swept.seen),
            lines=swept.lines,
            incidents=mine,
            changes=tuple(trace.changes),
            decisions=tuple(trace.decisions),
            switches=tuple(trace.switches),
            redrives=tuple(trace.redrives),
            replays=trace.replays,
            faults=self._faults(jobs),
            gaps={name: tuple(some) for name, some in gaps.items() if some},
        )

    def _jobs(self, since: datetime, until: datetime) -> tuple[list[Job], int]:
        """The lane's jobs that moved in this time, and those that have not ended whenever they last moved."""
        found: list[Job] = []
        unreadable, seen = 0, _Count("jobs read", self.tell)
        for row in self.jobs.scan():
            seen.one()
            if isinstance(row, UnreadableRow):
                unreadable += 1
            elif row.lane == self.lane.name and row.created_at <= until:
                found += [row] if row.updated_at >= since or not row.status.ended else []
        return found, unreadable

    def _expired(self, since: datetime, gaps: defaultdict[str, list[str]]) -> None:
        """A job that has expired cannot be looked at, and its effects cannot be found without it."""
        kept_since = self.clock.now() - timedelta(days=self.lane.completed_kept_days)
        if since < kept_since:
            for name in ("effects", "tier_0", "states"):
                gaps[name].append(f"jobs that completed before {iso(kept_since)} have expired: ask for a shorter time")

    def _faults(self, jobs: Iterable[Job]) -> tuple[tuple[str, str, str], ...]:
        now = self.clock.now()
        found = ((job.job_id, self.auditor.fault_of(job, now, UNTOUCHED_S)) for job in jobs)
        return tuple(
            (job_id, fault.value, f"`penstock audit --repair`: {fault.repair}") for job_id, fault in found if fault
        )

    def _effects(
        self, jobs: Sequence[Job], sample: int | None, gaps: defaultdict[str, list[str]]
    ) -> tuple[list[Looked], int | None]:
        """Every effect of the jobs, with what its vendor says where it was asked."""
        done = _Count("effects read of jobs", self.tell)

        def rows_of(job: Job) -> list[tuple[EffectRow, Job]]:
            rows = persist(lambda: self.effects.of_job(job.job_id), self.clock)
            done.one()
            return [(row, job) for row in rows]

        with ThreadPoolExecutor(max_workers=max(1, self.threads)) as pool:
            rows = [one for some in pool.map(rows_of, jobs) for one in some]
        silent: Counter[str] = Counter()
        askable: list[tuple[EffectRow, Job]] = []
        for row, job in rows:
            vendor = self.vendors.get(row.vendor)
            if vendor is not None and vendor.lookup is not Lookup.NONE:
                askable.append((row, job))
            else:
                silent[row.vendor] += 1
        for name, count in sorted(silent.items()):
            known = "cannot be asked what it accepted" if name in self.vendors else "is not known to this lane's worker"
            gaps["effects"].append(f"{count:,} effects: {name} {known}")
        asked = sampled(askable, sample)
        answers = self._answers(asked)
        looked = [
            Looked(
                row=row,
                job=job,
                answer=answers.get(row.effect_id),
                lookup=self.vendors[row.vendor].lookup if row.vendor in self.vendors else Lookup.NONE,
            )
            for row, job in rows
        ]
        return looked, None if len(asked) == len(askable) else len(askable)

    def _again(self, jobs: list[Job], looked: list[Looked]) -> tuple[list[Job], list[Looked]]:
        """A lane works on while it is looked at: what was under way, or recorded late, is read a second time."""
        moving = {one.job.job_id for one in looked if not one.job.status.ended}
        late = {one.row.job_id for one in looked if isinstance(one.answer, Found) and _unrecorded(one.row)}
        fresh: dict[str, Job] = {}
        rows: dict[str, EffectRow] = {}
        for job_id in sorted(moving | late):
            try:
                job = persist(partial(self.jobs.get, job_id), self.clock)
            except UnreadableRow:
                continue
            fresh |= {} if job is None else {job_id: job}
            found = persist(partial(self.effects.of_job, job_id), self.clock)
            rows |= {row.effect_id: row for row in found}
        return [fresh.get(job.job_id, job) for job in jobs], [
            replace(
                one,
                job=fresh.get(one.job.job_id, one.job),
                row=rows.get(one.row.effect_id, one.row) if _unrecorded(one.row) else one.row,
            )
            for one in looked
        ]

    def _answers(self, asked: Sequence[EffectRow]) -> dict[str, LookupAnswer]:
        paces = {name: _Pace(self.per_minute.get(name), self.clock) for name in self.vendors}
        done, quiet = _Count(f"looked up at their vendor, of {len(asked):,}", self.tell), Counter[str]()

        def look(row: EffectRow) -> LookupAnswer:
            answer: LookupAnswer = NoAnswer("not asked: it gave no answer before")
            for _ in range(LOOKUP_TRIES):
                if quiet[row.vendor] >= SILENT:
                    break
                paces[row.vendor].wait()
                answer = self.vendors[row.vendor].look_up(row.effect_id, timeout_s=LOOKUP_TIMEOUT_S)
                if not isinstance(answer, NoAnswer):
                    quiet[row.vendor] = 0
                    break
                quiet[row.vendor] += 1
            done.one()
            return answer

        with ThreadPoolExecutor(max_workers=max(1, self.threads)) as pool:
            return dict(zip((row.effect_id for row in asked), pool.map(look, asked), strict=True))


def chosen(
    found: Sequence[Incident], since: datetime, until: datetime, incident_id: str | None = None
) -> tuple[Incident, ...]:
    """The incidents that are meant, oldest first: the one named, or those of this time."""
    if incident_id is not None:
        named = [one for one in found if one.incident_id == incident_id]
        if not named:
            there = ", ".join(one.incident_id for one in found[:5]) or "none"
            raise BadInput("incident", f"{incident_id[:32]!r} is not one of the lane's: {there}")
        return tuple(named)
    return tuple(
        one for one in reversed(found) if one.opened_at <= until and (one.closed_at is None or one.closed_at >= since)
    )


def sampled(rows: Sequence[tuple[EffectRow, Job]], sample: int | None) -> list[EffectRow]:
    """Which effects are looked up: all, or those that may well be wrong and a share of the rest that ids decide."""
    if sample is None or sample >= len(rows):
        return [row for row, _ in rows]
    suspect = [row for row, job in rows if row.state is not EffectState.ACCEPTED or row.fence > 1 or job.replay_count]
    known = {row.effect_id for row in suspect}
    rest = sorted((row for row, _ in rows if row.effect_id not in known), key=lambda row: row.effect_id)
    return [*suspect, *rest[: max(0, sample - len(suspect))]]


def _unrecorded(row: EffectRow) -> bool:
    return row.state is not EffectState.ACCEPTED


class _Pace:
    """Look-ups at most so often, by whichever thread."""

    def __init__(self, per_minute: int | None, clock: Clock) -> None:
        self._step = None if per_minute is None else timedelta(minutes=1) / max(1, per_minute)
        self._clock, self._next, self._lock = clock, clock.now(), threading.Lock()

    def wait(self) -> None:
        """Until it is this caller's turn."""
        if self._step is None:
            return
        with self._lock:
            at = max(self._next, self._clock.now())
            self._next = at + self._step
        if (ahead_s := (at - self._clock.now()).total_seconds()) > 0:
            self._clock.sleep(ahead_s)


class _Count:
    """Tells how far it is, now and then."""

    def __init__(self, what: str, tell: Tell) -> None:
        self._what, self._tell, self._number, self._lock = what, tell, 0, threading.Lock()

    def one(self) -> None:
        """One more."""
        with self._lock:
            self._number += 1
            if self._number % TOLD_EVERY == 0:
                self._tell(f"{self._number:,} {self._what}")
