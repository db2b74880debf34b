"""What calls used of an account is charged once, whenever and by whichever write it is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.effects import Accepted, Answer, Refused, Unknown
from shared.core.feedback import Report
from shared.core.rate import SECOND
from shared.usecases.permit import Permit
from shared.usecases.use import OWED_CALLS, Use


def charged(tokens: int, *, probe: bool = False) -> Permit:
    """A permit for a call that was charged with so much."""
    return Permit(account="model", tokens=tokens, requests=1, sent_us=0, metered=True, probe=probe)


def used(tokens: int | None) -> Accepted:
    return Accepted("id", report=Report(tokens_used=tokens))


@pytest.mark.req("X3")
@given(
    calls=st.lists(st.tuples(st.integers(0, 3000), st.integers(1, 3000)), min_size=1, max_size=30),
    takes=st.lists(st.integers(0, 3000), min_size=30, max_size=30),
    most=st.none() | st.integers(3000, 5000),
)
def test_what_is_charged_is_what_was_used(calls: list[tuple[int, int]], takes: list[int], most: int | None) -> None:
    """Estimates too high and too low, told by later takes: with what is owed at the end, the charges are the use; no
    take is made negative by it, nor larger than a minute's limit."""
    use, charges = Use(), 0
    for (estimate, tokens), take in zip(calls, takes, strict=False):
        use.heard(charged(estimate), used(tokens), SECOND)
        charges += estimate
        settled = use.settling(take, most)
        assert 0 <= take + settled <= (most if most is not None else take + settled)
        use.settled(settled)
        charges += settled
    assert charges + use.told() == sum(tokens for _, tokens in calls)
    assert use.told() == 0


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("answer", "probe", "owed"),
    [
        (used(None), False, 0),
        (Unknown("timeout"), False, 0),
        (Refused("422"), False, -700),
        (Refused("429"), False, 0),
        (used(900), True, 900),
        (Refused("429"), True, 0),
    ],
)
def test_what_an_answer_does_not_tell(answer: Answer, probe: bool, owed: int) -> None:
    """A call that may have been made used its charge; one that was refused used nothing, but one that met the limit
    keeps its charge: the quiet outlasts it; a probe, which nobody charged, used what it tells."""
    use = Use()
    use.heard(charged(0 if probe else 700, probe=probe), answer, SECOND)
    assert use.told() == owed


def test_a_little_can_wait_for_the_next_take() -> None:
    """What three calls are charged with is told with the next take; more at once, in either direction."""
    for tokens in (2000, 1):
        use, each = Use(), abs(tokens - 1000)
        for number in range(1, 8):
            use.heard(charged(1000), used(tokens), SECOND)
            assert use.owes == (number * each > OWED_CALLS * 1000)
    unknown = Use()
    unknown.heard(charged(0), used(1), SECOND)
    assert unknown.owes
