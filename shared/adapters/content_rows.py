"""How a small payload is written as a row, and read back. Text deflates well, and a row costs by the kilobyte."""

from __future__ import annotations

import zlib
from datetime import datetime

from shared.adapters import attributes
from shared.adapters.attributes import Fields, Item
from shared.contract import table
from shared.core.errors import UnreadableRow
from shared.core.lane import MAX_ROW_PAYLOAD_BYTES

PLAIN, DEFLATED = "text", "deflated"
"""The bytes as they are, or deflated: whichever is shorter."""


def payload_item(key: str, data: bytes, expires_at: datetime) -> Item:
    """A payload's row."""
    deflated = zlib.compress(data, level=9)
    kept = {DEFLATED: {"B": deflated}} if len(deflated) < len(data) else {PLAIN: {"B": data}}
    return {table.PK: attributes.text(key), table.TTL: attributes.expiry(expires_at), **kept}


def payload_from_item(item: Item, now: datetime) -> bytes | None:
    """The bytes; None once the row has expired, which DynamoDB may notice days later, or where nobody can read it."""
    try:
        expires_at = Fields("payload", item).expiry_or_none(table.TTL)
        if expires_at is not None and expires_at <= now:
            return None
        return _inflated(item[DEFLATED]["B"]) if DEFLATED in item else bytes(item[PLAIN]["B"])
    except (UnreadableRow, KeyError, TypeError, ValueError, zlib.error):
        return None


def _inflated(deflated: bytes) -> bytes:
    """What was deflated. Raises ValueError where it is cut off, or more than a row was ever given."""
    inflater = zlib.decompressobj()
    data = inflater.decompress(deflated, MAX_ROW_PAYLOAD_BYTES)
    if not inflater.eof:
        raise ValueError("is not what a payload deflates to")
    return data
