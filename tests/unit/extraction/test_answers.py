"""A model's answer is believed only in the form it was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.extraction.answers import MAX_ENTITIES, MAX_VALUE, TYPES, Entity, entities_of, merged, read, written

ADA = {"type": "person", "value": "Ada Lovelace"}
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
entities = st.lists(
    st.builds(
        Entity, st.sampled_from(TYPES), st.text(min_size=1, max_size=20).filter(lambda text: text == text.strip())
    ),
    max_size=6,
).map(tuple)


def reply(content: Any) -> dict[str, Any]:
    """A completion with this content."""
    return {"id": "c-1", "choices": [{"index": 0, "message": {"role": "assistant", "content": content}}]}


def test_the_form_asked_for_is_read() -> None:
    """The entities, in their order, without blanks around them."""
    listed = [ADA, {"type": "place", "value": " London\n"}]
    expected = (Entity("person", "Ada Lovelace"), Entity("place", "London"))
    assert expected == entities_of(reply(json.dumps({"entities": listed})))
    assert entities_of(reply('{"entities": []}')) == ()


@pytest.mark.parametrize(
    "content",
    [
        *(None, 7, "", "Sure! Here they are:", "[]", "null", "{}", '{"entities": null}', '{"entities": {}}'),
        '```json\n{"entities": []}\n```',
        '{"entities": [], "note": "x"}',
        '{"entities": [], "entities": []}',
        json.dumps({"entities": [ADA]})[:-3],
        json.dumps({"entities": ["Ada"]}),
        json.dumps({"entities": [{"type": "person"}]}),
        json.dumps({"entities": [{**ADA, "why": "x"}]}),
        json.dumps({"entities": [{**ADA, "type": "cat"}]}),
        json.dumps({"entities": [{**ADA, "type": ["person"]}]}),
        json.dumps({"entities": [{**ADA, "value": ""}]}),
        json.dumps({"entities": [{**ADA, "value": " "}]}),
        json.dumps({"entities": [{**ADA, "value": 7}]}),
        json.dumps({"entities": [{**ADA, "value": "x" * (MAX_VALUE + 1)}]}),
        json.dumps({"entities": [ADA] * (MAX_ENTITIES + 1)}),
        '{"entities": [{"type": "person", "value": "\\ud800"}]}',
        '{"entities": [{"type": "person", "value": NaN}]}',
        "[" * 100_000,
        "x" * 200_000,
    ],
)
def test_any_other_form_is_none(content: Any) -> None:
    """No field more, none less, every size bounded."""
    assert entities_of(reply(content)) is None


@given(given=anything, content=anything)
def test_no_answer_raises(given: Any, content: Any) -> None:
    """Whatever a vendor sends, it is entities or nothing."""
    assert entities_of(given) is None
    for answer in (content, json.dumps(content), json.dumps({"entities": content})):
        assert isinstance(entities_of(reply(answer)), tuple | None)


@pytest.mark.parametrize("given", [None, [], {}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": {}}]}])
def test_no_completion_at_all_is_none(given: Any) -> None:
    """An answer that was cut off or garbled on its way."""
    assert entities_of(given) is None


@given(found=entities)
def test_what_was_kept_is_read_again(found: tuple[Entity, ...]) -> None:
    """Stored and read, they are the same."""
    assert found == read(written(found))


@given(found=st.lists(entities, max_size=5))
def test_merged_are_all_of_them_once_in_their_order(found: list[tuple[Entity, ...]]) -> None:
    """Nothing new, nothing lost, the first place counts; merging again changes nothing."""
    together = [entity for chunk in found for entity in chunk]
    once = merged(found)
    assert set(once) == set(together)
    assert len(once) == len(set(once))
    assert list(once) == sorted(once, key=together.index)
    assert once == merged([once])
