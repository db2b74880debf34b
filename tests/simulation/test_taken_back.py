"""A job taken back from its worker at every boundary of an attempt: whatever the worker does next, one send."""

from __future__ import annotations

from collections import Counter

import pytest

from shared.adapters.memory.faults import Boundary, Fault, Injection, Scripted
from shared.adapters.memory.records import MemoryHistory
from shared.core.errors import BadInput
from shared.usecases import steer
from tests.vendors_and_tasks import VendorKind
from tests.world import World

pytestmark = pytest.mark.simulation

TAKEN_BACK_S = 5.0
FREEZES_S = (30.0, 70.0, 125.0)
"""Thawed before the dispatcher brings the job back, while or after a second worker has it, and past the visibility."""


def attempt_of(task: str) -> list[Boundary]:
    """Every call the first worker makes when nothing goes wrong."""
    world = World()
    world.enqueue(task)
    assert world.run_until_quiet()
    return [boundary for boundary in world.faults.trace if boundary.worker == "w1"]


def taken_back(world: World, job_id: str, seen: Counter[str]) -> None:
    """What an operator does; a refusal is an answer, too."""
    try:
        steer.reset_to_pending(
            job_id,
            by="alice",
            why="hangs",
            jobs=world.jobs,
            effects=world.effects,
            history=MemoryHistory(),
            clock=world.clock,
        )
        seen["taken"] += 1
    except BadInput:
        seen["refused"] += 1


@pytest.mark.req("X2")
@pytest.mark.parametrize("task", ["reply", "reply_and_tag"])
@pytest.mark.parametrize("kind", list(VendorKind))
def test_a_job_taken_back_anywhere_is_sent_once(task: str, kind: VendorKind) -> None:
    """Frozen before each of its calls while the job is taken back, the first worker goes on later: nothing is sent
    twice, and nothing is lost."""
    seen: Counter[str] = Counter()
    for boundary in attempt_of(task):
        for freeze_s in FREEZES_S:
            plan = Scripted({boundary: Injection(Fault.FREEZE, freeze_s)})
            world = World(vendor=kind, plan=plan)
            job_id = world.enqueue(task)
            world.later(TAKEN_BACK_S, lambda world=world, job_id=job_id: taken_back(world, job_id, seen))  # type: ignore[misc]
            assert world.run_until_quiet(), boundary
            verdict = world.verdict()
            assert (verdict.duplicates, verdict.lost) == ({}, []), (boundary, freeze_s)
            world.close()
    # Both happened: taken back before the intent, refused while it stood open or after the end.
    assert min(seen["taken"], seen["refused"]) > 0
