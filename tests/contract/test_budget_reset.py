"""Beginning an account anew: the same on every adapter."""

from __future__ import annotations

from shared.core import rate
from shared.core.account import Limit
from shared.core.rate import Budget, Taken, Terms, Want
from tests.builders import NOW, an_account
from tests.contract.worlds import World

NOW_US = rate.us_of(NOW)


def test_reset_leaves_nothing_but_the_terms_it_was_given(world: World) -> None:
    """Spent, counted, held and promised are gone; what is taken next is taken from the account as configured."""
    spec = an_account(requests_per_day=10, concurrency=2)
    want = Want(requests=2, tokens=1000, slots=1)
    assert isinstance(world.budgets.take(spec, want, least=want, now_us=NOW_US, hold="w1", hold_s=60), Taken)
    world.budgets.reserve(spec, 5_000_000, not_before_us=NOW_US)
    seen = world.budgets.read(spec).terms
    world.budgets.change(spec, seen, Terms(version=1, pinned={Limit.REQUESTS: 5}))
    terms = Terms(version=NOW_US, changed_us=NOW_US)
    assert world.budgets.reset(spec, terms) == Budget(terms=terms) == world.budgets.read(spec)
    taken = world.other_budgets().take(spec, want, least=want, now_us=NOW_US, hold="w2", hold_s=60)
    assert isinstance(taken, Taken)


def test_whoever_saw_the_account_before_writes_nothing_from_it(world: World) -> None:
    """Terms computed from what stood before the reset are refused by their version."""
    spec = an_account()
    seen = world.budgets.read(spec).terms
    world.budgets.reset(spec, Terms(version=NOW_US, changed_us=NOW_US))
    stands = world.other_budgets().change(spec, seen, Terms(version=seen.version + 1, pinned={Limit.REQUESTS: 5}))
    assert stands.terms == Terms(version=NOW_US, changed_us=NOW_US)
