"""Small payloads as rows: under their tenant, for a time that the code judges, by the kilobyte."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from shared.adapters import content_rows
from shared.adapters.aws.clients import settings
from shared.adapters.aws.content import DynamoDbContentStore
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.meter import Meter, Usage, item_size
from shared.contract import names, table
from shared.contract.references import payload_object, payload_row, row_key
from shared.core.errors import BadInput
from shared.core.job import LONGEST_WAIT_DAYS, canonical_payload, job_id_of, payload_hash
from shared.core.lane import MAX_ROW_PAYLOAD_BYTES, content_kept_days
from tests.builders import NOW, a_lane
from tests.contract.tables import create_tables

STAGE = "ct"
REF = names.PAYLOAD_ROWS + table.payload_pk("acme", "j1", "h1")
LETTER = (
    "Hello, on Tuesday I ordered two pairs of hiking boots, size 42 and 38, and paid with my credit card. The parcel "
    "came this morning with only one pair in it, and the box was open on one side. I called your hotline twice, waited "
    "for more than half an hour each time, and was cut off before anybody could look at my order. We are leaving for "
    "the mountains on Saturday and need both pairs by then. Can you tell me whether the second pair was packed "
    "separately, and if not, whether a replacement could reach us by Friday evening? If that is impossible I would "
    "rather have my money back and buy them in town. I attach a photograph of the open box and of the delivery note, "
    "which says that both pairs were sent. My neighbour, who took the parcel in, remembers that the driver seemed to "
    "be in a hurry and left without waiting for her signature. Please answer to this address, since I cannot be "
    "reached by telephone during the day. Kind regards, Ada Quist, order 4711-081-5234"
)


@pytest.fixture
def dynamodb() -> Any:
    with mock_aws():
        client = boto3.client("dynamodb", config=settings("dynamodb", validate=True))
        create_tables(client, STAGE, [names.CONTENT_TABLE])
        yield client


def _store(client: Any, clock: VirtualClock, meter: Meter | None = None) -> DynamoDbContentStore:
    return DynamoDbContentStore(
        client=client,
        table_name=names.table(STAGE, names.CONTENT_TABLE),
        clock=clock,
        kept_days=content_kept_days([a_lane()]),
        meter=meter or Meter(),
    )


@pytest.mark.req("R14")
def test_a_text_ends_when_it_expires_not_when_dynamodb_gets_to_it(dynamodb: Any) -> None:
    """Until its last second it is read; from then on it is absent, though the row may stand there for days."""
    clock = VirtualClock(NOW)
    store = _store(dynamodb, clock)
    store.put(REF, b"text")
    kept = timedelta(days=LONGEST_WAIT_DAYS + a_lane().failed_kept_days)
    clock.advance_to(NOW + kept - timedelta(seconds=1))
    assert store.get(REF) == b"text"
    clock.advance_to(NOW + kept)
    assert store.get(REF) is None
    (item,) = dynamodb.scan(TableName=names.table(STAGE, names.CONTENT_TABLE))["Items"]
    assert item[table.PK]["S"] == row_key(REF)


@pytest.mark.fault("H1")
def test_the_tenant_is_what_a_key_begins_with() -> None:
    """A policy for `acme#*` reaches acme's rows and nobody else's: no tenant's name can hold what follows it."""
    for tenant in ("acme", "acme/b", "acme-b"):
        key = row_key(payload_row(tenant, job_id_of("support", tenant, "t", "k"), "0" * 32))
        assert key is not None
        assert key.startswith("acme#") == (tenant == "acme")


@pytest.mark.parametrize(
    "ref", [payload_object("j", "h"), "document/acme/d", "result/j/answer", "quarantine/support/h"]
)
def test_references_of_objects_stay_objects(ref: str) -> None:
    """What was stored before there were rows is read where it is, and so is all that is no payload."""
    assert row_key(ref) is None


def test_more_than_a_row_may_hold_is_refused(dynamodb: Any) -> None:
    """By its size, and nothing is written; a reference of an object is no row's."""
    store = _store(dynamodb, VirtualClock(NOW))
    with pytest.raises(BadInput, match="at most 4096"):
        store.put(REF, b"x" * (MAX_ROW_PAYLOAD_BYTES + 1))
    for ref in ("payload/j/h", names.PAYLOAD_ROWS):
        with pytest.raises(BadInput, match="does not name a row"):
            store.get(ref)


def test_a_letter_of_a_kilobyte_costs_one_unit_to_write_and_one_to_read(dynamodb: Any) -> None:
    """Its text deflates, so that key, expiry and text together are below a kilobyte."""
    data = canonical_payload({"conversation_id": "c-20931", "topic": "shipping", "text": LETTER})
    assert len(data) >= 1024
    meter = Meter()
    store = _store(dynamodb, VirtualClock(NOW), meter)
    job_id = job_id_of("support", "workspace-00417", "answer_event", "k")
    ref = payload_row("workspace-00417", job_id, payload_hash(data))
    store.put(ref, data)
    assert store.get(ref) == data
    used = meter.snapshot()
    assert used["content", "put"] == Usage(calls=1, write_units=1)
    assert used["content", "get"] == Usage(calls=1, read_units=1.0)


@given(st.binary(max_size=MAX_ROW_PAYLOAD_BYTES))
def test_any_bytes_survive_a_row_that_is_no_longer_than_they_need(data: bytes) -> None:
    """Byte for byte; what does not deflate is kept as it is."""
    item = content_rows.payload_item("acme#j#h", data, NOW)
    assert content_rows.payload_from_item(item, NOW - timedelta(seconds=1)) == data
    plain = {table.PK: {"S": "acme#j#h"}, table.TTL: item[table.TTL], content_rows.PLAIN: {"B": data}}
    assert item_size(item) <= item_size(plain) + len(content_rows.DEFLATED)


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"text": {"S": "words"}, "deflated": {"B": b"no such thing"}},
        {"deflated": {"B": content_rows.zlib.compress(b"x" * (MAX_ROW_PAYLOAD_BYTES + 1))}},
        {"deflated": {"B": content_rows.zlib.compress(b"x" * 999)[:-5]}},
        {"text": {"B": b"x"}, table.TTL: {"N": "never"}},
        {"text": {"N": "1"}},
    ],
)
def test_a_row_nobody_can_read_is_no_text(kept: dict[str, Any]) -> None:
    """Cut off, swollen, of another type: absent, like a text that was lost, and never an error with text in it."""
    assert content_rows.payload_from_item({table.PK: {"S": "acme#j#h"}, **kept}, NOW) is None


def test_a_row_without_an_expiry_is_read() -> None:
    """It ends by hand."""
    assert content_rows.payload_from_item({table.PK: {"S": "k"}, "text": {"B": b"x"}}, NOW) == b"x"
