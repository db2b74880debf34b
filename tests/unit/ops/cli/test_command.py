"""What every command has: --stage and --json anywhere, errors as sentences, exit codes, a quick start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, NoRegionError
from typer.main import get_command

from ops.cli.main import app
from ops.cli.stage import Stage
from shared.core.errors import BadInput, Unavailable, UnreadableRow


def every_command(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(its words, the command) of all there are."""
    group = group or get_command(app)
    for name, one in group.commands.items():
        if hasattr(one, "commands"):
            yield from every_command(one, (*path, name))
        else:
            yield (*path, name), one


COMMANDS = [words for words, _ in every_command()]


def test_all_commands_are_there() -> None:
    """The command line has every command the operator's handbook names."""
    named = {
        *(f"local {one}" for one in ("up", "down", "status", "env", "demo", "logs")),
        "enqueue",
        *(f"jobs {one}" for one in ("list", "show", "why", "cancel", "schedule", "reset", "resolve", "result")),
        *(f"dlq {one}" for one in ("list", "show", "export", "dismiss")),
        *(f"redrive {one}" for one in ("plan", "approve", "start", "watch", "abort", "list")),
        "status",
        *(f"runs {one}" for one in ("list", "show", "start")),
        *(f"control {one}" for one in ("show", "check", "set", "safe-mode", "automation")),
        "audit",
        "doctor",
        "cost",
    }
    assert named <= {" ".join(words) for words in COMMANDS}


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_help_names_stage_json_and_examples(penstock: Any, words: tuple[str, ...]) -> None:
    """Each command's help shows its options, `--stage` and `--json` among them, and an example."""
    text = penstock(*words, "--help").out
    assert "--stage" in text
    assert "--json" in text
    if words[0] != "new":
        assert f"penstock {' '.join(words)}" in text.split("Examples:")[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("--json", "--stage", "dev", "control", "show"),
        ("control", "--json", "-s", "dev", "show"),
        ("control", "show", "--json", "--stage", "dev"),
    ],
    ids=["before", "between", "after"],
)
def test_options_stand_before_or_after(
    penstock: Any, deployed: Stage, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    """`--json` and `--stage` may stand before the command, between group and command, or after it."""
    monkeypatch.delenv("PENSTOCK_STAGE")
    assert penstock(*arguments).document["switches"] == []


def test_without_a_stage_says_what_to_do(penstock: Any) -> None:
    """No stage given and no local stack running: one sentence with the three ways out, exit code 1."""
    said = penstock("status", code=1)
    assert "--stage" in said.err
    assert "penstock local up" in said.err
    assert said.out == ""


def test_unknown_stage_is_named(penstock: Any) -> None:
    """A stage that is none of the four is refused before anything is asked."""
    problem = "'prd' is not configured; did you mean prod? known stages: local, dev, stage, prod"
    assert penstock("-s", "prd", "status", "--json", code=1).document == {
        "error": {"code": "unknown_stage", "field": "stage", "problem": problem}
    }


def test_local_stage_never_reaches_a_real_account(penstock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--stage local` without a local stack and without an endpoint stops, whatever credentials there are."""
    monkeypatch.setenv("AWS_PROFILE", "production")
    assert "not running" in penstock("-s", "local", "status", code=1).err


def test_a_stage_that_is_not_deployed_is_named(penstock: Any, deployed: Stage) -> None:
    """A stage without its parameter: the sentence asks whether it is deployed."""
    assert "is it deployed in this account and region?" in penstock("-s", "prod", "status", code=1).err


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("nope",), "nope"),
        (("jobs", "shwo", "x"), "show"),
        (("jobs", "cancel"), "ID"),
        (("jobs", "list", "--limit", "many"), "--limit"),
        (("jobs", "list", "--status", "dead"), "--status"),
        (("status", "--nope"), "--nope"),
    ],
    ids=str,
)
def test_usage_errors_end_with_2(penstock: Any, arguments: tuple[str, ...], word: str) -> None:
    """A command line that cannot be read ends with 2 and names what is wrong; in JSON when that was asked for."""
    assert word in penstock(*arguments, code=2).err
    error = penstock(*arguments, "--json", code=2).document["error"]
    assert error["code"] == "usage"
    assert word in error["problem"]


def _client_error(code: str, message: str = "", status: int = 400, operation: str = "GetItem") -> ClientError:
    return ClientError(
        {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": status}},  # type: ignore[typeddict-item]
        operation,
    )


DENIED = "User: arn:aws:sts::1:assumed-role/x is not authorized to perform: dynamodb:GetItem on resource: y"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (BadInput("tenant", "is missing"), "bad_input", "tenant: is missing"),
        (Unavailable("jobs", "ThrottlingException"), "unavailable", "try again"),
        (UnreadableRow("JOB#1", "status is unknown"), "unreadable_row", "left alone"),
        (NoCredentialsError(), "no_credentials", "aws sso login"),
        (_client_error("ExpiredTokenException"), "no_credentials", "ExpiredTokenException"),
        (NoRegionError(), "no_region", "AWS_DEFAULT_REGION"),
        (EndpointConnectionError(endpoint_url="http://127.0.0.1:9/"), "not_reachable", "http://127.0.0.1:9/"),
        (_client_error("AccessDeniedException", DENIED), "access_denied", "dynamodb:GetItem"),
        (_client_error("403", status=403, operation="HeadObject"), "access_denied", "HeadObject"),
        (_client_error("ResourceNotFoundException"), "unknown_stage", "is this stage deployed"),
        (_client_error("ValidationException", "holds «secret words»"), "aws_error", "ValidationException"),
        (RuntimeError("«secret words»"), "defect", "RuntimeError"),
        (PermissionError(13, "Permission denied", "jobs.jsonl"), "file", "jobs.jsonl"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_any_error_is_one_sentence(
    penstock: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str, words: str
) -> None:
    """Whatever is raised, the command ends with 1 and one sentence; never a traceback, never an SDK's message."""

    def broken(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setenv("PENSTOCK_STAGE", "dev")
    monkeypatch.setattr("shared.adapters.aws.control.DynamoDbControlStore.switches", broken)
    said = penstock("control", "show", code=1)
    assert words in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert "secret words" not in said.err + said.out
    document = penstock("control", "show", "--json", code=1).document
    assert document["error"]["code"] == code
    assert set(document["error"]) == {"code", "field", "problem"}


def test_starting_is_cheap() -> None:
    """`penstock --help` imports neither the AWS SDK nor Rich nor the CDK: it answers at once."""
    script = (
        "import json, sys; from ops.cli.main import app;"
        "heavy = ('boto3', 'botocore', 'rich', 'aws_cdk', 'yaml', 'matplotlib', 'aws_lambda_powertools');"
        "print(json.dumps([name for name in heavy if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def test_runs_as_a_module() -> None:
    """`python -m ops.cli` is `penstock`, and calls itself so."""
    done = subprocess.run([sys.executable, "-m", "ops.cli", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: penstock ")


def test_a_group_alone_shows_its_help(penstock: Any) -> None:
    """`penstock jobs` lists what can follow; for a program, a command is missing."""
    assert "schedule" in penstock("jobs", code=2).err
    assert penstock("--json", "jobs", code=2).document["error"]["problem"] == "a command is missing"
