"""Synthesizes one stage and judges it. Needs no credentials, no Docker and no network."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from aws_cdk import App, Environment

from infra import acknowledgements, checks
from infra.application import build
from infra.deployment import Deployment, project_version
from infra.packages import BUILD_DIR_VARIABLE, MissingPackage, Packages
from infra.stage import ROOT, load_stage
from shared.core.errors import BadInput


def new_app(*, context: dict[str, Any] | None = None, outdir: str | None = None, thorough: bool = True) -> App:
    """An app with the feature flags of cdk.json, also when the CDK command line is not the one who starts it."""
    told: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    return App(
        context={**told, **(context or {})},
        outdir=outdir,
        analytics_reporting=False,
        builtin_cloud_formation_validation=thorough,
    )


def deployment_of(app: App) -> Deployment:
    """The stage that the context asks for."""
    stage = load_stage(_text(app, "stage") or "dev", vendor_url=_text(app, "vendor_url"), environ=os.environ)
    account, region = _text(app, "account"), _text(app, "region")
    return Deployment(
        stage=stage,
        packages=Packages.of_stage(stage.name, _text(app, "build_dir") or os.environ.get(BUILD_DIR_VARIABLE)),
        version=project_version(),
        environment=Environment(account=account, region=region) if account or region else None,
    )


def synthesize(app: App, deployment: Deployment, *, thorough: bool) -> Path:
    """Build the stage into `app` and write its templates; returns where they are."""
    stacks = build(app, deployment)
    if thorough:
        checks.attach(app)
        acknowledgements.apply(stacks)
    return Path(app.synth().directory)


def main() -> int:
    """0 when the stage is as it should be; else what is wrong, on the error output."""
    thorough = checks.thorough()
    try:
        app = new_app(outdir=os.environ.get("CDK_OUTDIR"), thorough=thorough)
        deployment = deployment_of(app)
        directory = synthesize(app, deployment, thorough=thorough)
    except (BadInput, MissingPackage, ValueError) as mistake:
        _say(str(mistake))
        return 1
    except RuntimeError as refused:
        # The report above says it all; the stack of the language bridge says nothing.
        if "ValidationFailed" not in str(refused):
            raise
        _say("refused by the checks above")
        return 1
    found = checks.findings(deployment.stage, directory)
    for sentence in found:
        _say(sentence)
    return 1 if found else 0


def _say(sentence: str) -> None:
    sys.stderr.write(f"synth: {sentence}\n")


def _text(app: App, key: str) -> str | None:
    value = app.node.try_get_context(key)
    return str(value) if value else None
