"""The memory adapters are only a proof if they fail as the real ones do: what their port suites cannot see."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.faults import Boundary, Crashed, Fault, Faults, Injection, Scripted, Worker
from shared.adapters.memory.queues import MemoryLaneQueues
from shared.adapters.memory.stores import MemoryJobStore
from shared.adapters.memory.strand import Strand
from shared.adapters.memory.vendor import Says
from shared.core.effects import Absent, Accepted, Found, NoAnswer, Refused, Unknown
from shared.core.errors import Unavailable
from shared.core.message import message_of
from tests.builders import NOW, a_job, a_lane
from tests.vendors_and_tasks import VendorKind, a_vendor, effect_of

pytestmark = pytest.mark.simulation

LANES = {"support": a_lane()}


def _queues(clock: VirtualClock, *, duplicate_p: float = 0.0, refuse_p: float = 0.0) -> MemoryLaneQueues:
    rng = random.Random(7) if duplicate_p or refuse_p else None
    return MemoryLaneQueues(clock=clock, lanes=LANES, rng=rng, duplicate_p=duplicate_p, refuse_p=refuse_p)


# ------------------------------------------------------------------------------------------------- clocks
def test_time_moves_only_when_told_and_a_skewed_clock_is_always_as_wrong() -> None:
    """Sleeping moves everybody's time; a wrong clock stays wrong by the same amount."""
    clock = VirtualClock(NOW)
    late = clock.skewed(-30)
    assert clock.now() == NOW
    late.sleep(1.5)
    assert clock.now() == NOW + timedelta(seconds=1.5)
    assert late.now() == clock.now() - timedelta(seconds=30)


# ------------------------------------------------------------------------------------------------- queues
def test_a_received_message_is_hidden_and_comes_back_unless_deleted() -> None:
    """Visibility: hidden for its time, then received again with a higher count; deleted by its receipt for good."""
    clock = VirtualClock()
    queues = _queues(clock)
    queues.send([message_of(a_job())])
    first = queues.receive("support")[0]
    assert queues.receive("support") == []
    assert queues.depth("support").in_flight == 1
    clock.advance(120)
    second = queues.receive("support")[0]
    assert (first.delivery.receive_count, second.delivery.receive_count) == (1, 2)
    queues.delete("support", second.receipt)
    clock.advance(120)
    assert queues.receive("support") == []


def test_a_message_received_too_often_goes_to_the_dead_letter_queue() -> None:
    """At the receive after the last allowed one it is moved, not delivered."""
    clock = VirtualClock()
    queues = _queues(clock)
    queues.send([message_of(a_job())])
    for _ in range(10):
        assert len(queues.receive("support")) == 1
        clock.advance(120)
    assert queues.receive("support") == []
    assert queues.dead_letters.job_ids("support") == [a_job().job_id]


def test_a_delayed_message_is_seen_after_its_delay() -> None:
    """Until then it counts as delayed, not as visible."""
    clock = VirtualClock()
    queues = _queues(clock)
    queues.send([message_of(a_job(), delay_s=30)])
    assert queues.receive("support") == []
    assert queues.depth("support").delayed == 1
    clock.advance(30)
    assert len(queues.receive("support")) == 1


def test_a_seeded_queue_reorders_doubles_and_refuses_the_same_way_each_time() -> None:
    """Chance comes from the seed alone."""

    def story() -> tuple[list[str | None], int]:
        queues = _queues(VirtualClock(), duplicate_p=0.3, refuse_p=0.2)
        refused = queues.send([message_of(a_job(key=f"event-{number}")) for number in range(40)])
        received = [one.delivery.job_id for one in queues.receive("support", limit=60)]
        return received, len(refused)

    received, refused = story()
    assert (received, refused) == story()
    assert 0 < refused < 40
    assert len(received) > len(set(received))
    assert received != sorted(received, key=str)


