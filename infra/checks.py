"""What a synthesized stage is judged by: cdk-nag, CDK's own template validation, and the rules of this app."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from aws_cdk import App, Validations

from infra.rules.assembly import Assembly
from infra.rules.registry import check
from shared.core.stage import StageSpec

SWITCH = "CDK_VALIDATION"
"""The CDK's own variable. `false` leaves out what takes seconds (nag, template validation): the local stack sets
it, because the tests have judged the same templates. Our own rules always run."""
REPORT = "validation-report.json"
BUILT_IN = "CloudFormation Validate"


def thorough() -> bool:
    """Whether the slow checks run, too."""
    return os.environ.get(SWITCH) != "false"


def attach(app: App) -> None:
    """Let cdk-nag judge the app when it is synthesized."""
    from cdk_nag import AwsSolutionsChecks, ServerlessChecks

    Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))


def findings(stage: StageSpec, directory: Path) -> list[str]:
    """What must be mended in the templates under `directory`, one sentence each."""
    return [*(str(found) for found in check(Assembly.read(stage, directory))), *_built_in_warnings(directory)]


def _built_in_warnings(directory: Path) -> Iterator[str]:
    """The CDK reports what its validation finds as warnings and goes on; here they count."""
    report = directory / REPORT
    if not report.exists():
        return
    for plugin in json.loads(report.read_text(encoding="utf-8")).get("pluginReports", []):
        if BUILT_IN not in str(plugin.get("pluginName", plugin.get("summary", {}).get("pluginName", ""))):
            continue
        for violation in plugin.get("violations", []):
            places = ", ".join(
                str(place.get("constructPath") or place.get("resourceLogicalId") or "?")
                for place in violation.get("violatingConstructs", [])
            )
            yield f"{violation['ruleName']}: {violation['description']} ({places})"
