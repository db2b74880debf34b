"""The promises of `EffectStore`, kept by every adapter: the memory that keeps a send from happening twice."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest

from shared.adapters import rows
from shared.contract import table
from shared.core.effects import EffectRow, EffectState
from shared.core.errors import EffectMoved, UnreadableRow
from shared.core.moment import epoch_s
from tests.builders import NOW, a_job, an_effect_row
from tests.contract.worlds import World

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def accepted(row: EffectRow, vendor_id: str = "v-1") -> EffectRow:
    """The row after the vendor took it."""
    return replace(row, state=EffectState.ACCEPTED, recorded_at=NOW + SECOND, vendor_id=vendor_id)


def refused(row: EffectRow) -> EffectRow:
    """The row after the vendor certainly did not take it."""
    return replace(row, state=EffectState.REFUSED, recorded_at=NOW + SECOND, reason="http_429")


def only(world: World) -> EffectRow:
    """The one effect of `a_job()`."""
    (row,) = world.effects.of_job(a_job().job_id)
    return row


@pytest.mark.fault("A3")
def test_an_intent_is_written_once(world: World) -> None:
    """Of any number of workers, one owns the intent; the others see whose it is."""
    intents = [an_effect_row(fence=fence) for fence in range(1, world.threads + 2)]
    with ThreadPoolExecutor(world.threads) as pool:
        answers = list(pool.map(world.effects.intend, intents))
    assert answers.count(None) == 1
    standing = only(world)
    assert standing.fence == intents[answers.index(None)].fence
    assert all(answer == standing for answer in answers if answer is not None)


@pytest.mark.fault("C3")
def test_an_intent_whose_reply_was_lost_is_still_ours(world: World) -> None:
    """The same fence and time again is the same intent; another worker's or another time's is not."""
    row = an_effect_row()
    assert world.effects.intend(row) is None
    assert world.effects.intend(row) is None
    assert world.effects.intend(replace(row, intent_at=NOW + SECOND)) == row
    assert world.effects.intend(replace(row, fence=2)) == row
    assert only(world) == row


@pytest.mark.fault("A1")
def test_an_open_intent_stands_in_the_way(world: World) -> None:
    """A later worker is not given the intent again, whatever its fence: the outcome is unknown."""
    row = an_effect_row()
    world.effects.intend(row)
    later = an_effect_row(fence=5, intent_at=NOW + HOUR, first_intent_at=NOW + HOUR)
    assert world.effects.intend(later) == row


def test_an_accepted_effect_is_never_begun_again(world: World) -> None:
    """What the vendor took stands, with the vendor's id, and no intent replaces it."""
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, accepted(row))
    standing = world.effects.intend(an_effect_row(fence=2, intent_at=NOW + HOUR))
    assert standing == accepted(row)


def test_an_intent_after_a_refusal_keeps_the_first_time(world: World) -> None:
    """It may be tried again; windows and expiry count from the first intent, and the old result is gone."""
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, refused(row))
    again = an_effect_row(fence=2, intent_at=NOW + HOUR, first_intent_at=NOW + HOUR)
    assert world.effects.intend(again) is None
    assert only(world) == replace(again, first_intent_at=NOW)


@pytest.mark.fault("C5")
def test_an_effect_row_expires_400_days_after_its_first_intent(world: World) -> None:
    """Neither a later intent nor a take-over nor a result changes when the guard may go."""
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, refused(row))
    again = an_effect_row(fence=2, intent_at=NOW + HOUR, first_intent_at=NOW + HOUR)
    world.effects.intend(again)
    taken = world.effects.take_over(only(world), fence=3, now=NOW + 2 * HOUR)
    world.effects.record(taken, accepted(taken))
    item = world.row("effects", table.job_pk(row.job_id), table.effect_sk(row.name))
    assert item is not None
    assert item[table.TTL] == {"N": str(epoch_s(NOW + timedelta(days=400)))}
    assert only(world).expires_at == NOW + timedelta(days=400)


@pytest.mark.fault("A13")
def test_an_open_intent_is_taken_over_once(world: World) -> None:
    """The new fence and time stand on it, the first time stays; who read the old one comes too late."""
    row = an_effect_row()
    world.effects.intend(row)
    taken = world.effects.take_over(row, fence=3, now=NOW + HOUR)
    assert taken == replace(row, fence=3, intent_at=NOW + HOUR, taken_over=True)
    assert only(world) == taken
    with pytest.raises(EffectMoved) as moved:
        world.effects.take_over(row, fence=4, now=NOW + HOUR)
    assert moved.value.current == taken


@pytest.mark.fault("C3")
def test_a_take_over_whose_reply_was_lost_is_still_ours(world: World) -> None:
    """The same fence asks again, a moment later: it has the intent."""
    row = an_effect_row()
    world.effects.intend(row)
    taken = world.effects.take_over(row, fence=3, now=NOW + HOUR)
    assert world.effects.take_over(row, fence=3, now=NOW + HOUR + SECOND) == taken