# ------------------------------------------------------------------------------------- stream and index
def test_the_stream_gives_a_batch_again_until_it_is_committed() -> None:
    """At least once, in order, each reader for itself; a write that changes nothing makes no record."""
    clock = VirtualClock()
    jobs = MemoryJobStore(lanes=LANES, clock=clock)
    one, other = jobs.stream.reader(), jobs.stream.reader()
    jobs.put(a_job())
    jobs.claim(a_job().job_id, by="w1", now=NOW)
    jobs.claim(a_job().job_id, by="w1", now=NOW)
    assert [record.event_name for record in one.read()] == ["INSERT", "MODIFY"]
    assert len(one.read()) == 2
    one.commit(one.read())
    assert one.read() == []
    assert len(other.read()) == 2


def test_the_stream_forgets_after_a_day_and_a_reader_gives_up_what_is_too_old() -> None:
    """Records over twelve hours old are passed over and noted; over a day old they are gone."""
    clock = VirtualClock()
    jobs = MemoryJobStore(lanes=LANES, clock=clock)
    reader = jobs.stream.reader()
    jobs.put(a_job(key="old"))
    clock.advance(13 * 3600)
    jobs.put(a_job(key="young"))
    assert [record.sequence for record in reader.read()] == [2]
    assert reader.discarded == [1]
    clock.advance(12 * 3600)
    assert [record.sequence for record in jobs.stream.since(0, 10)] == [2]
    assert jobs.stream.trimmed == 1


def test_an_index_with_a_lag_shows_a_write_only_later_and_in_order() -> None:
    """A job stands there late, and leaves it late."""
    clock = VirtualClock(NOW)
    jobs = MemoryJobStore(lanes=LANES, clock=clock, index_lag_s=20)
    jobs.put(a_job(due=NOW, not_before_at=NOW))
    assert jobs.waiting(a_lane(), due_before=NOW, limit=10) == []
    clock.advance(10)
    jobs.claim(a_job().job_id, by="w1", now=clock.now())
    clock.advance(10)
    assert [entry.job_id for entry in jobs.waiting(a_lane(), due_before=NOW, limit=10)] == [a_job().job_id]
    clock.advance(10)
    assert jobs.waiting(a_lane(), due_before=NOW, limit=10) == []


# ------------------------------------------------------------------------------------------------ vendor
def test_a_vendor_keeps_to_its_abilities() -> None:
    """It deduplicates by key inside its window or not at all; its look-up knows at once, later, or never."""
    clock = VirtualClock()
    effect = effect_of("reply", a_job())
    accepts = {}
    for kind in VendorKind:
        vendor = a_vendor(kind, clock)
        for _ in range(2):
            vendor.perform(effect, key="k", timeout_s=1)
        accepts[kind] = len(vendor.accepts)
        seen = vendor.look_up("k", timeout_s=1)
        clock.advance(20)
        later = vendor.look_up("k", timeout_s=1)
        expected = {
            VendorKind.DEDUPES: (NoAnswer, NoAnswer),
            VendorKind.EXACT: (Found, Found),
            VendorKind.EVENTUAL: (Absent, Found),
            VendorKind.NEITHER: (NoAnswer, NoAnswer),
        }[kind]
        assert (type(seen), type(later)) == expected
    assert accepts == {VendorKind.DEDUPES: 1, VendorKind.EXACT: 2, VendorKind.EVENTUAL: 2, VendorKind.NEITHER: 2}
    vendor = a_vendor(VendorKind.DEDUPES, clock)
    vendor.perform(effect, key="k", timeout_s=1)
    clock.advance(24 * 3600)
    vendor.perform(effect, key="k", timeout_s=1)
    assert vendor.duplicates() == {"k": 2}


