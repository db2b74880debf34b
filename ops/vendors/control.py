"""The simulator's own doors, for the tests and the demo that drive it over HTTP. No vendor has these.

GET  /_sim/health
GET  /_sim/summary[?vendor=V]
GET  /_sim/record[?vendor=V&since=SEQ&key=K]
GET  /_sim/batches?vendor=V[&tag=T]
GET  /_sim/config/{vendor}
PUT  /_sim/config/{vendor}     the fields to change; the others stay
POST /_sim/reset               {"keep_config": true} keeps the switches as they are
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from ops.vendors.accounts import Accounts
from ops.vendors.config import ConfigError
from ops.vendors.json_body import BodyError, read_object
from ops.vendors.request import VendorRequest

PREFIX = "_sim"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlAnswer:
    """A status and a JSON body."""

    status: int
    body: Mapping[str, object]


def handle_control(accounts: Accounts, request: VendorRequest, now: datetime) -> ControlAnswer:
    """Answer one request to the simulator itself. Anything wrong is a status and a sentence."""
    door, *rest = request.segments[1:] or ("",)
    methods = _DOORS.get(door)
    if methods is None or len(rest) != (1 if door == "config" else 0):
        return _refuse(404, f"the simulator has no such path; it has {', '.join(sorted(_DOORS))}")
    answer = methods.get(request.method)
    if answer is None:
        return _refuse(405, f"{door} takes {' or '.join(methods)} only")
    try:
        return ControlAnswer(status=200, body=answer(accounts, request, now))
    except (ConfigError, BodyError) as exc:
        return _refuse(400, str(exc))


def _health(accounts: Accounts, request: VendorRequest, now: datetime) -> Mapping[str, object]:
    return {"status": "ok", "vendors": sorted(accounts.vendors)}


def _summary(accounts: Accounts, request: VendorRequest, now: datetime) -> Mapping[str, object]:
    return accounts.record.summary(vendor=_vendor_filter(accounts, request)).to_json()


def _record(accounts: Accounts, request: VendorRequest, now: datetime) -> Mapping[str, object]:
    since = request.query.get("since", "0")
    if not (since.isascii() and since.isdigit() and len(since) <= 12):
        raise ConfigError("since must be a sequence number")
    entries = accounts.record.requests(
        vendor=_vendor_filter(accounts, request), since=int(since), key=request.query.get("key", "")
    )
    return {"entries": [{**entry.to_json(), "accepted": entry.accepted} for entry in entries]}


def _read_config(accounts: Accounts, request: VendorRequest, now: datetime) -> Mapping[str, object]:
    return accounts.vendor(request.segments[2]).config.to_json()


def _write_config(accounts: Accounts, request: VendorRequest, now: datetime) -> Mapping[str, object]:
    vendor = accounts.vendor(request.segments[2])
    return vendor.configure(read_object(request.body)).to_json()


def _reset(accounts: Accounts, request: VendorRequest, now: datetime) -> Mapping[str, object]:
    fields = read_object(request.body) if request.body else {}
    keep_config = fields.pop("keep_config", False)
    if fields or not isinstance(keep_config, bool):
        raise ConfigError("reset takes keep_config, true or false, and nothing else")
    accounts.reset(keep_config=keep_config)
    return {"status": "reset"}


def _batches(accounts: Accounts, request: VendorRequest, now: datetime) -> Mapping[str, object]:
    return accounts.vendor(request.query.get("vendor", "")).batches(now, request.query.get("tag", ""))


_Door = Callable[[Accounts, VendorRequest, datetime], Mapping[str, object]]
_DOORS: dict[str, dict[str, _Door]] = {
    "health": {"GET": _health},
    "summary": {"GET": _summary},
    "record": {"GET": _record},
    "batches": {"GET": _batches},
    "config": {"GET": _read_config, "PUT": _write_config},
    "reset": {"POST": _reset},
}


def _vendor_filter(accounts: Accounts, request: VendorRequest) -> str:
    name = request.query.get("vendor", "")
    return accounts.vendor(name).name if name else ""


def _refuse(status: int, sentence: str) -> ControlAnswer:
    return ControlAnswer(status=status, body={"error": sentence, "status": status})
