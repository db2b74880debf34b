"""A stage's settings: the defaults file with one overlay on top. Pure; who reads the files passes mappings in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from shared.core.effects import Lookup
from shared.core.errors import BadInput
from shared.core.job import name_of
from shared.core.lane import LaneSpec

STAGES = ("local", "dev", "stage", "prod")


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorSpec:
    """Where a vendor is and what it can do for us; never a secret."""

    name: str
    kind: str
    """Which adapter speaks to it: `helpdesk` or `openai`."""
    base_url: str
    dedupe_window_s: int = 0
    """How long it deduplicates by our key; 0: it does not."""
    lookup: str = "none"
    connect_timeout_s: float = 2.0
    read_timeout_s: float = 6.0

    def __post_init__(self) -> None:
        where = f"vendors.{self.name}"
        name_of(where, self.name)
        name_of(f"{where}.kind", self.kind)
        if self.lookup not in tuple(Lookup):
            raise BadInput(f"{where}.lookup", f"must be one of {', '.join(Lookup)}")
        if not _is_safe(self.base_url):
            raise BadInput(f"{where}.base_url", "must start with https:// (http only on this machine)")
        window: object = self.dedupe_window_s
        if not isinstance(window, int) or isinstance(window, bool) or window < 0:
            raise BadInput(f"{where}.dedupe_window_s", "must be a whole number of seconds, or 0")
        for setting in ("connect_timeout_s", "read_timeout_s"):
            value = getattr(self, setting)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 60:
                raise BadInput(f"{where}.{setting}", "must be a number of seconds above 0, at most 60")


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePeriods:
    """Seconds between two runs of each scheduled function; EventBridge allows whole minutes."""

    dispatcher: int = 60
    sweeper: int = 300
    triage: int = 60
    auditor: int = 3600

    def __post_init__(self) -> None:
        for name in ("dispatcher", "sweeper", "triage", "auditor"):
            period = getattr(self, name)
            if isinstance(period, bool) or not isinstance(period, int) or period < 60 or period % 60:
                raise BadInput(f"schedules.{name}", "must be whole minutes in seconds, at least 60")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """Everything a stage is made of."""

    name: str
    lanes: Mapping[str, LaneSpec]
    vendors: Mapping[str, VendorSpec] = field(default_factory=dict)
    schedules: SchedulePeriods = field(default_factory=SchedulePeriods)
    alarm_email: str | None = None
    slack_workspace_id: str | None = None
    slack_channel_id: str | None = None
    reserved_concurrency: bool = False
    """Reserve each worker's ceiling; off where the account's quota is small."""
    retain: bool = True
    """Keep tables, keys and content when a stack is deleted."""
    metrics_alarms: bool = True
    """Metric-math alarms; a stage whose CloudWatch cannot do them turns them off."""
    log_retention_days: int = 30

    @classmethod
    def from_mappings(
        cls, name: str, defaults: Mapping[str, Any], overlay: Mapping[str, Any] | None = None
    ) -> StageSpec:
        """The stage that `defaults` with `overlay` on top describe; unknown settings are named."""
        values = merged(defaults, overlay or {})
        lanes = {
            lane: LaneSpec.from_mapping(lane, _table(entry or {}, f"lanes.{lane}"))
            for lane, entry in _table(values.pop("lanes", {}), "lanes").items()
        }
        vendors = {
            vendor: _built(
                VendorSpec, f"vendors.{vendor}", {**_table(entry or {}, f"vendors.{vendor}"), "name": vendor}
            )
            for vendor, entry in _table(values.pop("vendors", {}), "vendors").items()
        }
        schedules = _built(SchedulePeriods, "schedules", _table(values.pop("schedules", {}), "schedules"))
        spec: StageSpec = _built(
            cls, name, {"name": name, "lanes": lanes, "vendors": vendors, "schedules": schedules, **values}
        )
        for lane in lanes.values():
            for vendor in lane.vendors:
                if vendor not in vendors:
                    raise BadInput(f"lanes.{lane.name}.vendors", f"names {vendor!r}, which vendors does not define")
        return spec


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """`overlay` over `base`: tables are merged, everything else is replaced."""
    result = dict(base)
    for key, value in overlay.items():
        present = result.get(key)
        both = isinstance(value, Mapping) and isinstance(present, Mapping)
        result[key] = merged(present, value) if both and present is not None else value
    return result


def _is_safe(address: object) -> bool:
    """A token is sent there: over TLS, or never off this machine."""
    if not isinstance(address, str):
        return False
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in ("127.0.0.1", "localhost")))


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(where, "must be a table of settings")
    return dict(value)


def _built(kind: Any, where: str, values: Mapping[str, Any]) -> Any:
    known = set(kind.__dataclass_fields__)
    for setting in values:
        if setting not in known:
            raise BadInput(where, f"has an unknown setting {setting!r}")
    try:
        return kind(**values)
    except TypeError:
        raise BadInput(where, "lacks a required setting or has one of the wrong type") from None
