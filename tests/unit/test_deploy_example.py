"""The example of a deploy from a pipeline: no key that lasts, one repository, and steps that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "deploy"
WORKFLOW: dict[Any, Any] = yaml.safe_load((EXAMPLE / "workflow.yml").read_text(encoding="utf-8"))


def _statement(file: str) -> dict[str, Any]:
    (statement,) = json.loads((EXAMPLE / file).read_text(encoding="utf-8"))["Statement"]
    return dict(statement)


@pytest.mark.fault("J7")
def test_one_repository_and_environment_may_be_the_role() -> None:
    """By the token's audience and its whole subject, both compared exactly."""
    asked = _statement("trust.json")["Condition"]
    assert list(asked) == ["StringEquals"]
    issuer = "token.actions.githubusercontent.com"
    assert asked["StringEquals"] == {
        f"{issuer}:aud": "sts.amazonaws.com",
        f"{issuer}:sub": f"repo:OWNER/REPOSITORY:environment:{WORKFLOW['jobs']['deploy']['environment']}",
    }


@pytest.mark.fault("J7")
def test_the_role_may_assume_what_bootstrap_made_and_nothing_else() -> None:
    """Each by its name."""
    statement = _statement("policy.json")
    assert (statement["Action"], statement["Effect"]) == ("sts:AssumeRole", "Allow")
    assert all(re.search(r":role/cdk-hnb659fds-[a-z-]+-role-ACCOUNT-REGION$", one) for one in statement["Resource"])


def test_the_workflow_holds_no_key_and_its_steps_exist() -> None:
    """It may ask for a token and read the code; what it runs are targets of the Makefile and our commands."""
    assert WORKFLOW["permissions"] == {"id-token": "write", "contents": "read"}
    assert "secrets." not in (EXAMPLE / "workflow.yml").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    steps = [step["run"] for step in WORKFLOW["jobs"]["deploy"]["steps"] if "run" in step]
    assert {step.split()[1] for step in steps if step.startswith("make ")} <= targets
    assert steps[-1] == ".venv/bin/penstock doctor --stage prod"
