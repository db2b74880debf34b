"""A text is cut into chunks that fit, with nothing lost, doubled or moved."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.extraction.chunking import LEAST_TOKENS, chunks_of
from shared.core.tokens import text_tokens

MANY = 10**9
texts = st.one_of(
    st.text(max_size=400),
    st.lists(st.sampled_from(["word", " ", ". ", "\n\n", "1,234", "漢字。", "🙂", "\r\n", "x" * 90, '!?" '])).map(
        "".join
    ),
)
sizes = st.integers(min_value=1, max_value=60)


@given(text=texts, tokens=sizes)
def test_every_character_is_in_exactly_one_chunk(text: str, tokens: int) -> None:
    """The chunks put together are the text, and none is empty."""
    chunks = chunks_of(text, tokens, at_most=MANY)
    assert chunks is not None
    assert text == "".join(chunks)
    assert all(chunks)


@given(text=texts, tokens=sizes)
def test_every_chunk_is_within_its_tokens(text: str, tokens: int) -> None:
    """Whatever the script, and however dense the text."""
    for chunk in chunks_of(text, tokens, at_most=MANY) or ():
        assert text_tokens(chunk) <= max(LEAST_TOKENS, tokens)


@given(text=texts, tokens=sizes)
def test_the_same_text_is_cut_the_same(text: str, tokens: int) -> None:
    """A later attempt finds the chunks of an earlier one."""
    assert chunks_of(text, tokens, at_most=MANY) == chunks_of(text, tokens, at_most=MANY)


@given(text=texts, tokens=sizes, at_most=st.integers(min_value=0, max_value=20))
def test_more_chunks_than_allowed_are_none(text: str, tokens: int, at_most: int) -> None:
    """The bound is exact."""
    chunks = chunks_of(text, tokens, at_most=MANY) or []
    assert chunks_of(text, tokens, at_most=at_most) == (chunks if len(chunks) <= at_most else None)


@given(words=st.lists(st.text("abc", min_size=1, max_size=12), min_size=2, max_size=80))
def test_a_word_that_fits_is_not_cut(words: list[str]) -> None:
    """Cuts are made between words while there is a blank to cut at."""
    chunks = chunks_of(" ".join(words), 8, at_most=MANY) or []
    assert words == [word for chunk in chunks for word in chunk.split()]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Ada met Bob here.\n\nThen she went home alone.", "Ada met Bob here.\n\n"),
        ("Ada met Bob here today. Then she went home alone.", "Ada met Bob here today. "),
        ("ada met bob here then she went home alone again", "ada met bob here then she "),
        ("a" * 60, "a" * 32),
    ],
    ids=["paragraph", "sentence", "word", "endless word"],
)
def test_where_a_cut_is_made(text: str, first: str) -> None:
    """After a paragraph, else a sentence, else a word; an endless word is cut where it must be."""
    chunks = chunks_of(text, 8, at_most=MANY)
    assert chunks is not None
    assert first == chunks[0]
