"""A text in parts is the same text again, or it is known not to be whole."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract import parts

texts = st.builds(
    lambda word, times: json.dumps({f"lane_{n}": {"word": word} for n in range(times)}),
    st.text(alphabet=string.ascii_letters + "  \n\u00e9", max_size=40),
    st.integers(0, 400),
)


def read(written: tuple[str, ...]) -> str:
    return parts.whole(written[0], lambda number: written[number])


@pytest.mark.fault("K6")
@given(texts)
def test_what_is_written_in_parts_is_read_back(text: str) -> None:
    """Each value fits into a parameter, and none begins or ends with what might be cut off."""
    written = parts.in_parts(text)
    assert read(written) == text
    assert all(0 < len(one) <= parts.LIMIT and one == one.strip() for one in written)


def test_a_small_text_is_its_own_value() -> None:
    """What fits looks as it always did: nobody needs a new reader for it."""
    text = json.dumps({"support": {"tasks": ["x" * (parts.LIMIT - 30)]}})
    assert parts.in_parts(text) == (text,)


@pytest.mark.fault("K6")
def test_parts_of_two_texts_make_none() -> None:
    """A deploy that has written some of them is noticed: no lane is read half."""
    old, new = (parts.in_parts(json.dumps({"lane": letter * 9000})) for letter in "ab")
    for mixed in ((old[0], new[1], *old[2:]), (new[0], *old[1:])):
        with pytest.raises(parts.NotWhole):
            read(mixed)


def test_a_text_beyond_every_measure_is_refused() -> None:
    """By its size, where it is written."""
    with pytest.raises(parts.TooLarge, match="has 300000 bytes"):
        parts.in_parts("x" * 300_000)
