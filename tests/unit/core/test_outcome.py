"""What a task returned, as a row may keep it."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.job import Category
from shared.core.outcome import NOT_A_CODE, Defer, Done, Fail, Outcome, Retry, Submitted, checked
from tests.builders import NOW
from tests.unit.core.strategies import few, json_values, outcomes, words

SECRET = "the customer's own words"


@few
@given(outcome=outcomes())
def test_an_outcome_of_codes_passes_as_it_is(outcome: Outcome) -> None:
    """Whatever is well formed is not touched."""
    codes = [getattr(outcome, name, "x") for name in ("result", "error", "reason", "batch")]
    if all(code[0].isalnum() for code in codes):
        assert checked(outcome) == outcome


@pytest.mark.req("R14")
@pytest.mark.fault("I1")
@pytest.mark.parametrize(
    ("returned", "kept"),
    [
        (Done(SECRET), Done(NOT_A_CODE)),
        (Done("ok", SECRET), Done("ok", None)),
        (Done("ok", None, {"intent": SECRET, "sure": True}), Done("ok", None, {"intent": NOT_A_CODE, "sure": True})),
        (Done("ok", None, {SECRET: "a"}), Done("ok", None, {NOT_A_CODE: "a"})),
        (Done("ok", None, {"a": [SECRET]}), Done("ok", None, {"a": NOT_A_CODE})),  # type: ignore[dict-item]
        (Done("ok", None, {f"a{n}": "b" for n in range(9)}), Done("ok")),
        (Done("ok", None, SECRET), Done("ok")),  # type: ignore[arg-type]
        (Done("ok", withheld={"reply": SECRET}), Done("ok")),
        (Retry(SECRET), Retry(NOT_A_CODE)),
        (Defer(NOW, SECRET), Defer(NOW, NOT_A_CODE)),
        (Fail(Category.AUTH, SECRET), Fail(Category.AUTH, NOT_A_CODE)),
        (Submitted(SECRET), Submitted(NOT_A_CODE)),
        (Retry("x" * 97), Retry(NOT_A_CODE)),
        (Retry("two\nlines"), Retry(NOT_A_CODE)),
        (Retry(None), Retry(NOT_A_CODE)),  # type: ignore[arg-type]
        (Done(7), Done(NOT_A_CODE)),  # type: ignore[arg-type]
    ],
    ids=repr,
)
def test_text_is_not_kept_as_a_code(returned: Outcome, kept: Outcome) -> None:
    """An exception's message or a model's answer given as a code is lost here, and only that."""
    assert checked(returned) == kept


@pytest.mark.parametrize("until", [datetime(2026, 1, 1), None, "tomorrow", 5, datetime.max])
def test_a_time_nobody_can_tell_fails_as_malformed(until: object) -> None:
    """A naive time above all: a job that waits for it might wait for ever."""
    assert checked(Defer(until, "x")) == Fail(Category.MALFORMED, "bad_input:until")  # type: ignore[arg-type]


def test_a_category_of_its_own_invention_is_malformed() -> None:
    """A row with it could not be read any more."""
    assert checked(Fail("weird", "x")) == Fail(Category.MALFORMED, "x")  # type: ignore[arg-type]
    assert checked(Fail("auth", "x")) == Fail(Category.AUTH, "x")  # type: ignore[arg-type]


@few
@given(returned=json_values | words | st.just(Done) | st.just(Exception(SECRET)))
def test_anything_else_is_no_outcome(returned: object) -> None:
    """A task that forgets to return fails at once and says so, without a word of what it returned."""
    assert checked(returned) == Fail(Category.MALFORMED, "task_returned_no_outcome")