@pytest.mark.fault("A13")
def test_an_intent_begun_after_a_refusal_is_not_taken_over(world: World) -> None:
    """An operator's *not sent* closes an intent that was taken over: what is begun after it is as good as new."""
    row = an_effect_row()
    world.effects.intend(row)
    taken = world.effects.take_over(row, fence=3, now=NOW + HOUR)
    world.effects.record(taken, refused(taken))
    assert world.effects.intend(an_effect_row(fence=5, intent_at=NOW + 2 * HOUR)) is None
    assert only(world).taken_over is False


@pytest.mark.fault("A13")
def test_an_intent_of_ones_own_is_not_taken_for_a_take_over(world: World) -> None:
    """Begun under the same fence is not taken over: the answer to a lost reply is the row that was asked for."""
    row = an_effect_row(fence=3)
    world.effects.intend(row)
    with pytest.raises(EffectMoved):
        world.effects.take_over(replace(row, fence=2), fence=3, now=NOW + HOUR)


def test_an_intent_begun_anew_is_not_the_one_that_was_read(world: World) -> None:
    """Refused and begun again under the same fence: who read the first intent does not take over the second."""
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, refused(row))
    again = replace(row, intent_at=NOW + HOUR)
    assert world.effects.intend(again) is None
    with pytest.raises(EffectMoved) as moved:
        world.effects.take_over(row, fence=3, now=NOW + 2 * HOUR)
    assert moved.value.current == again


@pytest.mark.parametrize("result", [accepted, refused])
def test_an_effect_with_a_result_is_not_taken_over(world: World, result: object) -> None:
    """There is nothing open to take over."""
    assert callable(result)
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, result(row))
    with pytest.raises(EffectMoved) as moved:
        world.effects.take_over(row, fence=2, now=NOW)
    assert moved.value.current == result(row)


def test_no_effect_is_taken_over_or_recorded_out_of_nothing(world: World) -> None:
    """Without an intent there is no row to write on."""
    row = an_effect_row()
    with pytest.raises(EffectMoved) as taken:
        world.effects.take_over(row, fence=2, now=NOW)
    with pytest.raises(EffectMoved) as recorded:
        world.effects.record(row, accepted(row))
    assert (taken.value.current, recorded.value.current) == (None, None)
    assert world.effects.of_job(row.job_id) == []


def test_a_result_is_recorded_once(world: World) -> None:
    """The first result stands; a different one is refused and shown what stands."""
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, accepted(row))
    for other in (refused(row), accepted(row, "v-2")):
        with pytest.raises(EffectMoved) as moved:
            world.effects.record(row, other)
        assert moved.value.current == accepted(row)
    assert only(world) == accepted(row)


@pytest.mark.fault("C3")
@pytest.mark.parametrize("result", [accepted, refused])
def test_a_record_whose_reply_was_lost_counts_as_written(world: World, result: object) -> None:
    """The same result again is a success and changes nothing."""
    assert callable(result)
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, result(row))
    world.effects.record(row, result(row))
    assert only(world) == result(row)


@pytest.mark.fault("A4")
def test_a_record_with_an_old_fence_is_refused(world: World) -> None:
    """Whoever lost the intent cannot write its result."""
    row = an_effect_row()
    world.effects.intend(row)
    taken = world.effects.take_over(row, fence=3, now=NOW + HOUR)
    with pytest.raises(EffectMoved) as moved:
        world.effects.record(row, refused(row))
    assert moved.value.current == taken
    assert only(world) == taken


def test_a_job_has_its_own_effects_only(world: World) -> None:
    """Every effect of a job, by name, and none of another job."""
    mine = [an_effect_row(name=name) for name in ("assign", "reply", "tag")]
    for row in mine:
        world.effects.intend(row)
    world.effects.intend(an_effect_row(job_id=a_job(key="event-2").job_id))
    assert world.effects.of_job(a_job().job_id) == mine


def test_an_unreadable_effect_is_named(world: World) -> None:
    """A guard that cannot be read stops the send: it is an error that names the field, not an absent row."""
    row = an_effect_row()
    world.plant("effects", {**rows.effect_item(row), "state": {"S": "maybe"}})
    for ask in (
        lambda: world.effects.of_job(row.job_id),
        lambda: world.effects.intend(row),
        lambda: world.effects.record(row, accepted(row)),
    ):
        with pytest.raises(UnreadableRow, match="state") as unreadable:
            ask()
        assert "maybe" not in str(unreadable.value)


def test_no_method_deletes() -> None:
    """The port and its adapters have no way to remove a guard."""
    from shared.adapters.aws.effects import DynamoDbEffectStore
    from shared.core.ports import EffectStore

    for kind in (EffectStore, DynamoDbEffectStore):
        assert not [name for name in dir(kind) if "delete" in name or "remove" in name]
