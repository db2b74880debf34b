"""A job's id: the same cause is the same job, another cause is another job, and a missing part is refused."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.core.effects import effect_id_of
from shared.core.errors import BadInput
from shared.core.job import (
    MAX_KEY_PART,
    MAX_KEY_PARTS,
    MAX_TENANT,
    NAMESPACE,
    derived_id,
    identifier,
    job_id_of,
    key_parts,
    name_of,
)
from tests.unit.core.strategies import few, identifiers, names

keys = st.lists(identifiers, min_size=1, max_size=MAX_KEY_PARTS)
causes = st.tuples(names, identifiers, names, keys)


@pytest.mark.req("C1", "M4")
@pytest.mark.fault("A12")
@given(one=causes, other=causes)
def test_distinct_causes_have_distinct_ids(one: tuple, other: tuple) -> None:
    """Lane, tenant, task and every key part count; whatever differs makes another job."""
    assume((*one[:3], *one[3]) != (*other[:3], *other[3]))
    assert job_id_of(*one) != job_id_of(*other)


@pytest.mark.req("C1", "M4")
@few
@given(cause=causes)
def test_the_same_cause_is_always_the_same_job(cause: tuple) -> None:
    """The id depends on nothing but its parts, and is a plain UUID."""
    again = (*cause[:3], tuple(cause[3]))
    assert job_id_of(*cause) == job_id_of(*again)
    assert uuid.UUID(job_id_of(*cause)).version == 5


def test_the_derivation_never_changes() -> None:
    """Rows and vendors' keys outlive a release: these two ids are what they were in the first one."""
    job_id = job_id_of("support", "acme", "answer_event", ["evt-1"])
    assert job_id == "9371b7b5-781a-5837-9fba-5a2dc0c08026"
    assert effect_id_of(job_id, "reply") == "564f2c0f-339d-54bb-85b8-3c2473124f8f"


@pytest.mark.fault("A12")
@given(parts=st.lists(st.text(max_size=6), max_size=4), others=st.lists(st.text(max_size=6), max_size=4))
def test_parts_are_length_prefixed(parts: list[str], others: list[str]) -> None:
    """Moving a character from one part to its neighbour gives another id: ("ab", "c") is not ("a", "bc")."""
    assume(parts != others)
    assert derived_id(NAMESPACE, *parts) != derived_id(NAMESPACE, *others)


@pytest.mark.fault("A12")
@given(text=st.text("abc123", min_size=2, max_size=12), data=st.data())
def test_no_split_of_one_text_collides_with_another(text: str, data: st.DataObject) -> None:
    """One key part and the same text as two parts are different causes."""
    cut = data.draw(st.integers(1, len(text) - 1))
    whole = job_id_of("support", "t", "reply", [text])
    assert whole != job_id_of("support", "t", "reply", [text[:cut], text[cut:]])


NOT_IDS = {
    "missing": (None, "is missing or empty"),
    "empty": ("", "is missing or empty"),
    "a number": (7, "is missing or empty"),
    "blank": (" ", "may hold only"),
    "prose": ("my dog ate it", "may hold only"),
    "a line break": ("a\n", "may hold only"),
    "a separator": ("a#b", "may hold only"),
    "non-ascii": ("naïve", "may hold only"),
    "leading dash": ("-x", "may hold only"),
    "a null byte": ("a\0", "may hold only"),
}


@pytest.mark.fault("A12")
@pytest.mark.parametrize(("value", "problem"), NOT_IDS.values(), ids=NOT_IDS)
def test_a_part_that_is_no_id_is_refused_by_its_place(value: object, problem: str) -> None:
    """The error names the part and never repeats it."""
    with pytest.raises(BadInput, match=problem) as tenant:
        job_id_of("support", value, "reply", "k")  # type: ignore[arg-type]
    assert tenant.value.field == "tenant"
    with pytest.raises(BadInput, match=problem) as key:
        job_id_of("support", "acme", "reply", ["first", value])  # type: ignore[list-item]
    assert key.value.field == "key[1]"
    if isinstance(value, str) and len(value) > 1:
        assert value not in str(key.value)


@pytest.mark.fault("A12")
def test_over_long_parts_are_refused_with_both_numbers() -> None:
    """What was given and what is allowed are both said."""
    with pytest.raises(BadInput, match="tenant: has 65 characters, at most 64 are allowed"):
        job_id_of("support", "t" * (MAX_TENANT + 1), "reply", "k")
    with pytest.raises(BadInput, match=r"key\[0\]: has 129 characters, at most 128"):
        job_id_of("support", "t", "reply", "k" * (MAX_KEY_PART + 1))
    with pytest.raises(BadInput, match="key: has 5 parts, at most 4 are allowed"):
        job_id_of("support", "t", "reply", ["k"] * (MAX_KEY_PARTS + 1))


@pytest.mark.fault("A12")
@pytest.mark.parametrize("key", [None, [], (), 7, 1.5, {"a": 1}, {"a", "b"}])
def test_a_missing_key_is_refused_by_name(key: object) -> None:
    """No key, no job: nothing is derived from nothing."""
    with pytest.raises(BadInput) as refused:
        key_parts(key)  # type: ignore[arg-type]
    assert refused.value.field == "key"


@pytest.mark.parametrize("name", ["", "Support", "1st", "a-b", "a b", "a" * 33, None, "é", "a\n"])
def test_names_become_resource_names_so_they_are_narrow(name: object) -> None:
    """Lanes, tasks and effects: lower case, digits, underscores, at most 32."""
    with pytest.raises(BadInput) as refused:
        name_of("lane", name)
    assert refused.value.field == "lane"


@given(name=names, text=identifiers)
def test_what_is_well_formed_is_taken_as_it_is(name: str, text: str) -> None:
    """Nothing is trimmed, folded or normalised: the id names what the caller named."""
    assert name_of("lane", name) == name
    assert identifier("tenant", text, 100) == text


@few
@given(job=st.uuids(), one=names, other=names)
def test_one_effect_one_key(job: uuid.UUID, one: str, other: str) -> None:
    """A vendor's key depends on job and effect alone: the same on every attempt, another for another effect."""
    assert effect_id_of(str(job), one) == effect_id_of(str(job), one)
    assert (effect_id_of(str(job), one) == effect_id_of(str(job), other)) == (one == other)
