"""Reads a stage from `config/`: the defaults file with the stage's overlay on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from shared.contract import env, names
from shared.core.account import is_amount
from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.stage import KEPT_STAGES, STAGES, StageSpec
from shared.core.vendor import is_for_show

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "config"
DEFAULTS = "parameter_defaults.yaml"

SIMULATED_PATHS = {"helpdesk": "/helpdesk", "openai": "/openai/v1"}
"""Where the vendor simulator serves each kind of vendor."""


def load_stage(
    name: str,
    *,
    vendor_url: str | None = None,
    config: Path = CONFIG,
    environ: Mapping[str, str] | None = None,
    for_show: bool = False,
) -> StageSpec:
    """The stage's settings, checked. `vendor_url` points every vendor at the simulator (stage local only).
    `environ` may set limits for this deploy: `EXTRACTION_RATE_LIMIT_RPM`, `EXTRACTION_RATE_LIMIT_TPM`.
    `for_show` is for whoever looks at templates and deploys none: the hosts of the examples will do."""
    if name not in STAGES:
        raise BadInput("stage", f"must be one of {', '.join(STAGES)}")
    spec = StageSpec.from_mappings(name, _read(config / DEFAULTS), _read(config / f"{name}.yaml"))
    _check_secrets(spec)
    if vendor_url and name != "local":
        raise BadInput("vendor_url", "is for the stage local: other stages name their vendors in config/")
    if not for_show:
        _check_hosts(spec)
    spec = _limited(spec, environ or {})
    if not vendor_url:
        return spec
    base = vendor_url.rstrip("/")
    vendors = {
        vendor: replace(settings, base_url=base + _simulated_path(vendor, settings.kind))
        for vendor, settings in spec.vendors.items()
    }
    return replace(spec, vendors=vendors)


def _limited(spec: StageSpec, environ: Mapping[str, str]) -> StageSpec:
    """The stage with the limits that a lane's variables set on its account. They are laid into the stage here and not
    read by a function: workers, dispatcher, stream consumer and command line must not disagree about one account."""
    accounts, setters = dict(spec.accounts), dict[tuple[str, str], tuple[str, int]]()
    for lane in spec.lanes.values():
        for unit, setting in env.RATE_SETTINGS.items():
            variable = env.rate_limit(lane.name, unit)
            text = environ.get(variable)
            if not text:
                continue
            if not text.isdecimal() or not is_amount(int(text)):
                raise BadInput(variable, "must be a whole number above 0")
            account, amount = _limited_account(lane, spec, variable, setting), int(text)
            other, before = setters.setdefault((account, setting), (variable, amount))
            if before != amount:
                raise BadInput(
                    variable, f"is {amount}, but {other} sets the same limit of account {account} to {before}"
                )
            changed: dict[str, Any] = {setting: amount}
            accounts[account] = replace(accounts[account], **changed)
    return replace(spec, accounts=accounts)


def _limited_account(lane: LaneSpec, spec: StageSpec, variable: str, setting: str) -> str:
    """The one account of the lane that the variable can mean: its only one, or the only one with such a limit."""
    having = [name for name in lane.accounts if getattr(spec.accounts[name], setting) is not None]
    meant = having or list(lane.accounts)
    if not meant:
        raise BadInput(variable, f"is set, but lane {lane.name} spends no account")
    if len(meant) > 1:
        raise BadInput(
            variable, f"could mean {' or '.join(meant)}: set accounts.<name>.{setting} in config/ for each account"
        )
    return meant[0]


def _simulated_path(vendor: str, kind: str) -> str:
    if kind not in SIMULATED_PATHS:
        raise BadInput(f"vendors.{vendor}.kind", f"has no simulator; one of {', '.join(SIMULATED_PATHS)} has")
    return SIMULATED_PATHS[kind]


def _check_hosts(spec: StageSpec) -> None:
    """A stage that serves customers calls vendors that there are; an example's host may be anybody's one day."""
    if spec.name not in KEPT_STAGES:
        return
    for vendor in sorted({vendor for lane in spec.lanes.values() for vendor in lane.vendors}):
        if is_for_show(spec.vendors[vendor].base_url):
            raise BadInput(
                f"vendors.{vendor}.base_url",
                f"is the host of an example, or this machine: write the vendor's own into config/{spec.name}.yaml",
            )


def _check_secrets(spec: StageSpec) -> None:
    """One secret belongs to one lane: a worker that reads its neighbour's secret is not isolated from it."""
    owners = {names.intake(lane.name): f"{lane.name}'s intake" for lane in spec.lanes.values() if lane.intake}
    for lane in spec.lanes.values():
        if lane.secret is None:
            continue
        owner = owners.setdefault(lane.secret, lane.name)
        if owner != lane.name:
            raise BadInput(f"lanes.{lane.name}.secret", f"is already the secret of lane {owner}")


class _Twice(yaml.YAMLError):
    """The same name stands twice in one table; YAML would take the last and drop the first silently."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(name)
        self.line = line


class _NoTwins(yaml.SafeLoader):
    """YAML without a name that stands twice: two accounts or lanes of one name are a mistake, not a choice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen:
                raise _Twice(str(key.value), key.start_mark.line + 1)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(path.name, f"is missing in {path.parent.name}/") from None
    try:
        values = yaml.load(text, Loader=_NoTwins)
    except _Twice as twice:
        raise BadInput(path.name, f"has {twice} twice in one table, at line {twice.line}") from None
    except yaml.YAMLError as exc:
        line = getattr(getattr(exc, "problem_mark", None), "line", None)
        place = f" at line {line + 1}" if line is not None else ""
        raise BadInput(path.name, f"is not valid YAML{place}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise BadInput(path.name, "must be a table of settings")
    return values
