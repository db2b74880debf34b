"""Personal data is found by its shape, in the forms it takes in a line, and what is ours is not mistaken for it."""

from __future__ import annotations

import base64
import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.personal import MARK, Kind, forms, marker_of, sightings

MARKED = forms(MARK)


def kinds(text: str, *words: str) -> list[Kind]:
    """What is seen in a text."""
    return [one.kind for one in sightings(text, (*MARKED, *(form for word in words for form in forms(word))))]


@pytest.mark.req("C12", "R14")
@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("from jane.doe+x@mail.example.org, urgent", Kind.EMAIL),
        ('{"user":"jane@example.org"}', Kind.EMAIL),
        ("GET /search?q=jane%40example.org", Kind.EMAIL),
        ("call +49 151 2345 6789 please", Kind.PHONE),
        ('{"phone": "+4915123456789"}', Kind.PHONE),
        ("call (555) 123-4567", Kind.PHONE),
        ("call 555-123-4567.", Kind.PHONE),
        ("Tel. 0151/23456789", Kind.PHONE),
        ("0049 151 23456789", Kind.PHONE),
        ("pay to DE89 3704 0044 0532 0130 00 BIC COBADEFF", Kind.IBAN),
        ("pay to GB82WEST12345698765432", Kind.IBAN),
        ("card 4111 1111 1111 1111 expired", Kind.CARD),
        ('{"card":"5555555555554444"}', Kind.CARD),
        ("card 3782-822463-10005", Kind.CARD),
        (f"text: {MARK}-7f3a", Kind.CANARY),
        (f"text: {MARK.upper()}-7f3a", Kind.CANARY),
        (f"body={base64.b64encode(f'my {MARK} said'.encode()).decode()}", Kind.CANARY),
        (f"body={f'my {MARK} said'.encode().hex()}", Kind.CANARY),
    ],
)
def test_a_shape_is_found(text: str, kind: Kind) -> None:
    """Once, and by its kind."""
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "REPORT RequestId: 8f507cfc-1234-4697-b07a-ac58fc914c95\tDuration: 102.25 ms\tBilled Duration: 103 ms",
        "2026-11-18T15:59:01.123+00:00 START RequestId: 00000000-1111-4222-8333-444455556666 Version: $LATEST",
        json.dumps({"_aws": {"Timestamp": 1763481600123, "CloudWatchMetrics": [{"Namespace": "Penstock"}]}}),
        json.dumps({"tat_us": 1763481600123456, "at_ns": 1763481600123456789, "depth": 40_000, "share": 0.0523}),
        json.dumps({"xray_trace_id": "1-5759e988-bd862e3fe1be46a994272793", "function_arn": "arn:aws:lambda:eu:1:f"}),
        json.dumps({"job_id": "4111111111111111" * 2, "hash": "0123456789" * 4, "version": "2.275.0"}),
        "timestamp 2026-11-18 15:59:01,123+0000 lane support cap 2 -> 4, pip install boto3@1.43",
        "card 4111 1111 1111 1112 fails its sum; GB82WEST12345698765433 does, too",
        "127.0.0.1:4566 10.0.0.255 account 123456789012 region eu-central-1",
    ],
)
def test_what_is_ours_is_not_mistaken_for_it(text: str) -> None:
    """Ids, times, counters, addresses of machines and wrong sums."""
    assert kinds(text) == []


@given(st.uuids(version=4), st.integers(1_600_000_000_000, 2_000_000_000_000), st.integers(0, 10**6))
def test_ids_and_times_are_never_taken_for_numbers_of_people(one: uuid.UUID, at_ms: int, took: int) -> None:
    """Whatever their digits are."""
    assert kinds(json.dumps({"job_id": str(one), "hex": one.hex, "Timestamp": at_ms, "took": took})) == []


def test_a_word_of_ones_own_is_looked_for_beside_the_mark() -> None:
    """Where it begins is told; a short word is refused, since it is found by chance."""
    assert kinds("the ZephyrQuokka said", "zephyrquokka") == [Kind.CANARY]
    assert [one.offset for one in sightings("the ZephyrQuokka said", forms("zephyrquokka"))] == [4]
    with pytest.raises(BadInput, match="6 characters"):
        marker_of("  abc ")


@given(st.text(max_size=300))
def test_any_text_can_be_swept(text: str) -> None:
    """Nothing raises, and every place lies within the text."""
    assert all(0 <= one.offset <= len(text.casefold()) for one in sightings(text, MARKED))
