"""The promises of `LaneQueues` and `DeadLetterQueues`, kept by every adapter."""

from __future__ import annotations

import json

import pytest

from shared.contract import envelope
from shared.core.errors import UnknownLane
from shared.core.job import Status
from shared.core.message import DeadLetter, QueueDepth, dead_letter_of, message_of
from tests.builders import NOW, a_job
from tests.contract.worlds import World


def a_letter(key: str = "event-1", lane: str = "support") -> DeadLetter:
    """The dead letter of a failed job."""
    return dead_letter_of(a_job(key=key, lane=lane, status=Status.FAILED))


# ------------------------------------------------------------------------------------------- lane queues
def test_a_message_is_a_ticket_in_its_tenants_group(world: World) -> None:
    """Ids only, in the lane's own queue, grouped by tenant so that the queue is fair."""
    job = a_job(tenant="acme:eu@42/x")
    assert world.queues.send([message_of(job)]) == []
    (sent,) = world.sent("support")
    assert envelope.decode_ticket(sent.body) == envelope.Ticket(job_id=job.job_id, lane="support")
    assert set(json.loads(sent.body)) == {"v", "job", "lane"}
    assert sent.group == "acme:eu@42/x"


@pytest.mark.fault("B11")
def test_messages_of_any_number_and_lane_arrive_each_once(world: World) -> None:
    """More than a batch, for two lanes at once: each in its own queue, none lost, none doubled, all small."""
    support = [a_job(key=f"event-{n}") for n in range(23)]
    sharded = [a_job(key=f"event-{n}", lane="sharded") for n in range(11)]
    assert world.queues.send([message_of(job) for job in (*support, *sharded)]) == []
    for lane, jobs in (("support", support), ("sharded", sharded)):
        bodies = [sent.body for sent in world.sent(lane)]
        assert sorted(envelope.decode_ticket(body).job_id for body in bodies) == sorted(j.job_id for j in jobs)
        assert all(len(body) < envelope.MAX_BYTES for body in bodies)


def test_sending_nothing_is_no_error(world: World) -> None:
    """An empty outbox needs no call."""
    assert world.queues.send([]) == []
    assert world.dead_letters.send([]) == []


def test_depth_counts_what_is_visible_and_what_is_delayed(world: World) -> None:
    """A delayed message waits, and is counted apart."""
    assert world.queues.depth("support") == QueueDepth(visible=0, in_flight=0)
    world.queues.send([message_of(a_job(key=f"event-{n}")) for n in range(3)])
    world.queues.send([message_of(a_job(key="later"), delay_s=900)])
    depth = world.queues.depth("support")
    assert depth == QueueDepth(visible=3, in_flight=0, delayed=1)
    assert depth.total == 4


# ------------------------------------------------------------------------------------ dead-letter queues
def test_a_dead_letter_carries_ids_and_codes(world: World) -> None:
    """Which job, why, since when; it reads as a ticket, so triage finds its job."""
    letter = a_letter()
    assert world.dead_letters.send([letter]) == []
    (message,) = world.dead_letters.receive("support", limit=10, hide_s=30)
    assert message.job_id == letter.job_id
    assert message.receive_count == 1
    assert json.loads(message.body) == {
        "v": 1,
        "job": letter.job_id,
        "lane": "support",
        "category": "retries_exhausted",
        "signature": "vendor_unavailable",
        "at": "2026-01-01T00:00:00.000Z",
    }
    assert letter.at == NOW


def test_looking_does_not_delete(world: World) -> None:
    """What was received is hidden for a while and still counts in the depth."""
    world.dead_letters.send([a_letter(f"event-{n}") for n in range(3)])
    assert len(world.dead_letters.receive("support", limit=10, hide_s=30)) == 3
    assert world.dead_letters.receive("support", limit=10, hide_s=30) == []
    assert world.dead_letters.depth("support") == QueueDepth(visible=0, in_flight=3)


def test_a_look_takes_up_to_its_limit(world: World) -> None:
    """More than a call gives, but not more than was asked for; each message once."""
    letters = [a_letter(f"event-{n}") for n in range(25)]
    assert world.dead_letters.send(letters) == []
    first = world.dead_letters.receive("support", limit=12, hide_s=30)
    rest = world.dead_letters.receive("support", limit=100, hide_s=30)
    assert (len(first), len(rest)) == (12, 13)
    assert {m.job_id for m in (*first, *rest)} == {letter.job_id for letter in letters}
    assert len({m.message_id for m in (*first, *rest)}) == 25


def test_a_deleted_message_is_gone(world: World) -> None:
    """By its receipt, and only that one; deleting it again is no error."""
    world.dead_letters.send([a_letter("event-1"), a_letter("event-2")])
    gone, kept = world.dead_letters.receive("support", limit=2, hide_s=30)
    world.dead_letters.delete("support", gone.receipt)
    world.dead_letters.delete("support", gone.receipt)
    assert world.dead_letters.depth("support").total == 1
    assert kept.job_id != gone.job_id


@pytest.mark.parametrize(
    "body", ["not json", '{"v":1,"job":"x","lane":"support"}', "[]", '{"v":1,"v":1}', '{"v":NaN}', "[" * 5000]
)
def test_what_is_not_ours_is_kept_with_its_bytes(world: World, body: str) -> None:
    """A body that cannot be read has no job, harms no neighbour, and is there in full."""
    world.plant_dead("support", body)
    world.dead_letters.send([a_letter()])
    messages = world.dead_letters.receive("support", limit=10, hide_s=30)
    assert {m.body: m.job_id for m in messages}[body] is None
    assert {m.job_id for m in messages} == {None, a_letter().job_id}


def test_a_ticket_that_died_is_read_as_its_job(world: World) -> None:
    """What SQS moved here by itself is an ordinary ticket."""
    job = a_job()
    world.plant_dead("support", envelope.encode_ticket(job.job_id, job.lane))
    (message,) = world.dead_letters.receive("support", limit=10, hide_s=30)
    assert message.job_id == job.job_id


@pytest.mark.parametrize("kind", ["moto"])
def test_an_unknown_lane_is_named(world: World) -> None:
    """No queue of another lane is taken instead."""
    for ask in (
        lambda: world.queues.depth("nowhere"),
        lambda: world.dead_letters.depth("nowhere"),
        lambda: world.queues.send([message_of(a_job(lane="nowhere"))]),
    ):
        with pytest.raises(UnknownLane, match="nowhere"):
            ask()
