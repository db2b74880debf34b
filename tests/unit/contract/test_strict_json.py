"""JSON as it is accepted: what is ambiguous, endless or not finite is refused, and nothing of it is repeated."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract import strict_json
from shared.contract.strict_json import MAX_DEPTH, NotStrict
from tests.unit.core.strategies import few, json_values, words

SECRET = "the customer's own words"


def refusal(text: str | bytes, **limits: int) -> NotStrict:
    """The error, after checking that it carries nothing: no cause, no document, none of the input."""
    with pytest.raises(NotStrict) as refused:
        strict_json.loads(text, **limits)
    error = refused.value
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None
    assert not hasattr(error, "doc")
    assert SECRET not in str(error)
    assert SECRET not in repr(error.args)
    return error


@pytest.mark.fault("H5")
@few
@given(value=json_values)
def test_what_json_says_is_read(value: object) -> None:
    """Every JSON value within the limits reads as it does elsewhere, as text and as bytes."""
    text = json.dumps(value)
    assert strict_json.loads(text) == value
    assert strict_json.loads(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.fault("H5", "H1")
@few
@given(name=words, first=json_values, second=json_values)
def test_the_same_field_twice_is_refused(name: str, first: object, second: object) -> None:
    """Parsers that let the last one win can be told two things at once; at any depth."""
    pair = f"{{{json.dumps(name)}:{json.dumps(first)},{json.dumps(name)}:{json.dumps(second)}}}"
    for text in (pair, f"[{pair}]", f'{{"a":{pair}}}'):
        assert "same field twice" in str(refusal(text))


@pytest.mark.fault("H5")
def test_fields_that_only_look_different_are_the_same_field() -> None:
    """An escape spells the same name."""
    assert "twice" in str(refusal('{"tenant":"a","\\u0074enant":"b"}'))


@pytest.mark.fault("H5")
@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused(word: str) -> None:
    """Python's parser takes them by default."""
    assert "NaN or Infinity" in str(refusal(f'{{"a": {word}}}'))


@pytest.mark.fault("H5", "C8")
@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 39, "-" + "1" * 39, "9" * 5000, "1" * 400_000])
def test_numbers_nobody_can_keep_are_refused(number: str) -> None:
    """Too large for a double, or too long to be kept exactly."""
    assert "number too large" in str(refusal(f"[{number}]"))


@pytest.mark.fault("H5")
@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1000, 100_000])
def test_deep_nesting_is_refused_at_once(opening: str, depth: int) -> None:
    """A hundred thousand brackets make other parsers overflow; here they cost nothing."""
    started = time.process_time()
    assert "nested deeper" in str(refusal((opening * depth)[:500_000]))
    assert time.process_time() - started < 0.5


@pytest.mark.fault("H5")
@given(depth=st.integers(1, 2 * MAX_DEPTH), text=st.text(st.sampled_from('[]{}"\\ab'), max_size=12))
def test_depth_counts_brackets_and_not_what_is_quoted(depth: int, text: str) -> None:
    """Brackets inside text, escaped quotes included, are text."""
    document = "[" * depth + json.dumps(text) + "]" * depth
    if depth > MAX_DEPTH:
        assert "nested deeper" in str(refusal(document))
    else:
        assert strict_json.loads(document) is not None


@pytest.mark.fault("H5")
@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """Nothing else comes out, whatever goes in: no other exception, no partial value."""
    try:
        value = strict_json.loads(data)
    except NotStrict:
        return
    assert value == json.loads(data)


@pytest.mark.fault("H5")
@given(text=st.text(st.sampled_from('[]{}",:\\u0d8e1-.tfnN \n'), max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """The same for text made of JSON's own characters."""
    try:
        value = strict_json.loads(text)
    except NotStrict as exc:
        assert exc.__cause__ is None  # noqa: PT017 (most texts are refused, and that is fine)
        return
    assert value == json.loads(text)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (b'{"a": "\xff"}', "is not UTF-8"),
        ("\ufeff{}", "is not valid JSON"),
        (f'{{"a": "{SECRET}"', "is not valid JSON"),
        (f'{{"a": {SECRET}}}', "is not valid JSON"),
        ("", "is not valid JSON"),
        ("{} {}", "is not valid JSON"),
        ("'a'", "is not valid JSON"),
        ('{"a": 1,}', "is not valid JSON"),
        ('"line\nbreak"', "is not valid JSON"),
    ],
)
def test_what_is_not_json_says_so_and_no_more(document: str | bytes, problem: str) -> None:
    """Python's own error carries the whole document; ours carries a sentence."""
    assert str(refusal(document)) == problem


@pytest.mark.fault("J5")
@given(over=st.integers(-2, 2))
def test_size_is_checked_before_anything_is_parsed(over: int) -> None:
    """Exactly the limit is read, one byte more is not."""
    document = json.dumps("x" * (98 + over))
    for form in (document, document.encode()):
        if over <= 0:
            assert strict_json.loads(form, max_bytes=100) is not None
        else:
            assert "100" in str(refusal(form, max_bytes=100))
