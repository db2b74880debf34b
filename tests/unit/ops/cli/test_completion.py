"""Tab: the lanes, scopes, accounts and plans of the stage, and never an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from typer.testing import CliRunner

from ops.cli.main import app
from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.contract import names
from shared.core.history import HistoryEvent
from shared.usecases.plan_redrive import subject_of
from tests.builders import an_account


def offered(words: str) -> list[str]:
    """What bash is told after these words; the last one is what was begun."""
    told = {"_PENSTOCK_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = CliRunner().invoke(app, [], env=told, prog_name="penstock")
    assert result.exit_code == 0
    assert result.stderr == ""
    return result.stdout.split()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("penstock status ", ["support", "mail"]),
        ("penstock capacity pin s", ["support"]),
        ("penstock jobs list --lane ma", ["mail"]),
        ("penstock -s dev forecast m", ["mail"]),
        ("penstock dlq list --stage dev s", ["support"]),
        ("penstock control set v", ["vendor/gmail", "vendor/helpdesk"]),
        ("penstock control set task/mail/", ["task/mail/sync", "task/mail/draft", "task/mail/canary"]),
        ("penstock redrive approve plan-", ["plan-2", "plan-1"]),
        ("penstock budget set o", ["openai"]),
        ("penstock status nothing", []),
    ],
)
def test_names_of_the_stage_are_offered(deployed: Stage, words: str, told: list[str]) -> None:
    """By what the word is called, in every command and for options, too; the stage is the one that was given."""
    spec = an_account(name="openai")
    client("ssm").put_parameter(
        Name=names.accounts_parameter("dev"), Value=json.dumps({"openai": spec.to_mapping()}), Type="String"
    )
    for number in (1, 2):
        detail = {"plan": f"plan-{number}"}
        event = HistoryEvent(
            subject=subject_of("support"),
            event_id=f"e{number}",
            at=deployed.clock.now(),
            kind="plan",
            by="alice",
            detail=detail,
        )
        deployed.history.append(event)
    assert offered(words) == told


def test_without_a_stage_nothing_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor without credentials, nor for a stage that there is not: the command itself will say so."""
    assert offered("penstock status s") == []
    assert offered("penstock -s nowhere status s") == []

    def refused(*_: Any, **__: Any) -> Any:
        raise NoCredentialsError

    monkeypatch.setattr("ops.cli.stage.deployed_lanes", refused)
    assert offered("penstock -s dev status s") == []
