"""Reads a stage from `config/`: the defaults file with the stage's overlay on top."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from shared.core.errors import BadInput
from shared.core.stage import STAGES, StageSpec

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "config"
DEFAULTS = "parameter_defaults.yaml"

SIMULATED_PATHS = {"helpdesk": "/helpdesk", "openai": "/openai/v1"}
"""Where the vendor simulator serves each kind of vendor."""


def load_stage(name: str, *, vendor_url: str | None = None, config: Path = CONFIG) -> StageSpec:
    """The stage's settings, checked. `vendor_url` points every vendor at the simulator (stage local only)."""
    if name not in STAGES:
        raise BadInput("stage", f"must be one of {', '.join(STAGES)}")
    spec = StageSpec.from_mappings(name, _read(config / DEFAULTS), _read(config / f"{name}.yaml"))
    _check_secrets(spec)
    if not vendor_url:
        return spec
    if name != "local":
        raise BadInput("vendor_url", "is for the stage local: other stages name their vendors in config/")
    base = vendor_url.rstrip("/")
    vendors = {
        vendor: replace(settings, base_url=base + _simulated_path(vendor, settings.kind))
        for vendor, settings in spec.vendors.items()
    }
    return replace(spec, vendors=vendors)


def _simulated_path(vendor: str, kind: str) -> str:
    if kind not in SIMULATED_PATHS:
        raise BadInput(f"vendors.{vendor}.kind", f"has no simulator; one of {', '.join(SIMULATED_PATHS)} has")
    return SIMULATED_PATHS[kind]


def _check_secrets(spec: StageSpec) -> None:
    """One secret belongs to one lane: a worker that reads its neighbour's secret is not isolated from it."""
    owners: dict[str, str] = {}
    for lane in spec.lanes.values():
        if lane.secret is None:
            continue
        owner = owners.setdefault(lane.secret, lane.name)
        if owner != lane.name:
            raise BadInput(f"lanes.{lane.name}.secret", f"is already the secret of lane {owner}")


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BadInput(path.name, f"is missing in {path.parent.name}/") from None
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        line = getattr(getattr(exc, "problem_mark", None), "line", None)
        place = f" at line {line + 1}" if line is not None else ""
        raise BadInput(path.name, f"is not valid YAML{place}") from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise BadInput(path.name, "must be a table of settings")
    return values
