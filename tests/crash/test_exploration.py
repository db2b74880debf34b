"""Every call boundary with every fault there, singly and in pairs: never twice, never lost, and it ends well."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

import pytest

from shared.adapters.memory.faults import Boundary, Fault, Injection
from tests.crash.explore import KINDS, READS, Tally, execute, explore, must_hold, pairs, singles
from tests.crash.report import PROPERTY
from tests.crash.walks import ONE_EFFECT, SEND_PATHS, TWO_EFFECTS, WHOLE_WALKS, WINDOWS, Walk
from tests.vendors_and_tasks import VendorKind

pytestmark = pytest.mark.crash

Note = Callable[[str, object], None]
PARTS = 4


def _report(tally: Tally, title: str, record_property: Note) -> None:
    record_property(PROPERTY, json.dumps({"title": title, **tally.document()}))
    assert tally.executions
    assert not tally.wrong, f"{len(tally.wrong)} executions, the first: " + "\n".join(tally.wrong[:5])


@pytest.mark.req("R8")
@pytest.mark.req("R9")
@pytest.mark.req("R14")
@pytest.mark.fault("A1")
@pytest.mark.fault("A2")
@pytest.mark.fault("A3")
@pytest.mark.fault("A4")
@pytest.mark.fault("A6")
@pytest.mark.fault("B7")
@pytest.mark.fault("B8")
@pytest.mark.fault("C3")
@pytest.mark.fault("K3")
@pytest.mark.parametrize("walk", WHOLE_WALKS, ids=lambda walk: walk.name)
def test_one_fault_anywhere_neither_doubles_nor_loses(walk: Walk, record_property: Note) -> None:
    """One fault at any call of enqueue, stream consumer, worker, dispatcher, triage or auditor: one send, one end."""
    _report(explore(singles(walk), must_hold), "one fault", record_property)


@pytest.mark.req("R8")
@pytest.mark.fault("A13")
@pytest.mark.parametrize("walk", WINDOWS, ids=lambda walk: walk.name)
def test_every_answer_to_a_second_request_and_a_window_that_ends(walk: Walk, record_property: Note) -> None:
    """Accepted with its answer lost, then any answer to what follows, one fault anywhere, the vendor's window over, and
    a replay a day later: one send, and no end that says more than is known."""
    _report(explore(singles(walk), must_hold), "windows that end", record_property)


@pytest.mark.slow
@pytest.mark.req("R8")
@pytest.mark.fault("A1")
@pytest.mark.fault("A3")
@pytest.mark.fault("A4")
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("walk", SEND_PATHS, ids=lambda walk: walk.name)
def test_two_faults_on_the_send_path_neither_double_nor_lose(walk: Walk, part: int, record_property: Note) -> None:
    """Any two faults on the way from claim to settle, the second wherever the first one led."""
    tally = explore(pairs(walk, part=part, parts=PARTS), must_hold)
    _report(tally, "two faults, send path", record_property)


def test_recording_finds_every_call_of_the_send_path() -> None:
    """The boundaries are those of the protocol, found by recording and in its order: a new call is a new boundary."""
    recorded = execute(TWO_EFFECTS, VendorKind.NEITHER, {})
    of_worker = [f"{b.port}.{b.method}#{b.nth}" for b in recorded.trace if b.worker == "w1"]
    assert of_worker == [
        "queues.receive#1",
        "control.switches#1",
        "jobs.claim#1",
        "content.get#1",
        "effects.intend#1",
        "vendor.perform#1",
        "effects.accept#1",
        "effects.intend#2",
        "vendor.perform#2",
        "effects.accept#2",
        "jobs.move#1",
        "queues.delete#1",
    ]
    roles = {boundary.worker.rstrip("0123456789") for walk in WHOLE_WALKS for boundary in _trace(walk)}
    assert roles == {"client", "stream", "w", "dispatcher", "triage", "sweeper", "auditor"}


def test_faults_left_out_of_pairs_end_like_those_kept() -> None:
    """Dying before a call is dying after the one before it; a read that is refused is a read whose answer is lost."""
    for walk in SEND_PATHS:
        recorded = [boundary for boundary in _trace(walk) if boundary.worker == "w1"]
        for kind in KINDS:
            for before, boundary in pairwise(recorded):
                assert _end(walk, kind, before, Fault.CRASH_AFTER) == _end(walk, kind, boundary, Fault.CRASH_BEFORE), (
                    boundary
                )
                if boundary.method in READS:
                    assert _end(walk, kind, boundary, Fault.THROTTLE) == _end(
                        walk, kind, boundary, Fault.APPLIED_BUT_ERROR
                    ), boundary


def test_an_execution_replays_identically() -> None:
    """The same faults give the same calls in the same order, with threads and without."""
    two = [boundary for boundary in _trace(ONE_EFFECT) if boundary.method in ("perform", "accept")]
    frozen = {boundary: Injection(Fault.FREEZE, 125.0) for boundary in two}
    other = {Boundary("w2", "vendor", "look_up", 1): Injection(Fault.FREEZE, 10.0)}
    for faults in ({}, frozen, frozen | other):
        first = execute(ONE_EFFECT, VendorKind.EXACT, faults)
        again = execute(ONE_EFFECT, VendorKind.EXACT, faults)
        assert first.trace == again.trace
        assert first.verdict == again.verdict
        assert len(first.fired) == len(faults)


def _trace(walk: Walk) -> list[Boundary]:
    return execute(walk, VendorKind.DEDUPES, {}).trace


def _end(walk: Walk, kind: VendorKind, boundary: Boundary, fault: Fault) -> tuple[str, int]:
    execution = execute(walk, kind, {boundary: Injection(fault)})
    return execution.end, execution.verdict.accepted
