"""What a job costs that scheduled runs take: in a provider's batch, and with a call of its own. Counted, not timed."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from functions.rewrite.handler import model_of
from functions.rewrite.prompts import RESULT, accepted, prompt_of
from functions.rewrite.tasks import TASKS
from ops.bench.table import Measured, Row
from ops.simulator.lane_support import stage
from shared.adapters.memory.batch_provider import MemoryBatchProvider
from shared.adapters.memory.batches import MemoryBatchStore
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.stores import MemoryContentStore, MemoryControlStore, MemoryEffectStore, MemoryJobStore
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.meter import Meter, Usage
from shared.core.effects import Accepted, Answer, Call, Effect, Lookup, NoAnswer
from shared.core.rewrite import group_of
from shared.core.sensitive import Sensitive
from shared.usecases.collect_batches import Collector
from shared.usecases.deadline import Deadline
from shared.usecases.enqueue import Enqueue, enqueue
from shared.usecases.keep_batches import BatchKeeper
from shared.usecases.run_attempt import Worker
from shared.usecases.run_jobs import JobRunner
from shared.usecases.submit_batches import Submitter
from shared.usecases.switchboard import SwitchBoard

JOBS = 200
BACKLOGS = (1_000, 10_000, 100_000)
WRITES_AT_MOST = 4


class _Model:
    """Answers at once."""

    name = "openai"
    dedupes_by_key: timedelta | None = None
    lookup = Lookup.NONE

    def perform(self, request: Effect | Call, *, key: str | None, timeout_s: float) -> Answer:
        """One completion."""
        return Accepted("c", Sensitive({"choices": [{"message": {"content": "kind"}, "finish_reason": "stop"}]}))

    def look_up(self, key: str, *, timeout_s: float) -> NoAnswer:
        """It cannot."""
        return NoAnswer("none")


class Office:
    """Production's lane `rewrite` on memory adapters that count."""

    def __init__(self) -> None:
        self.lane = stage().lanes["rewrite"]
        self.clock, self.meter = VirtualClock(), Meter()
        lanes = {self.lane.name: self.lane}
        self.jobs = MemoryJobStore(lanes=lanes, clock=self.clock, meter=self.meter)
        self.content, self._lanes = MemoryContentStore(), lanes
        self.board = SwitchBoard(control=MemoryControlStore(), clock=self.clock)
        self.keeper = BatchKeeper(
            lane=self.lane,
            providers={"openai": MemoryBatchProvider(clock=self.clock)},
            jobs=self.jobs,
            batches=MemoryBatchStore(meter=self.meter),
            clock=self.clock,
            telemetry=MemoryTelemetry(),
            accounts={},
        )

    def enqueue(self, count: int, *, surface: str = "weekly_harmony", later: int = 0) -> None:
        """So many jobs, the first ones of them not due before tomorrow."""
        for number in range(count):
            ids = {
                name: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name}{number}"))
                for name in (
                    *("rewrite_request_id", "recipient_user_id", "recipient_snapshot_id"),
                    "recipient_preference_snapshot_id",
                )
            }
            facts: dict[str, Any] = {
                **ids,
                "surface": surface,
                "rewrite_strength": "light_touch",
                "language_pair": {"from": "de", "to": "en"},
            }
            request = Enqueue(
                lane=self.lane.name,
                task="complaint_rewrite",
                tenant="home-1",
                key=(ids["rewrite_request_id"], ids["recipient_user_id"]),
                payload={"text": "you never do the dishes"},
                facts=facts,
                not_before=self.clock.now() + timedelta(days=1) if number < later else None,
            )
            enqueue(request, jobs=self.jobs, content=self.content, lanes=self._lanes, clock=self.clock)
            self.clock.advance(0.001)

    def submit(self) -> Mapping[str, int]:
        """One run of the submitter."""
        desk = Submitter(
            stage="bench",
            keeper=self.keeper,
            content=self.content,
            board=self.board,
            group_of=group_of,
            prompt_of=prompt_of,
        )
        return desk.run("run-1", self._deadline)

    def collect(self) -> Mapping[str, int]:
        """One run of the collector."""
        desk = Collector(keeper=self.keeper, content=self.content, accept=accepted, result=RESULT)
        return desk.run("run-2", self._deadline)

    def work(self) -> Mapping[str, int]:
        """One run of the worker."""
        machine = Worker(
            lane=self.lane,
            tasks=TASKS,
            jobs=self.jobs,
            effects=MemoryEffectStore(meter=self.meter),
            content=self.content,
            vendors={"openai": _Model()},
            board=self.board,
            clock=self.clock,
            telemetry=self.keeper.telemetry,
        )
        return JobRunner(worker=machine, model_of=model_of).run("run-3", self._deadline)

    @property
    def _deadline(self) -> Deadline:
        return Deadline(at=self.clock.now() + timedelta(seconds=240), clock=self.clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What the jobs of one run cost, from enqueue to completed."""

    jobs: Usage
    batches: Usage
    writes: Mapping[str, int]
    """Write calls on the jobs table, by kind."""


def life(*, batched: bool) -> Life:
    """One full run of production's size."""
    office = Office()
    office.enqueue(JOBS, surface="weekly_harmony" if batched else "direct_message")
    done = [office.submit(), office.collect()][-1] if batched else office.work()
    assert done["succeeded"] == JOBS
    used = office.meter.snapshot()
    of = {port: sum((one for (name, _), one in used.items() if name == port), Usage()) for port in ("jobs", "batches")}
    writes = {kind: use.calls for (port, kind), use in used.items() if port == "jobs" and use.write_units}
    return Life(jobs=of["jobs"], batches=of["batches"], writes=writes)


def read_units_of_a_run(queued: int) -> float:
    """What one submitting run reads when so many wait, half of them older and not yet due."""
    office = Office()
    office.enqueue(queued, later=queued // 2)
    before = office.meter.total()
    assert office.submit()["submitted"] == min(JOBS, queued // 2)
    return (office.meter.total() - before).read_units


def runs(backlogs: tuple[int, ...] = BACKLOGS) -> Measured:
    """The rows of the table."""
    batched, single = life(batched=True), life(batched=False)
    group, reads = "a rewrite in a batch, beside one call of its own", "read units of a submitting run of 200"

    def row(what: str, ours: float, other: float | None, digits: int = 2, at_most: float | None = None) -> Row:
        return Row(group=group, what=what, ours=ours, standard=other, digits=digits, at_most=at_most)

    writes = sum(batched.writes.values()) / JOBS
    rows = [
        row("write calls on its row, in its life", writes, sum(single.writes.values()) / JOBS, at_most=WRITES_AT_MOST),
        row("write units of its row", batched.jobs.write_units / JOBS, single.jobs.write_units / JOBS),
        row("write units of the index, apart", batched.jobs.index_units / JOBS, single.jobs.index_units / JOBS),
        row("write units of batch rows, apart", batched.batches.write_units / JOBS, None),
        row("read units", (batched.jobs + batched.batches).read_units / JOBS, single.jobs.read_units / JOBS),
        *(
            Row(group=reads, what=f"{queued:,} queued, half not due", ours=read_units_of_a_run(queued), digits=1)
            for queued in backlogs
        ),
    ]
    note = (
        "Penstock: a batch of 200 (production's max_jobs_per_run); standard: the same lane, one call a job. Rows of a"
        " rewrite are above 1 KB, so each write of one is two units."
    )
    return Measured(rows=tuple(rows), notes=(note,))
