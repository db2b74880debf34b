"""Sensitive text masks itself wherever text is made of it by accident."""

from __future__ import annotations

import copy
import dataclasses
import json
import logging
import pickle
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.effects import Accepted, Call, Effect
from shared.core.sensitive import MASK, Sensitive

texts = st.text(min_size=4, max_size=40).filter(lambda text: text not in MASK)


@dataclasses.dataclass
class Holder:
    """A value that holds sensitive text, as a task's own might."""

    text: Sensitive[str]


@pytest.mark.req("R14")
@pytest.mark.fault("I9")
@given(text=texts)
def test_no_way_of_making_text_shows_it(text: str) -> None:
    """repr, str, format, f-string, %, a container's repr, a dataclass's repr, json with default=str."""
    value = Sensitive(text)
    shown = [
        repr(value),
        str(value),
        f"{value}",
        f"{value!r:>20}",
        f"{value:>20}",
        format(value, "s"),
        "%s %r" % (value, value),  # noqa: UP031 (the old way is one of the ways)
        "{}".format(value),  # noqa: UP032
        repr([value]),
        repr({"text": value}),
        repr(Holder(value)),
        json.dumps({"text": value}, default=str),
        json.dumps({"text": value}, default=repr),
    ]
    assert not [one for one in shown if text in one.replace(MASK, "")]


@pytest.mark.fault("I9")
@given(text=texts)
def test_json_refuses_it_without_showing_it(text: str) -> None:
    """Serialising by accident is an error, and the error does not hold the text."""
    with pytest.raises(TypeError) as refused:
        json.dumps({"text": Sensitive(text)})
    assert text not in str(refused.value).replace(MASK, "").replace("Sensitive", "")


@pytest.mark.fault("I9")
def test_a_traceback_with_locals_does_not_show_it() -> None:
    """Tools that print local variables print the mask."""
    secret = Sensitive("the customer's words")
    try:
        raise RuntimeError(secret)
    except RuntimeError as exc:
        shown = "".join(traceback.TracebackException.from_exception(exc, capture_locals=True).format())
    assert secret.reveal() not in shown.replace('Sensitive("the customer\'s words")', "")
    assert MASK in shown


@pytest.mark.fault("I9")
def test_a_log_line_does_not_show_it(caplog: pytest.LogCaptureFixture) -> None:
    """Neither as an argument nor as the message."""
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("a.task").warning("%s", Sensitive("the customer's words"))
        logging.getLogger("a.task").warning(Sensitive("the customer's words"))
    assert "words" not in caplog.text


@pytest.mark.fault("I9")
@pytest.mark.parametrize(
    "escape",
    [pickle.dumps, copy.copy, copy.deepcopy, list, dict, "".join, bytes],
    ids=lambda f: getattr(f, "__name__", "f"),
)
def test_it_is_not_copied_out_by_accident(escape: object) -> None:
    """Pickling, copying, iterating and converting are refused: `reveal` is the only way out."""
    with pytest.raises(TypeError) as refused:
        escape(Sensitive("the customer's words"))  # type: ignore[operator]
    assert "words" not in str(refused.value)


def test_it_has_no_attributes_to_print() -> None:
    """`vars`, and whatever prints a `__dict__`, find nothing."""
    assert not hasattr(Sensitive("x"), "__dict__")


@given(text=texts, other=texts)
def test_equal_by_value_and_of_one_hash(text: str, other: str) -> None:
    """Comparable in tests, but a hash that could be tried against guesses tells nothing."""
    assert (Sensitive(text) == Sensitive(other)) == (text == other)
    assert Sensitive(text) != text
    assert hash(Sensitive(text)) == hash(Sensitive(other))
    assert Sensitive(text).reveal() == text


@pytest.mark.fault("I9")
@given(text=texts)
def test_requests_and_answers_mask_their_bodies(text: str) -> None:
    """What goes to a vendor and what comes back can be logged by mistake without showing what it says."""
    body = Sensitive({"text": text})
    effect = Effect(vendor="helpdesk", action="reply", target="c-1", body=body, customer_visible=True)
    call = Call(vendor="openai", action="chat", body=body)
    assert MASK in repr(effect)
    assert not any(repr({"text": text}) in repr(value) for value in (effect, call, Accepted("id-1", body)))
