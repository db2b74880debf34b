"""The account in memory and the one on a table are one law: the same steps give the same answers, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moto import mock_aws

from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.core import feedback
from shared.core.account import HELD, AccountSpec, Limit
from shared.core.budget import DAY, SECOND, Budget, Search, Terms, Want, us_of
from shared.core.ports import BudgetLedger
from tests.builders import NOW, an_account
from tests.contract.conftest import _clients
from tests.contract.worlds import AwsWorld

NAMES = count()
START_US = us_of(NOW)
HOLDERS = ("a", "b", "c")

Step = tuple[str, int, dict[str, Any]]
"""What is done, after how many microseconds, and with what."""


@pytest.fixture(scope="module")
def table() -> Iterator[AwsWorld]:
    """One table for all examples; each has an account of its own."""
    with mock_aws():
        yield AwsWorld(_clients(), threads=1)


wants = st.builds(
    Want,
    requests=st.integers(0, 8),
    tokens=st.integers(0, 3000),
    slots=st.integers(0, 3),
    batch_tokens=st.sampled_from([0, 0, 500]),
)
returns = st.builds(Want, requests=st.integers(-3, 6), tokens=st.integers(-2000, 2000))
pauses = st.sampled_from([0, 1, SECOND // 7, SECOND, 5 * SECOND, 61 * SECOND, DAY // 2]) | st.integers(0, 3 * SECOND)
amounts = st.dictionaries(st.sampled_from(list(Limit)), st.integers(1, 5000), max_size=3)
fractions = st.floats(0.01, 2.0, allow_nan=False)
changes = st.fixed_dictionaries(
    {},
    optional={
        "told": amounts,
        "pinned": amounts,
        "search": st.none()
        | st.builds(
            Search,
            base=fractions,
            top=fractions,
            since_us=st.just(START_US),
            unit_s=st.floats(1, 1000),
            spent_us=st.integers(-(10**9), 10**15),
        ),
        "quiet_until_us": st.integers(START_US, START_US + 5 * SECOND),
        "shut": st.none(),
    },
)
takes = st.fixed_dictionaries(
    {
        "want": wants,
        "hold": st.sampled_from(HOLDERS),
        "ahead_us": st.sampled_from([0, SECOND // 3, 2 * SECOND]),
        "used_tokens": st.sampled_from([0, 1, 700, 10**15]),
    }
)
steps: st.SearchStrategy[Step] = st.one_of(
    *[st.tuples(st.just("take"), pauses, takes)] * 2,
    st.tuples(
        st.just("give_back"), pauses, st.fixed_dictionaries({"want": returns, "hold": st.sampled_from(["", *HOLDERS])})
    ),
    st.tuples(st.just("reserve"), pauses, st.fixed_dictionaries({"span_us": st.integers(1, SECOND)})),
    st.tuples(st.just("change"), pauses, changes),
    st.tuples(st.just("shut"), pauses, st.just({})),
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "requests_per_minute": st.sampled_from([7, 60, 600]),
        "tokens_per_minute": st.sampled_from([3000, 30_000]),
        "requests_per_day": st.integers(1, 30),
        "tokens_per_day": st.integers(1000, 20_000),
        "concurrency": st.integers(1, 5),
        "batch_tokens": st.just(1200),
        "burst_s": st.sampled_from([0.0, 0.5, 2.0]),
        "share": st.sampled_from([1.0, 0.7]),
    },
)


def walked(ledger: BudgetLedger, spec: AccountSpec, walk: list[Step]) -> Iterator[object]:
    """Every answer of a walk, and the account after each step."""
    now_us, terms = START_US, Terms()
    for kind, pause_us, given_ in walk:
        now_us += pause_us
        match kind:
            case "take":
                want: Want = given_["want"]
                least = replace(want, requests=min(1, want.requests), tokens=want.tokens // 2)
                held = {"hold": given_["hold"], "hold_s": 3, "ahead_us": given_["ahead_us"]}
                held["used_tokens"] = given_["used_tokens"]
                yield ledger.take(spec, want, least=least, now_us=now_us, **held)
            case "give_back":
                ledger.give_back(spec, given_["want"], now_us=now_us, hold=given_["hold"])
            case "reserve":
                yield ledger.reserve(spec, given_["span_us"], not_before_us=now_us)
            case "change":
                terms = ledger.change(spec, terms, feedback.changed(terms, now_us, **given_)).terms
            case "shut":
                shut = feedback.shut_down(terms, feedback.OUTAGE, now_us, now_us)
                terms = ledger.change(spec, terms, shut).terms if shut is not None else terms
        yield ledger.read(spec)


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limits=specs, walk=st.lists(steps, min_size=2, max_size=10))
def test_memory_and_table_answer_alike(table: AwsWorld, limits: dict[str, Any], walk: list[Step]) -> None:
    """Takes, returns, promises and changes in any order, over seconds and midnights: equal answers, equal accounts."""
    spec = an_account(
        **{"name": f"account_{next(NAMES)}", "requests_per_minute": None, "tokens_per_minute": None, **limits}
    )
    on_table, in_memory = walked(table.budgets, spec, walk), walked(MemoryBudgetLedger(), spec, walk)
    for number, (found, wanted) in enumerate(zip(on_table, in_memory, strict=True)):
        assert found == wanted, f"answer {number}"


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limits=specs, walk=st.lists(st.tuples(steps, st.booleans()), min_size=2, max_size=10))
def test_environments_with_old_views_keep_the_sums(
    table: AwsWorld, limits: dict[str, Any], walk: list[tuple[Step, bool]]
) -> None:
    """Two environments that see each other's writes late: what is held is always the sum of its holders, never above
    its limit by a take, and no step needs more than two writes."""
    spec = an_account(**{"name": f"account_{next(NAMES)}", **limits, "concurrency": 4})
    ledgers = (table.other_budgets(), table.other_budgets())
    now_us, before = START_US, Budget()
    for (kind, pause_us, given_), first in walk:
        now_us += pause_us
        used = table.meter.snapshot()
        ledger = ledgers[first]
        if kind == "take":
            ledger.take(spec, given_["want"], least=given_["want"], now_us=now_us, hold=given_["hold"], hold_s=3)
        elif kind == "give_back":
            ledger.give_back(spec, given_["want"], now_us=now_us, hold=given_["hold"])
        spent = table.meter.delta(used)
        assert sum(usage.calls for (_, operation), usage in spent.items() if operation != "read") <= 2
        # Reading checks the sum: a row where it differs from its holders is an UnreadableRow.
        after = table.other_budgets().read(spec)
        for limit in HELD:
            most = spec.configured(limit)
            assert most is None or after.held(limit) <= max(most, before.held(limit))
        before = after
