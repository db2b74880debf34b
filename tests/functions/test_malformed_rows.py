"""Rows that anything may stand in, before the redriver and the governor: twenty thousand at each door, from a seed.

Each lane of a run has one malformed row, and one lane has none. Whatever the others hold: the run ends, that lane has
its turn, and what cannot be read is told and stands as it stood.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.adapters import capacity_rows, plan_rows, rows, signal_rows
from shared.adapters.attributes import Item
from shared.adapters.memory.event_sources import MemoryActuator
from shared.contract import env, table
from shared.core.capacity import CapacityState, Pin
from shared.core.job import Job, Status
from shared.core.plan import Plan, PlanState, Step, entry_of, manifest_hash
from shared.core.severity import Severity
from shared.core.signals import Counts, Moved, VendorCounts, minute_of
from tests.builders import NOW, a_job
from tests.functions.stage import LANE, Stage, a_stage
from tests.settings import settings_file

INPUTS, SEEDS = 20_000, (1, 2, 3, 4)
ODD_LANES = tuple(f"odd_{n:02}" for n in range(20))
RUNS = INPUTS // len(ODD_LANES) // len(SEEDS)
LANES = (*ODD_LANES, "support")
"""The good lane is the last: whatever goes wrong before it is its neighbours' fault."""
TEXTS = (
    *("", " ", "\0", "x" * 5000, "é|é|é|é", "|||", "a|1|b", "a|-1|b|c", "a|٣|b|c", "-", "0", "null", "NaN"),
    *("queued", "running", "aborted", "finished", "halt", "severe", "completed", "plan-odd_00", "plan-support"),
    *("2026-01-01T00:00:00.000Z", "2026-01-01", "9999-12-31T23:59:59.999-14:00", "0001-01-01T00:00:00+14:00"),
    *("1970-01-01T00:00:00Z", "2199-12-31T00:00:00Z", "2026-01-01T00:00:00"),
)
NUMBERS = (
    "0",
    "1",
    "-1",
    "-100",
    "2",
    "7",
    "1001",
    "1" + "0" * 18,
    "9" * 37,
    "-" + "9" * 37,
    "1.5",
    "1E+100",
    "-1E-90",
)
SHAPES: tuple[Any, ...] = (
    *({"BOOL": True}, {"BOOL": False}, {"NULL": True}, {"B": b"\xff"}, {"BS": [b"x"]}, {"SS": ["x"]}),
    *({"NS": ["-5", "9" * 37]}, {"NS": ["1.5"]}, {"NS": ["0", "7"]}, {"L": []}, {"L": [{"S": "x"}]}),
    *({"L": [{"N": "1"}]}, {"M": {}}, {"M": {"a": {"B": b"x"}}}, {"M": {"a": {"N": "9" * 37}}}),
    *({"M": {"job": {"S": "completed"}}}, {"M": {"cap": {"N": "-3"}}}, {"M": {"until": {"S": "9999-12-31"}}}),
)
"""Only what a table can hold: a value without a type, or a number of sixty digits, is refused by DynamoDB itself."""


KEYS = {table.PK, table.SK, table.WAITING_PK}
"""A key is of the type its table or index says."""


def an_odd_attribute(chance: random.Random) -> Any:
    """Of a type, a shape or a value that nobody writes, or somebody else."""
    kind = chance.random()
    if kind < 0.35:
        return {"S": chance.choice(TEXTS)}
    return {"N": chance.choice(NUMBERS)} if kind < 0.7 else copy.deepcopy(chance.choice(SHAPES))


def spoiled(item: Item, chance: random.Random) -> Item:
    """The row with one to three attributes changed, lost or new, in it or in a map or list of its; its key stays."""
    item = copy.deepcopy(item)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        name = chance.choice([*sorted(set(item) - KEYS), "a_new_one"])
        within = item.get(name)
        inner = within.get("M") or within.get("L") if isinstance(within, dict) else None
        if chance.random() < 0.15:
            item.pop(name, None)
        elif isinstance(inner, dict) and inner and chance.random() < 0.5:
            inner[chance.choice(sorted(inner))] = an_odd_attribute(chance)
        elif isinstance(inner, list) and inner and chance.random() < 0.5:
            inner[chance.randrange(len(inner))] = an_odd_attribute(chance)
        elif name == table.WAITING_SK:
            item[name] = {"S": chance.choice(TEXTS) or "-"}
        else:
            item[name] = an_odd_attribute(chance)
    return item


@contextmanager
def a_stage_of_lanes() -> Iterator[Stage]:
    """The handlers, with all of `LANES`."""
    with a_stage() as stage, pytest.MonkeyPatch.context() as patch:
        for name in LANES:
            stage.desk.add_lane(replace(stage.desk.lane, name=name))
        stage.actuator = MemoryActuator(LANES)
        patch.setenv(env.SETTINGS, settings_file(lanes=dict.fromkeys(LANES, LANE)))
        yield stage


def tick(stage: Stage, function: str) -> dict[str, int]:
    """One run in a slot of its own, with little time."""
    stage.desk.clock.advance(60)
    answer = stage.invoke(function, {}, left_s=3)
    assert answer["ran"]
    counts: dict[str, int] = answer["counts"]
    return counts


