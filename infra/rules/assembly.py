"""The synthesized templates, in the shape the rules read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from infra.grants import INTAKE, WORKER, of_role
from shared.contract import names
from shared.core.lane import LaneSpec
from shared.core.stage import StageSpec

Template = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One resource of one stack."""

    stack: str
    id: str
    type: str
    properties: Mapping[str, Any]
    body: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.stack}/{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """What a function carries: its files, and the runtime and architecture they were put together for."""

    files: frozenset[str]
    built_for: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a function is in the tables of grants and metrics, and the lane that it is for, if it is for one."""

    kind: str
    lane: LaneSpec | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """A stage with the templates made from it: stack name → template."""

    stage: StageSpec
    templates: Mapping[str, Template]
    directory: Path
    """Where the templates are, and the packages beside them."""

    @classmethod
    def read(cls, stage: StageSpec, directory: Path) -> Assembly:
        """From a folder that synth wrote."""
        templates = {
            path.name.removesuffix(".template.json"): json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(directory.glob("*.template.json"))
        }
        return cls(stage=stage, templates=templates, directory=directory)

    def resources(self, *types: str) -> Iterator[Resource]:
        """All resources, or those of some types."""
        for stack, template in self.templates.items():
            for resource_id, body in template.get("Resources", {}).items():
                if not types or body["Type"] in types:
                    yield Resource(
                        stack=stack,
                        id=resource_id,
                        type=body["Type"],
                        properties=body.get("Properties", {}),
                        body=body,
                    )

    def referred(self, stack: str, value: object) -> Resource | None:
        """The resource of the same stack that a `Ref` or `Fn::GetAtt` means."""
        if not isinstance(value, Mapping):
            return None
        if isinstance(value.get("Ref"), str):
            resource_id = value["Ref"]
        elif isinstance(value.get("Fn::GetAtt"), list):
            resource_id = value["Fn::GetAtt"][0]
        else:
            return None
        body = self.templates[stack].get("Resources", {}).get(resource_id)
        if body is None:
            return None
        properties = body.get("Properties", {})
        return Resource(stack=stack, id=resource_id, type=body["Type"], properties=properties, body=body)

    def function_of(self, stack: str, value: object) -> Resource | None:
        """The function that a reference means, through an alias or a version if need be."""
        for reference in _references(value):
            found = self.referred(stack, reference)
            while found is not None and found.type in ("AWS::Lambda::Alias", "AWS::Lambda::Version"):
                found = self.referred(stack, found.properties.get("FunctionName"))
            if found is not None and found.type == "AWS::Lambda::Function":
                return found
        return None

    def all_referred(self, stack: str, value: object) -> list[Resource]:
        """The resources of the same stack that are meant anywhere inside a value."""
        found = (self.referred(stack, reference) for reference in _references(value))
        return [resource for resource in found if resource is not None]

    def roles(self) -> dict[str, Role]:
        """Function, by its part of its name → what it is."""
        lanes = self.stage.lanes.values()
        return {
            **{name: Role(kind=name) for name in names.ENGINE_FUNCTIONS},
            **{names.worker(lane.name): Role(kind=WORKER, lane=lane) for lane in lanes if lane.run is None},
            **{names.run(lane.name, of): Role(kind=of_role(of), lane=lane) for lane in lanes for of in lane.runs},
            **{names.intake(lane.name): Role(kind=INTAKE, lane=lane) for lane in lanes if lane.intake},
        }

    def package_of(self, function: Resource) -> Staged | None:
        """What a function's code is, if it is a package that synth has read."""
        key = function.properties.get("Code", {}).get("S3Key")
        package = self.directory / f"asset.{key}"
        return _staged(package) if isinstance(key, str) and package.is_file() else None

    def queue_of(self, stack: str, value: object) -> Resource | None:
        """The queue that a reference means."""
        found = self.referred(stack, value)
        return found if found is not None and found.type == "AWS::SQS::Queue" else None


@cache
def _staged(package: Path) -> Staged:
    with zipfile.ZipFile(package) as archive:
        files = frozenset(archive.namelist())
        told = json.loads(archive.read(names.BUILT_FOR_FILE)) if names.BUILT_FOR_FILE in files else {}
    return Staged(files=files, built_for=told)


def _references(value: object) -> Iterator[Mapping[str, Any]]:
    """Every `Ref` and `Fn::GetAtt` inside a value."""
    if isinstance(value, Mapping):
        if "Ref" in value or "Fn::GetAtt" in value:
            yield value
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def texts(value: object) -> Iterator[str]:
    """Every literal string inside a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def listed(value: object) -> list[Any]:
    """IAM writes one thing or a list of things."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
