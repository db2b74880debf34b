"""A stage's settings: the defaults file with one overlay on top. Pure; who reads the files passes mappings in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.core.account import AccountSpec
from shared.core.capacity import POLICIES, Policy
from shared.core.errors import BadInput
from shared.core.governing import Rules
from shared.core.lane import LaneSpec, content_kept_days
from shared.core.schedule import ScheduleRule
from shared.core.severity import Thresholds
from shared.core.vendor import VendorSpec
from shared.core.vendor_cost import Prices, check_priced

STAGES = ("local", "dev", "stage", "prod")
PROD = "prod"
KEPT_STAGES = ("stage", PROD)
"""Those whose data somebody misses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePeriods:
    """Seconds between two runs of each scheduled function; EventBridge allows whole minutes."""

    dispatcher: int = 60
    sweeper: int = 300
    triage: int = 60
    auditor: int = 3600
    redriver: int = 60
    governor: int = 60

    def __post_init__(self) -> None:
        for name in ("dispatcher", "sweeper", "triage", "auditor", "redriver", "governor"):
            period = getattr(self, name)
            if isinstance(period, bool) or not isinstance(period, int) or period < 60 or period % 60:
                raise BadInput(f"schedules.{name}", "must be whole minutes in seconds, at least 60")


ALL_ALARMS, ESSENTIAL_ALARMS = "all", "essential"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """Everything a stage is made of."""

    name: str
    lanes: Mapping[str, LaneSpec]
    vendors: Mapping[str, VendorSpec] = field(default_factory=dict)
    accounts: Mapping[str, AccountSpec] = field(default_factory=dict)
    schedules: SchedulePeriods = field(default_factory=SchedulePeriods)
    schedule_rules: Mapping[str, ScheduleRule] = field(default_factory=dict)
    """What a schedule does after a gap and beside a run that is still going; skip both unless it is said here."""
    severity: Thresholds = field(default_factory=Thresholds)
    policies: Mapping[str, Policy] = field(default_factory=lambda: dict(POLICIES))
    """How caps move; a lane names one."""
    prices: Prices = field(default_factory=Prices)
    """What vendors charge, for the cost of a lane."""
    alarm_email: str | None = None
    slack_workspace_id: str | None = None
    slack_channel_id: str | None = None
    reserved_concurrency: bool = False
    """Reserve each worker's ceiling; off where the account's quota is small."""
    free_session_names: bool = False
    """Whoever chooses the name of a session counts as that person: one may be two. Never in prod."""
    retain: bool = True
    """Keep tables, keys and content when a stack is deleted."""
    alarms: str = ALL_ALARMS
    """`all`, or `essential`: only what tells that something is lost, unknown or stands still."""
    metrics_alarms: bool = True
    """Metric-math alarms; a stage whose CloudWatch cannot do them turns them off."""
    log_retention_days: int = 30

    @property
    def content_kept_days(self) -> int:
        """How long a text is kept."""
        return content_kept_days(self.lanes.values())

    @property
    def governing(self) -> dict[str, Any]:
        """What of the rules for judging and steering lanes differs from the defaults."""
        return Rules(thresholds=self.severity, policies=self.policies, prices=self.prices).to_mapping()

    @classmethod
    def from_mappings(
        cls, name: str, defaults: Mapping[str, Any], overlay: Mapping[str, Any] | None = None
    ) -> StageSpec:
        """The stage that `defaults` with `overlay` on top describe; unknown settings are named."""
        values = merged(defaults, overlay or {})
        usual = _table(values.pop("lane_defaults", {}), "lane_defaults")
        lanes = {
            lane: LaneSpec.from_mapping(lane, {**usual, **_table(entry or {}, f"lanes.{lane}")})
            for lane, entry in _table(values.pop("lanes", {}), "lanes").items()
        }
        vendors = {
            vendor: _built(
                VendorSpec, f"vendors.{vendor}", {**_table(entry or {}, f"vendors.{vendor}"), "name": vendor}
            )
            for vendor, entry in _table(values.pop("vendors", {}), "vendors").items()
        }
        accounts = {
            account: _built(
                AccountSpec, f"accounts.{account}", {**_table(entry or {}, f"accounts.{account}"), "name": account}
            )
            for account, entry in _table(values.pop("accounts", {}), "accounts").items()
        }
        schedules = _built(SchedulePeriods, "schedules", _table(values.pop("schedules", {}), "schedules"))
        rules = {
            schedule: ScheduleRule.from_mapping(schedule, _table(entry or {}, f"schedule_rules.{schedule}"))
            for schedule, entry in _table(values.pop("schedule_rules", {}), "schedule_rules").items()
        }
        thresholds = _built(Thresholds, "severity", _table(values.pop("severity", {}), "severity"))
        policies = dict(POLICIES) | {
            policy: Policy.from_mapping(policy, _table(entry or {}, f"policies.{policy}"))
            for policy, entry in _table(values.pop("policies", {}), "policies").items()
        }
        prices = Prices.from_mapping(_table(values.pop("prices", None) or {}, "prices"))
        runs = {f"{lane.name}_{role}" for lane in lanes.values() for role in lane.runs}
        for schedule in rules:
            if schedule not in SchedulePeriods.__dataclass_fields__ and schedule not in runs:
                raise BadInput(f"schedule_rules.{schedule}", "is not a schedule of the engine or of a lane's runs")
        spec: StageSpec = _built(
            cls,
            name,
            {
                "name": name,
                "lanes": lanes,
                "vendors": vendors,
                "accounts": accounts,
                "schedules": schedules,
                "schedule_rules": rules,
                "severity": thresholds,
                "policies": policies,
                "prices": prices,
                **values,
            },
        )
        _check_kept(spec)
        if spec.alarms not in (ALL_ALARMS, ESSENTIAL_ALARMS):
            raise BadInput("alarms", f"must be {ALL_ALARMS} or {ESSENTIAL_ALARMS}")
        _check_accounts(spec)
        _check_minutes(spec)
        for lane in lanes.values():
            check_priced(lane, prices)
            if lane.policy not in policies:
                raise BadInput(f"lanes.{lane.name}.policy", f"must be one of {', '.join(policies)}")
            for vendor in lane.vendors:
                if vendor not in vendors:
                    raise BadInput(f"lanes.{lane.name}.vendors", f"names {vendor!r}, which vendors does not define")
        return spec


