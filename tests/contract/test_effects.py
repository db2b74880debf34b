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


# -------------------------------------------------------------------------------------- what it is, and accept
def test_what_an_effect_is_stands_on_its_row(world: World) -> None:
    """Fingerprint and visibility are kept through every step of its life."""
    row = an_effect_row(fingerprint="f-1", customer_visible=False)
    world.effects.intend(row)
    assert only(world) == row
    world.effects.record(row, refused(row))
    assert world.effects.intend(replace(row, fence=2, intent_at=NOW + HOUR)) is None
    taken = world.effects.take_over(only(world), fence=3, now=NOW + 2 * HOUR)
    stands = world.effects.accept(accepted(taken))
    assert stands == only(world)
    assert (stands.fingerprint, stands.customer_visible) == ("f-1", False)


@pytest.mark.fault("A19")
@pytest.mark.parametrize("other", [{"fingerprint": "f-2"}, {"vendor": "mailer"}, {"fingerprint": ""}])
def test_another_effect_is_not_begun_under_a_refused_name(world: World, other: dict[str, str]) -> None:
    """The name is taken: what stands there is shown, and nothing is written."""
    row = an_effect_row(fingerprint="f-1")
    world.effects.intend(row)
    world.effects.record(row, refused(row))
    begun = replace(row, fence=2, intent_at=NOW + HOUR, **other)
    assert world.effects.intend(begun) == refused(row)
    assert only(world) == refused(row)


def test_a_refused_effect_of_an_older_row_is_begun_and_told(world: World) -> None:
    """An older row does not say what it was: its vendor counts, and from then on the row says it."""
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, refused(row))
    assert world.effects.intend(an_effect_row(fence=2, intent_at=NOW + HOUR, fingerprint="f-1")) is None
    assert only(world).fingerprint == "f-1"


@pytest.mark.req("R8")
@pytest.mark.fault("A17")
def test_an_acceptance_is_written_over_an_intent_of_any_fence(world: World) -> None:
    """Whoever heard the vendor say yes may write it down, also when the intent is somebody else's by now."""
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.take_over(row, fence=3, now=NOW + HOUR)
    stands = world.effects.accept(accepted(row))
    assert stands == only(world) == replace(accepted(row), fence=3, intent_at=NOW + HOUR)
    assert not stands.contradicted


@pytest.mark.fault("A17")
def test_an_acceptance_is_written_over_a_refusal(world: World) -> None:
    """The reason of the refusal stays: the row tells that it was thought not to be there."""
    row = an_effect_row()
    world.effects.intend(row)
    world.effects.record(row, replace(refused(row), reason="operator:not_sent:case/1"))
    stands = world.effects.accept(accepted(row))
    assert stands == only(world)
    assert (stands.state, stands.reason, stands.contradicted) == (
        EffectState.ACCEPTED,
        "operator:not_sent:case/1",
        True,
    )


@pytest.mark.fault("A20")
def test_a_second_acceptance_is_kept_beside_the_first(world: World) -> None:
    """Another id is a duplicate and never overwrites; a third one stands beside both."""
    row = an_effect_row()
    world.effects.intend(row)
    first = world.effects.accept(accepted(row))
    assert not first.contradicted
    for vendor_id in ("v-3", "v-2", "v-2"):
        assert world.effects.accept(accepted(row, vendor_id)).contradicted
    assert only(world) == replace(first, also_accepted=("v-2", "v-3"))


@pytest.mark.fault("C3")
def test_an_acceptance_whose_reply_was_lost_is_one(world: World) -> None:
    """The same id again, or none, is no second acceptance."""
    row = an_effect_row()
    world.effects.intend(row)
    first = world.effects.accept(accepted(row))
    assert world.effects.accept(accepted(row)) == first
    assert world.effects.accept(replace(accepted(row), vendor_id=None)) == first
    assert only(world) == first


def test_an_id_takes_the_place_of_evidence_and_of_none(world: World) -> None:
    """What people gave as evidence is no id of the vendor's: its own takes that place, and nothing is contradicted."""
    bare, found = an_effect_row(name="bare"), an_effect_row(name="found")
    for row, end in ((bare, replace(accepted(bare), vendor_id=None)), (found, accepted(found, "case/1"))):
        world.effects.intend(row)
        world.effects.record(row, replace(end, reason="operator:accepted:case/1" if row is found else None))
        stands = world.effects.accept(accepted(row, "v-1"))
        assert (stands.vendor_id, stands.also_accepted, stands.contradicted) == ("v-1", (), False)
        assert world.effects.accept(accepted(row, "v-2")).also_accepted == ("v-2",)


def test_nothing_is_accepted_out_of_nothing(world: World) -> None:
    """Without an intent there was no request."""
    with pytest.raises(EffectMoved) as moved:
        world.effects.accept(accepted(an_effect_row()))
    assert moved.value.current is None


@pytest.mark.fault("A20")
def test_acceptances_at_once_lose_none(world: World) -> None:
    """Of any number of workers that heard different ids, each is on the row."""
    row = an_effect_row()
    world.effects.intend(row)
    ids = [f"v-{number}" for number in range(world.threads)]
    with ThreadPoolExecutor(world.threads) as pool:
        list(pool.map(lambda vendor_id: world.effects.accept(accepted(row, vendor_id)), ids))
    assert sorted((only(world).vendor_id or "", *only(world).also_accepted)) == sorted(ids)


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