# ------------------------------------------------------------------------------------------------ redriver
def a_running_plan(stage: Stage, lane: str, run: int) -> tuple[Plan, list[Job]]:
    """A plan of three failed jobs that has released one of them."""
    jobs = [
        stage.desk.put(a_job(lane=lane, task="answer_event", key=f"{run}-{n}", status=Status.FAILED)) for n in range(3)
    ]
    manifest = [entry_of(job) for job in jobs]
    now = stage.desk.clock.now()
    plan = Plan(
        plan_id=f"plan-{lane}",
        lane=lane,
        requester="ada",
        cause="token",
        hash=manifest_hash(manifest),
        count=2,
        state=PlanState.RUNNING,
        created_at=now,
        valid_until=now + timedelta(hours=1),
        approver="bob",
        approved_at=now,
        started_by="ada",
        started_at=now,
        chosen={"lane": lane},
    )
    plans = stage.desk.plans
    plans._plans[plan.plan_id] = plan_rows.plan_item(plan)
    plans._manifests[plan.plan_id] = list(plan_rows.manifest_items(plan.plan_id, manifest))
    steps = (Step(number=1, at=now, tried=0, letters=3, waits_for="canary"), Step(number=2, at=now, tried=0, quiet=1))
    plans._steps[plan.plan_id] = {step.number: plan_rows.step_item(plan.plan_id, step) for step in steps}
    plans._lanes[lane] = plan_rows.lane_item(lane, plan.plan_id)
    return plan, jobs


def spoil_plan(stage: Stage, plan: Plan, jobs: list[Job], chance: random.Random) -> None:
    """One row of it."""
    plans = stage.desk.plans
    match chance.choice(("plan", "plan", "manifest", "manifest", "step", "step", "lane", "job")):
        case "plan":
            plans._plans[plan.plan_id] = spoiled(plans._plans[plan.plan_id], chance)
        case "manifest":
            plans._manifests[plan.plan_id] = [spoiled(item, chance) for item in plans._manifests[plan.plan_id]]
        case "step":
            steps = plans._steps[plan.plan_id]
            number = chance.choice(sorted(steps))
            steps[number] = spoiled(steps[number], chance)
        case "lane":
            plans._lanes[plan.lane] = spoiled(plans._lanes[plan.lane], chance)
        case "job":
            job = chance.choice(jobs)
            stage.desk.jobs.plant(spoiled(stage.desk.jobs.item(job.job_id) or {}, chance))


@pytest.mark.req("C10")
@pytest.mark.fault("K1", "C8")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_plan_manifest_step_or_job_stops_the_redriver(seed: int) -> None:
    """The plan of the good lane releases its canary in every run, under its own lane."""
    chance = random.Random(seed)
    told = 0
    for _ in range(RUNS // 25):
        with a_stage_of_lanes() as stage:
            for run in range(25):
                stage.desk.plans._plans.clear()
                for lane in LANES:
                    plan, jobs = a_running_plan(stage, lane, run)
                    if lane != "support":
                        spoil_plan(stage, plan, jobs, chance)
                counts = tick(stage, "redriver")
                assert counts["support.released"] == 1
                told += sum(counts.get(f"{lane}.lost", 0) for lane in ODD_LANES)
    assert told > RUNS


# ------------------------------------------------------------------------------------------------ governor
def a_capacity(now: datetime) -> CapacityState:
    """One with everything that a state can have."""
    return CapacityState(
        cap=4,
        version=3,
        changed_at=now,
        lowered_at=now,
        calm_since=now,
        looked_at=now,
        moved=Moved(at=now, age_s=5),
        pin=Pin(cap=6, until=now + timedelta(hours=1), by="ada", why="drain"),
        reason="calm",
        severity=Severity.NORMAL,
    )


def spoil_lane(stage: Stage, lane: str, chance: random.Random) -> tuple[dict[str, Item], str, Item]:
    """One row of what the governor reads of a lane: where it stands, and the row."""
    now, control = stage.desk.clock.now(), stage.desk.control
    counts = Counts(claims=3, completed=2, oldest_age_s=9, vendors={"helpdesk": VendorCounts(calls=9, limited=1)})
    minutes: dict[str, Item] = stage.desk.signals._rows.setdefault(lane, {})
    minutes.clear()
    for back in (1, 2):
        at = minute_of(now - timedelta(minutes=back))
        key = signal_rows.minute_key(lane, at)
        minutes[key[table.SK]["S"]] = {**key, **signal_rows.added(counts), table.TTL: signal_rows.expiry_of(at)}
    caps: dict[str, Item] = control._caps
    caps[lane] = capacity_rows.capacity_item(lane, a_capacity(now))
    where, name = (caps, lane) if chance.random() < 0.5 else (minutes, chance.choice(sorted(minutes)))
    where[name] = spoiled(where[name], chance)
    if chance.random() < 0.2:
        job = a_job(lane=lane, task="answer_event", key=f"{now:%H-%M}", due=NOW, not_before_at=NOW)
        stage.desk.jobs.plant(spoiled(rows.job_item(job, table.ordered_wpk(lane, 0, 2)), chance))
    return where, name, copy.deepcopy(where[name])


@pytest.mark.req("C6")
@pytest.mark.fault("K1", "E5", "E9")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_capacity_minute_or_job_stops_the_governor(seed: int) -> None:
    """The good lane is governed in every run; a row that cannot be read is left as it is, and no cap goes beyond the
    lane's ceiling, whatever stands beside it."""
    chance = random.Random(seed)
    lost = 0
    for _ in range(RUNS // 25):
        with a_stage_of_lanes() as stage:
            for _ in range(25):
                planted = {lane: spoil_lane(stage, lane, chance) for lane in ODD_LANES}
                counts = tick(stage, "governor")
                assert "support.lost" not in counts
                assert counts["support.cap"] >= stage.desk.lane.floor
                for lane, (where, name, row) in planted.items():
                    if counts.get(f"{lane}.lost"):
                        lost += 1
                        assert where[name] == row
                    else:
                        assert 0 <= counts[f"{lane}.cap"] <= stage.desk.lane.ceiling
    assert lost > RUNS
