"""A payload: one byte form, refused by place and never by value where JSON cannot carry it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.job import (
    MAX_PAYLOAD_BYTES,
    MAX_PAYLOAD_DEPTH,
    canonical_payload,
    payload_hash,
    utc,
)
from tests.unit.core.strategies import few, json_values, moments, words

SECRET = "the customer's own words"
payloads = st.dictionaries(words, json_values, max_size=5)


def nested(depth: int) -> dict[str, object]:
    """An object `depth` levels deep."""
    value: object = 1
    for _ in range(depth - 1):
        value = [value]
    return {"a": value}


@few
@given(payload=payloads)
def test_one_payload_has_one_form(payload: dict) -> None:
    """The order of fields does not count, and what is read back is what was given."""
    reordered = dict(reversed(payload.items()))
    data = canonical_payload(payload)
    assert data == canonical_payload(reordered)
    assert json.loads(data) == payload
    assert len(payload_hash(data)) == 32


def test_any_mapping_will_do() -> None:
    """A read-only view says the same as the dict it shows, inside and out."""
    inner = MappingProxyType({"b": 2, "a": (1, 2)})
    assert canonical_payload(MappingProxyType({"x": inner})) == b'{"x":{"a":[1,2],"b":2}}'


NOT_JSON = {
    "nan": ({"a": float("nan")}, "payload[0]", "is not a finite number"),
    "infinity": ({"a": 1, "b": [float("inf")]}, "payload[1][0]", "is not a finite number"),
    "bytes": ({"a": SECRET.encode()}, "payload[0]", "is a bytes, which JSON cannot carry"),
    "datetime": ({"a": {"b": datetime.now(UTC)}}, "payload[0][0]", "is a datetime"),
    "decimal": ({"a": Decimal("1.5")}, "payload[0]", "is a Decimal"),
    "set": ({"a": {SECRET}}, "payload[0]", "is a set"),
    "object": ({SECRET: object()}, "payload[0]", "is a object"),
    "number as name": ({"a": {1: "x"}}, "payload[0]", "has a field name that is not text"),
    "huge number": ({"a": 10**5000}, "payload[0]", "number"),
    "lone surrogate": ({"a": "\ud800"}, "payload", "is not valid Unicode"),
    "list": ([SECRET], "payload", "must be an object"),
    "text": (SECRET, "payload", "must be an object"),
    "none": (None, "payload", "must be an object"),
}


@pytest.mark.fault("H5", "C8")
@pytest.mark.parametrize(("payload", "field", "problem"), NOT_JSON.values(), ids=NOT_JSON)
def test_what_json_cannot_carry_is_refused_by_its_place(payload: object, field: str, problem: str) -> None:
    """The error names where, and holds neither a value nor a field name: both may be a customer's."""
    with pytest.raises(BadInput) as refused:
        canonical_payload(payload)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert problem in refused.value.problem
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__


@pytest.mark.fault("H5")
@pytest.mark.parametrize("depth", [MAX_PAYLOAD_DEPTH + 1, 1000, 50_000])
def test_deep_nesting_is_refused_before_it_can_overflow(depth: int) -> None:
    """The limit, and far beyond what the interpreter could walk."""
    with pytest.raises(BadInput, match=f"payload: is nested deeper than {MAX_PAYLOAD_DEPTH} levels"):
        canonical_payload(nested(depth))
    assert canonical_payload(nested(MAX_PAYLOAD_DEPTH - 1))


@pytest.mark.fault("H5")
def test_a_payload_inside_itself_is_refused() -> None:
    """A cycle is only very deep nesting."""
    loop: dict[str, object] = {}
    loop["again"] = loop
    with pytest.raises(BadInput, match="nested deeper"):
        canonical_payload(loop)


@pytest.mark.fault("C8")
@given(over=st.integers(-3, 3))
def test_the_limit_counts_bytes_as_they_are_stored(over: int) -> None:
    """Exactly the limit is taken, one byte more is refused with both numbers; umlauts count twice."""
    frame = len(canonical_payload({"a": ""}))
    text = "ü" * 1000 + "x" * (MAX_PAYLOAD_BYTES - frame - 2000 + over)
    if over <= 0:
        assert len(canonical_payload({"a": text})) == MAX_PAYLOAD_BYTES + over
        return
    with pytest.raises(BadInput, match=f"has {MAX_PAYLOAD_BYTES + over} bytes, at most {MAX_PAYLOAD_BYTES}"):
        canonical_payload({"a": text})


class NoOffset(tzinfo):
    """A zone that does not say how far it is from UTC."""

    def utcoffset(self, dt: datetime | None) -> None:
        return None

    def tzname(self, dt: datetime | None) -> str:
        return "?"

    def dst(self, dt: datetime | None) -> None:
        return None


BAD_TIMES = {
    "naive": (datetime(2026, 1, 1), "has no time zone"),
    "naive in disguise": (datetime(2026, 1, 1, tzinfo=NoOffset()), "has no time zone"),
    "text": ("2026-01-01T00:00:00Z", "must be a datetime"),
    "number": (1767225600, "must be a datetime"),
    "date": (datetime(2026, 1, 1).date(), "must be a datetime"),
    "before our time": (datetime(1999, 12, 31, tzinfo=UTC), "between the years 2000 and 2200"),
    "after our time": (datetime(2200, 1, 1, tzinfo=UTC), "between the years 2000 and 2200"),
    "no UTC form": (datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), "between the years"),
}


@pytest.mark.parametrize(("value", "problem"), BAD_TIMES.values(), ids=BAD_TIMES)
def test_a_time_nobody_can_tell_is_refused(value: object, problem: str) -> None:
    """A naive datetime above all."""
    with pytest.raises(BadInput, match=problem) as refused:
        utc("not_before", value)  # type: ignore[arg-type]
    assert refused.value.field == "not_before"


@given(at=moments, micros=st.integers(0, 999), hours=st.integers(-12, 12))
def test_a_time_is_kept_in_utc_and_whole_milliseconds(at: datetime, micros: int, hours: int) -> None:
    """What is compared later is what was stored."""
    given_at = (at + timedelta(microseconds=micros)).astimezone(timezone(timedelta(hours=hours)))
    kept = utc("not_before", given_at)
    assert kept == at
    assert kept is not None
    assert kept.tzinfo is UTC
    assert utc("not_before", None) is None
