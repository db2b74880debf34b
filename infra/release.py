"""The templates of the last release, kept in git in a form that changes only when what is deployed changes."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from infra.stage import ROOT

FOLDER = ROOT / "infra" / "release"
NAME = "version.json"
"""Beside the stages: the version that was recorded, and the hash of all templates."""
Templates = Mapping[str, Mapping[str, Any]]
"""Stack → template."""

_VERSION_ID = re.compile(r"(CurrentVersion)[0-9A-F]{8}[0-9a-f]{32}")
_LEFT_OUT = ("Parameters", "Rules", "Metadata")


def normalized(template: Mapping[str, Any]) -> dict[str, Any]:
    """Without what every build changes: asset hashes, version ids, the version tag, the CDK's own notes."""
    kept = {key: value for key, value in template.items() if key not in _LEFT_OUT}
    cleaned: dict[str, Any] = _cleaned(json.loads(_VERSION_ID.sub(r"\1", json.dumps(kept))))
    return cleaned


def read(stage: str, folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The stage as it was last released; empty when it never was."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((folder / stage).glob("*.json"))}


def write(stage: str, templates: Templates, folder: Path = FOLDER) -> None:
    """Make these the stage's last release."""
    place = folder / stage
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.json"):
        if old.stem not in templates:
            old.unlink()
    for stack, template in templates.items():
        text = json.dumps(normalized(template), indent=1, sort_keys=True) + "\n"
        (place / f"{stack}.json").write_text(text, encoding="utf-8")


def version(folder: Path = FOLDER) -> str | None:
    """The version that was recorded; None when none was."""
    told = _named(folder)
    return None if told is None else str(told["version"])


def name(version: str, folder: Path = FOLDER) -> None:
    """Say whose templates these are, and what they are."""
    told = {"version": version, "templates": digest(folder)}
    (folder / NAME).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def is_whole(folder: Path = FOLDER) -> bool:
    """True when the templates are those that the version was recorded with."""
    told = _named(folder)
    return told is not None and told["templates"] == digest(folder)


def digest(folder: Path = FOLDER) -> str:
    """One for all templates of all stages."""
    summed = hashlib.sha256()
    for path in sorted(folder.glob("*/*.json")):
        summed.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return summed.hexdigest()


def order(version: str) -> tuple[int, ...]:
    """By which one version is later than another."""
    return tuple(int(part) for part in version.split("."))


def _named(folder: Path) -> dict[str, str] | None:
    path = folder / NAME
    if not path.exists():
        return None
    told: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return told


def _cleaned(value: Any) -> Any:
    if isinstance(value, list):
        return [_cleaned(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if value.get("Key") == "penstock:version":
        return {**value, "Value": "<version>"}
    cleaned = {key: _cleaned(inner) for key, inner in value.items()}
    if "Type" in cleaned:
        cleaned.pop("Metadata", None)
        if cleaned["Type"] == "AWS::Lambda::Function":
            cleaned["Properties"]["Code"] = "<asset>"
    return cleaned
