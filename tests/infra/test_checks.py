"""The judges that others wrote: cdk-nag, CDK's own validation, cfn-lint."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aws_cdk import CfnResource

from infra import checks
from infra.application import Penstock
from infra.stage import load_stage
from tests.infra.conftest import Stages, Synthesize, Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]

WRITTEN_BY_THE_CDK = {"W3005"}
"""cfn-lint: a DependsOn beside a reference that says the same; the CDK writes both for every function."""


@pytest.fixture(scope="module")
def raw(synthesize: Synthesize) -> Synthesized:
    """prod with nothing acknowledged."""
    return synthesize(load_stage("prod", for_show=True), acknowledge=False)


def test_nag_and_validation_pass(every_stage: Synthesized) -> None:
    """No stage is refused, and nothing is left in the report but the reminder that alarms reach nobody."""
    assert not every_stage.refused
    assert {one["rule"] for one in every_stage.findings()} <= {"Annotation::penstock:no-alarm-channel"}


def test_nag_looks_at_all(raw: Synthesized) -> None:
    """Without the acknowledgements both packs object: they do run."""
    assert raw.refused
    assert {"AwsSolutions", "Serverless"} <= {one["plugin"] for one in raw.findings()}


def test_no_acknowledgement_is_stale(raw: Synthesized) -> None:
    """Every accepted finding still occurs where it is accepted; one that does not is to be deleted."""
    occurs = {(one["path"], one["rule"]) for one in raw.findings()}
    stale = [
        (path, finding)
        for path, finding in raw.accepted
        if not any(where.startswith(f"{path}/") and rule == finding for where, rule in occurs)
    ]
    assert not stale


def test_a_warning_of_the_cdk_counts(synthesize: Synthesize) -> None:
    """What CDK's own validation only warns of fails synth here."""

    def plant(stacks: Penstock) -> None:
        CfnResource(
            stacks.control,
            "Planted",
            type="AWS::SQS::Queue",
            properties={"VisibilityTimeout": 99_999_999, "NoSuchProperty": True},
        )

    stage = synthesize(load_stage("dev"), also=plant)
    assert stage.refused or checks.findings(stage.spec, stage.directory)


def test_a_report_of_warnings_is_read(tmp_path: Path, prod: Synthesized) -> None:
    """A finding that the report calls a warning is a sentence with its rule and its place."""
    violation = {
        "ruleName": "W1234",
        "description": "is odd",
        "severity": "warning",
        "violatingConstructs": [{"constructPath": "State/Jobs"}],
    }
    report = {"pluginReports": [{"pluginName": checks.BUILT_IN, "violations": [violation]}]}
    (tmp_path / checks.REPORT).write_text(json.dumps(report))
    # An empty folder lacks the roles for people, too.
    found = [one for one in checks.findings(prod.spec, tmp_path) if not one.startswith("WHO: ")]
    assert found == ["W1234: is odd (State/Jobs)"]


@pytest.mark.parametrize("name", ["prod", "local"])
def test_templates_pass_cfn_lint(stages: Stages, name: str) -> None:
    """No error and no warning. prod and local are the two ends; dev and stage are prod with other numbers."""
    from cfnlint.api import lint_file

    stage = stages(name)
    found = [
        f"{path.name}: {match}"
        for path in sorted(stage.directory.glob("*.template.json"))
        for match in lint_file(path)
        if match.rule.id not in WRITTEN_BY_THE_CDK
    ]
    assert not found
