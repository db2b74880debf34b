"""What a vendor can say of its accepts: only those up to a moment, which lies back where it lags."""

from __future__ import annotations

from datetime import datetime

from ops.vendors.asks import ListAccepts, LookUp
from ops.vendors.record import Entry, Record


def look_up(record: Record, vendor: str, ask: LookUp, until: datetime) -> dict[str, object]:
    """Whether the key was accepted by then, and how often; where it was more than once, the first."""
    accepts = record.accepts_of(vendor=vendor, key=ask.key, action=ask.action)
    known = [entry for entry in accepts if entry.at <= until]
    return {"found": True, "times": len(known), **_listed(known[0])} if known else {"found": False}


def list_accepts(record: Record, vendor: str, ask: ListAccepts, until: datetime) -> dict[str, object]:
    """The accepts by then, in order, from after a sequence number: pass on the last `seq` to read on."""
    accepts = [
        entry
        for entry in record.requests(vendor=vendor, since=ask.after)
        if entry.accepted and entry.at <= until and (not ask.conversation or entry.conversation == ask.conversation)
    ]
    return {"actions": [_listed(entry) for entry in accepts[: ask.limit]]}


def _listed(entry: Entry) -> dict[str, object]:
    return {
        "id": entry.vendor_id,
        "action": entry.action,
        "conversation": entry.conversation,
        "key": entry.key,
        "at": entry.at.isoformat(),
        "seq": entry.seq,
    }
