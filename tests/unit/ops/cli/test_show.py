"""How answers look: times people read, values programs read, nothing that moves a terminal."""

from __future__ import annotations

import io
import sys
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ops.cli.moments import moment_of, span_of
from ops.cli.show import Output, ago, clean, plain, span
from shared.core.errors import BadInput
from shared.core.job import Status
from shared.core.switches import Level
from tests.builders import NOW, a_job
from tests.waiting import until


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "40 ms"),
        (1.44, "1.4 s"),
        (2, "2 s"),
        (12, "12 s"),
        (119, "119 s"),
        (300, "5 min"),
        (7200, "2 h"),
        (9 * 86_400, "9 d"),
    ],
)
def test_a_span_is_told_in_one_unit(seconds: float, text: str) -> None:
    """A length of time is one number and the unit that says most."""
    assert text == span(seconds)


def test_moments_are_told_by_distance() -> None:
    """The past is `ago`, the future is `in`, the present is `now`."""
    assert ago(NOW - timedelta(seconds=12), NOW) == "12 s ago"
    assert ago(NOW + timedelta(minutes=5), NOW) == "in 5 min"
    assert ago(NOW, NOW) == "now"


@given(st.text())
def test_nothing_shown_moves_the_terminal(text: str) -> None:
    """Cleaned text holds no control character but new lines and tabs."""
    assert all(ch.isprintable() or ch in "\n\t" for ch in clean(text))


def test_values_become_plain() -> None:
    """Times are ISO 8601, statuses and levels their words, and a whole job becomes plain values."""
    assert plain({"at": NOW, "level": Level.HALT, "status": Status.QUEUED}) == {
        "at": "2026-01-01T00:00:00.000Z",
        "level": "halt",
        "status": "queued",
    }
    job = plain(a_job())
    assert job["moves"] == [{"at": "2026-01-01T00:00:00.000Z", "to": "queued", "reason": "enqueued"}]


@pytest.mark.parametrize("text", ["tomorrow", "2026-01-01", "2026-01-01T00:00:00", "", 5])
def test_a_time_needs_its_zone(text: object) -> None:
    """A time without a zone, or no time at all, is refused by the field's name and without its value."""
    with pytest.raises(BadInput, match=r"^at: ") as refused:
        moment_of("at", text)
    assert "tomorrow" not in str(refused.value)


def test_spans_are_read() -> None:
    """90s, 5m, 2h and 1d are read; anything else is refused."""
    assert [span_of("in", text).total_seconds() for text in ("90s", "5m", "2h", "1d")] == [90, 300, 7200, 86_400]
    for text in ("", "5", "-5m", "5 weeks", "1e9s", "99999999999d"):
        with pytest.raises(BadInput):
            span_of("in", text)


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_a_person_who_waits_sees_that_something_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two seconds a spinner turns, beside the answer; it is gone before anything is shown."""
    monkeypatch.setattr("ops.cli.show.PATIENCE_S", 0.01)
    monkeypatch.setattr("sys.stderr", Terminal())
    out = Output(json=False)
    out.begin()
    until(lambda: out._spinner is not None, "the spinner")
    out.say("done")
    assert out._spinner is None
    assert "still working" in sys.stderr.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("json", [True, False])
def test_programs_and_pipes_see_no_spinner(monkeypatch: pytest.MonkeyPatch, json: bool) -> None:
    """In JSON, or when standard error is no terminal, nothing ever turns."""
    monkeypatch.setattr("sys.stderr", Terminal() if json else io.StringIO())
    out = Output(json=json)
    out.begin()
    assert out._patience is None
