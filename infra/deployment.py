"""What every stack of one deployment shares: the stage, the staged packages, the version."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

from aws_cdk import Environment, RemovalPolicy

from infra.packages import Packages
from infra.stage import ROOT
from shared.core.stage import StageSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One stage, ready to be built."""

    stage: StageSpec
    packages: Packages
    version: str
    environment: Environment | None = None
    """Account and region; none: those of whoever deploys."""

    @property
    def removal_policy(self) -> RemovalPolicy:
        """What happens to anything that remembers when its stack is deleted."""
        return RemovalPolicy.RETAIN if self.stage.retain else RemovalPolicy.DESTROY


def project_version() -> str:
    """The version in pyproject.toml."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        version: str = tomllib.load(file)["project"]["version"]
    return version
