"""Every stage is synthesized once per session, with placeholder packages and with every check."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from infra import acknowledgements, checks
from infra.application import Penstock, build
from infra.deployment import Deployment
from infra.main import new_app
from infra.packages import Packages
from infra.rules.assembly import Assembly, Resource
from infra.stage import load_stage
from shared.contract import names, parts
from shared.core.stage import StageSpec

STAGE_NAMES = ("local", "dev", "stage", "prod")


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesized:
    """A stage with what synth made of it."""

    spec: StageSpec
    directory: Path
    assembly: Assembly
    refused: str
    """Why the CDK's own checks refused it; empty when they did not."""
    accepted: tuple[tuple[str, str], ...]
    """(construct path, finding) of every acknowledgement."""

    def the(self, resource_type: str, **properties: object) -> Resource:
        """The one resource of a type with these properties."""
        found = [
            resource
            for resource in self.assembly.resources(resource_type)
            if all(resource.properties.get(name) == value for name, value in properties.items())
        ]
        assert len(found) == 1, f"{len(found)} {resource_type} with {properties}"
        return found[0]

    def function(self, name: str) -> Resource:
        """An engine function or a worker, by the name the contract gives it."""
        return self.the("AWS::Lambda::Function", FunctionName=names.function(self.spec.name, name))

    def settings(self, name: str) -> dict[str, Any]:
        """What stands in a function's package of lanes, vendors and accounts."""
        asset = self.function(name).properties["Code"]["S3Key"]
        with zipfile.ZipFile(self.directory / f"asset.{asset}") as package:
            told: dict[str, Any] = json.loads(package.read(names.SETTINGS_FILE))
        return told

    def parameter(self, name: str) -> dict[str, Any]:
        """What stands in a parameter, its parts put together."""
        told: dict[str, Any] = json.loads(
            parts.whole(self._value(name), lambda number: self._value(names.parameter_part(name, number)))
        )
        return told

    def _value(self, parameter: str) -> str:
        return str(self.the("AWS::SSM::Parameter", Name=parameter).properties["Value"])

    def queue(self, name: str) -> Resource:
        """A queue by its physical name."""
        return self.the("AWS::SQS::Queue", QueueName=name)

    def findings(self) -> list[dict[str, Any]]:
        """Every violation in the CDK's report: plugin, rule, severity, construct path."""
        report = json.loads((self.directory / checks.REPORT).read_text(encoding="utf-8"))
        return [
            {
                "plugin": plugin["pluginName"],
                "rule": violation["ruleName"],
                "severity": violation["severity"],
                "path": place.get("constructPath", ""),
            }
            for plugin in report["pluginReports"]
            for violation in plugin["violations"]
            for place in violation["violatingConstructs"]
        ]


Synthesize = Callable[..., Synthesized]
Stages = Callable[[str], Synthesized]


@pytest.fixture(scope="session")
def synthesize(tmp_path_factory: pytest.TempPathFactory) -> Synthesize:
    """Synthesizes a stage spec; `acknowledge=False` leaves the findings of cdk-nag raw."""

    def synthesize(
        spec: StageSpec,
        *,
        acknowledge: bool = True,
        thorough: bool = True,
        also: Callable[[Penstock], None] | None = None,
    ) -> Synthesized:
        folder = tmp_path_factory.mktemp(spec.name)
        packages = Packages.placeholders(folder / "build", (*names.ENGINE_FUNCTIONS, names.INTAKE, *spec.lanes))
        app = new_app(outdir=str(folder / "out"), thorough=thorough)
        stacks = build(app, Deployment(stage=spec, packages=packages, version="9.9.9"))
        if also is not None:
            also(stacks)
        accepted = tuple((one.where.node.path, one.finding) for one in acknowledgements.accepted(stacks))
        if thorough:
            checks.attach(app)
            if acknowledge:
                acknowledgements.apply(stacks)
        refused = ""
        try:
            app.synth()
        except RuntimeError as error:
            refused = str(error)
        return Synthesized(
            spec=spec,
            directory=folder / "out",
            assembly=Assembly.read(spec, folder / "out"),
            refused=refused,
            accepted=accepted,
        )

    return synthesize


@pytest.fixture(scope="session")
def stages(synthesize: Synthesize) -> Stages:
    """A stage by its name, synthesized when it is first asked for."""

    @cache
    def stage(name: str) -> Synthesized:
        return synthesize(load_stage(name, for_show=True))

    return stage


@pytest.fixture(scope="session")
def prod(stages: Stages) -> Synthesized:
    """The stage prod."""
    return stages("prod")


@pytest.fixture(scope="session")
def local(stages: Stages) -> Synthesized:
    """The stage local."""
    return stages("local")


@pytest.fixture(params=STAGE_NAMES)
def every_stage(request: pytest.FixtureRequest, stages: Stages) -> Synthesized:
    """Each stage in turn."""
    return stages(request.param)
