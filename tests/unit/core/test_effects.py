"""What an open intent means: never a second send without a vendor that deduplicates, inside its window."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.effects import (
    KEPT_DAYS,
    REPLAY_HORIZON_DAYS,
    WINDOW_MARGIN,
    EffectState,
    LookUp,
    Lookup,
    Park,
    SendAgain,
    resolve_open_intent,
)
from shared.core.errors import BadInput
from tests.builders import NOW, an_effect_row

windows = st.none() | st.integers(0, 10 * 86_400).map(lambda s: timedelta(seconds=s))
ages = st.integers(0, 20 * 86_400).map(lambda s: timedelta(seconds=s))


@pytest.mark.fault("F6")
@given(window=windows, lookup=st.sampled_from(Lookup), age=ages, since_last=ages, grace_s=st.integers(1, 3600))
def test_a_second_send_needs_a_deduplicating_vendor_with_time_left(
    window: timedelta | None, lookup: Lookup, age: timedelta, since_last: timedelta, grace_s: int
) -> None:
    """Exactly then, counted from the first intent and with a margin; a look-up or nothing is no licence."""
    row = an_effect_row(first_intent_at=NOW - age, intent_at=NOW - min(age, since_last))
    answer = resolve_open_intent(row, dedupes_by_key=window, lookup=lookup, grace_s=grace_s, now=NOW)
    licensed = window is not None and age < window - WINDOW_MARGIN
    assert isinstance(answer, SendAgain) == licensed
    if not licensed:
        assert isinstance(answer, Park) == (lookup is Lookup.NONE)
        if isinstance(answer, LookUp):
            assert answer.give_up_at == row.intent_at + timedelta(seconds=grace_s)


@pytest.mark.fault("F6")
def test_the_margin_is_kept_free_at_the_end_of_the_window() -> None:
    """One second inside it may be sent, from the margin on it may not: clocks differ, requests take time."""
    window = timedelta(hours=24)
    edge = NOW - window + WINDOW_MARGIN
    inside, outside = edge + timedelta(seconds=1), edge
    for first, licensed in ((inside, True), (outside, False)):
        row = an_effect_row(first_intent_at=first, intent_at=NOW)
        answer = resolve_open_intent(row, dedupes_by_key=window, lookup=Lookup.NONE, grace_s=60, now=NOW)
        assert isinstance(answer, SendAgain) == licensed


@pytest.mark.fault("F6")
def test_taking_an_intent_over_does_not_lengthen_the_window() -> None:
    """The vendor's memory runs from the first time the key may have reached it, not from the last."""
    row = an_effect_row(first_intent_at=NOW - timedelta(hours=25), intent_at=NOW)
    answer = resolve_open_intent(row, dedupes_by_key=timedelta(hours=24), lookup=Lookup.NONE, grace_s=60, now=NOW)
    assert answer == Park()


@pytest.mark.fault("C5")
@given(age=ages)
def test_a_guard_outlives_every_replay(age: timedelta) -> None:
    """The row is kept from its first intent for longer than a job may be replayed, with weeks to spare."""
    row = an_effect_row(first_intent_at=NOW - age, intent_at=NOW)
    assert row.expires_at == row.first_intent_at + timedelta(days=KEPT_DAYS)
    assert KEPT_DAYS - REPLAY_HORIZON_DAYS >= 14


@pytest.mark.parametrize("state", list(EffectState))
def test_only_an_intent_without_a_result_is_open(state: EffectState) -> None:
    """A refusal and an acceptance are answers."""
    assert an_effect_row(state=state).open == (state is EffectState.INTENT)


@pytest.mark.parametrize("name", ["", "Reply", "two words", "x" * 40])
def test_an_effects_name_is_a_name(name: str) -> None:
    """It becomes part of a key, so it is as narrow as every name."""
    from shared.core.effects import effect_id_of

    with pytest.raises(BadInput) as refused:
        effect_id_of("5a2bc7c2-0000-5000-8000-000000000000", name)
    assert refused.value.field == "effect"