def test_a_vendor_follows_its_script_and_its_record_is_the_truth() -> None:
    """What it answered and what it accepted are two things; the record has only what it accepted."""
    vendor = a_vendor(VendorKind.NEITHER, VirtualClock(), script=list(Says))
    effect = effect_of("reply", a_job())
    answers = [type(vendor.perform(effect, key=str(number), timeout_s=1)) for number in range(len(Says))]
    assert answers == [Accepted, *[Refused] * 7, *[Unknown] * 3]
    assert [accept.key for accept in vendor.accepts] == ["0", "10"]


# ------------------------------------------------------------------------------------------------ faults
@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER])
def test_a_crash_passes_every_handler_and_silences_the_worker(fault: Fault) -> None:
    """No `except Exception` eats it, no `finally` reaches a port any more; before or after decides what was written."""
    jobs, worker = MemoryJobStore(lanes=LANES), Worker("w1")
    port = Faults(Scripted({Boundary("w1", "jobs", "put", 1): Injection(fault)})).wrap(jobs, "jobs", worker)

    def handler() -> None:
        try:
            port.put(a_job())
        except Exception:
            pytest.fail("a crash is not an Exception")
        finally:
            port.put(a_job(key="from-finally"))

    with pytest.raises(Crashed):
        handler()
    written = {row.key for row in jobs.scan() if not isinstance(row, Exception)}
    assert written == ({"event-1"} if fault is Fault.CRASH_AFTER else set())


def test_an_answer_lost_and_a_refusal_look_alike_and_are_not() -> None:
    """Both say unavailable; one was applied. A vendor never raises: it answers unknown, or no."""
    jobs, worker = MemoryJobStore(lanes=LANES), Worker("w1")
    vendor = a_vendor(VendorKind.NEITHER, VirtualClock())
    script = {
        Boundary("w1", "jobs", "put", 1): Injection(Fault.APPLIED_BUT_ERROR),
        Boundary("w1", "jobs", "put", 2): Injection(Fault.THROTTLE),
        Boundary("w1", "vendor", "perform", 1): Injection(Fault.APPLIED_BUT_ERROR),
        Boundary("w1", "vendor", "perform", 2): Injection(Fault.THROTTLE),
    }
    faults = Faults(Scripted(script))
    for key in ("applied", "refused"):
        with pytest.raises(Unavailable):
            faults.wrap(jobs, "jobs", worker).put(a_job(key=key))
    assert [row.key for row in jobs.scan() if not isinstance(row, Exception)] == ["applied"]
    sent = faults.wrap(vendor, "vendor", worker)
    effect = effect_of("reply", a_job())
    assert isinstance(sent.perform(effect, key="a", timeout_s=1), Unknown)
    assert isinstance(sent.perform(effect, key="b", timeout_s=1), Refused)
    assert [accept.key for accept in vendor.accepts] == ["a"]
    assert [fault for _, fault in faults.fired] == [Fault.APPLIED_BUT_ERROR, Fault.THROTTLE] * 2


def test_an_outage_lasts_for_more_calls_than_anybody_retries() -> None:
    """Only this port, only this worker's process; a new process finds it working."""
    jobs, worker = MemoryJobStore(lanes=LANES), Worker("w1")
    faults = Faults(Scripted({Boundary("w1", "jobs", "get", 1): Injection(Fault.OUTAGE)}))
    port = faults.wrap(jobs, "jobs", worker)
    for _ in range(4):
        with pytest.raises(Unavailable):
            port.get("x")
    worker.revive()
    assert port.get("x") is None


def test_a_strand_runs_only_while_it_holds_the_baton() -> None:
    """Its steps and ours alternate exactly as told; what it raises reaches whoever let it run."""
    seen: list[str] = []

    def work() -> None:
        seen.append("first")
        strand.hold()
        seen.append("second")
        raise ValueError("from inside")

    strand = Strand("w1", work)
    strand.begin()
    seen.append("between")
    assert not strand.over
    with pytest.raises(ValueError, match="from inside"):
        strand.resume()
    assert seen == ["first", "between", "second"]
    assert strand.over