def _check_kept(spec: StageSpec) -> None:
    """What customers depend on outlives its stacks."""
    for setting in ("retain", "reserved_concurrency", "metrics_alarms", "free_session_names"):
        told: object = getattr(spec, setting)
        if not isinstance(told, bool):
            raise BadInput(setting, "must be true or false")
    if spec.name == PROD and spec.free_session_names:
        raise BadInput("free_session_names", f"must stay false in {PROD}: what takes two people would take one")
    if spec.name in KEPT_STAGES and not spec.retain:
        raise BadInput(
            "retain", f"must stay true in {spec.name}: without it, tables, keys and texts go with their stack"
        )


def _check_accounts(spec: StageSpec) -> None:
    """Every account has a vendor, and a lane knows which account a call to a vendor spends."""
    for account in spec.accounts.values():
        if account.vendor not in spec.vendors:
            raise BadInput(
                f"accounts.{account.name}.vendor", f"names {account.vendor!r}, which vendors does not define"
            )
    for lane in spec.lanes.values():
        where, payers = f"lanes.{lane.name}.accounts", dict[str, str]()
        for name in lane.accounts:
            if name not in spec.accounts:
                raise BadInput(where, f"names {name!r}, which accounts does not define")
            vendor = spec.accounts[name].vendor
            if vendor not in lane.vendors:
                raise BadInput(
                    where, f"names {name!r}, an account with vendor {vendor!r}, which the lane does not call"
                )
            if payers.setdefault(vendor, name) != name:
                raise BadInput(where, f"names two accounts with vendor {vendor!r}: {payers[vendor]!r} and {name!r}")


def _check_minutes(spec: StageSpec) -> None:
    """What is judged over a window is judged over one minute of each lane at least."""
    longest = max((lane.minute_s for lane in spec.lanes.values()), default=60)
    for window in ("normal_window_s", "growth_window_s"):
        if getattr(spec.severity, window) < longest:
            raise BadInput(f"severity.{window}", f"must be at least {longest}, a minute of a lane (`minute_s`)")


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """`overlay` over `base`: tables are merged, everything else is replaced."""
    result = dict(base)
    for key, value in overlay.items():
        present = result.get(key)
        both = isinstance(value, Mapping) and isinstance(present, Mapping)
        result[key] = merged(present, value) if both and present is not None else value
    return result


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
