"""Every command, given nonsense for each of its words in turn: one sentence, an exit code, and nothing written."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ops.cli.main import app
from ops.cli.stage import Stage
from ops.local import state
from ops.local.errors import StartFailed
from ops.scaffold import DEFAULTS
from shared.adapters.aws.clients import client
from shared.contract import names
from shared.core.job import Status
from tests.builders import a_job, an_account
from tests.unit.ops.cli.run_stage import deploy_runs
from tests.unit.ops.cli.test_command import every_command
from tests.unit.ops.cli.test_local import Stacks
from tests.unit.ops.cli.test_local import stacks as stacks

LONG, ESCAPES, BYTES = "x" * 5000, "a\nb\x1b[31m", "\udcff"
FAR, NEVER = "9999-12-31T23:59:59Z", "0001-01-01T00:00+14:00"

NAME = ("", " ", "nope", "-1", "../..", ESCAPES, LONG, BYTES, "lane/", "task/support/nope")
ID = ("", " ", ESCAPES, LONG, BYTES, "é")
ONE_OF = ("", "nope", "-1", BYTES)
WHOLE = ("", "many", "-1", "99999999999999999999", "1.5", "NaN", BYTES)
NUMBER = ("", "many", "-1", "nan", "inf", "1e999")
TEXT = ("", " ", LONG, BYTES)
JSON = ("", "{", "[]", "NaN", "@/", "@/nowhere/at/all", BYTES)
SINCE = ("", "nope", "3", "-3h", "0s", "9999999d", FAR, NEVER, "2026-02-30T00:00Z", "2026-01-01T00:00", BYTES)
UNTIL = tuple(one for one in SINCE if one not in ("0s", FAR))
MOMENT = ("", "nope", "3h", FAR, NEVER, "2026-02-30T00:00Z", "2026-01-01T00:00", BYTES)
SPAN = ("", "nope", "3", "-3h", "9999999d", "1e3s", BYTES)
READ = ("", "/", "/nowhere/at/all", "/dev/null/report", LONG)
WRITTEN = ("/dev/null", "/dev/null/report", f"/{LONG}")

NONSENSE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("lane", "task", "account", "scope", "plan_id", "run_id", "job_id", "job_ids", "job", "role"), NAME
    ),
    **dict.fromkeys(("which", "function", "name", "person", "incident", "resume", "by"), NAME),
    **dict.fromkeys(("tenant", "key", "signature", "evidence"), ID),
    **dict.fromkeys(("category", "state", "rung", "automation_", "enforced"), ONE_OF),
    **dict.fromkeys(("priority", "limit", "cap", "segments", "untouched_s", "wait_s", "sample", "rate"), WHOLE),
    **dict.fromkeys(("port", "vendor_port", "batch", "memory_mb", "payload_bytes"), WHOLE),
    **dict.fromkeys(("requests_per_minute", "tokens_per_minute", "requests_per_day", "tokens_per_day"), WHOLE),
    **dict.fromkeys(("concurrency", "batch_tokens"), WHOLE),
    **dict.fromkeys(("jobs", "effects", "waits", "job_s"), NUMBER),
    **dict.fromkeys(("why", "cause", "text"), TEXT),
    **dict.fromkeys(("payload", "facts"), JSON),
    **dict.fromkeys(("at", "not_before"), MOMENT),
    **dict.fromkeys(("in_", "lasting", "valid"), SPAN),
    **dict.fromkeys(("document", "file", "root"), READ),
    "since": SINCE,
    "until": UNTIL,
    "to": WRITTEN,
    "what_if": ("", "cap=", "cap=-1", "cap=many", "cap=99999", "12", BYTES),
    "blocked_by": ("", " "),
    "marker": ("", " ", "short"),
}
"""By the name of an argument or option; one that is not here gets them all."""
EVERYTHING = tuple(dict.fromkeys(one for some in NONSENSE.values() for one in some))
RIGHT = {("new", "lane", "name"): ("nope",)}
"""What is no nonsense here."""


@dataclass(frozen=True, slots=True)
class Usual:
    """What a command is given beside the nonsense, so that nothing else is wrong with it."""

    job: str
    plan: str
    folder: Path

    def of(self, words: tuple[str, ...], name: str) -> str:
        """A value that is taken."""
        return {
            "lane": "rewrite" if words == ("runs", "start") else "support",
            "task": "reply",
            "tenant": "acme",
            "key": "k-1",
            "role": "submitter",
            "scope": "lane/support",
            "rung": "halt",
            "state": "on",
            "account": "openai",
            "cap": "4",
            "lasting": "2h",
            "in_": "5m",
            "why": "because",
            "cause": "token had expired; renewed, checked by hand",
            "text": "words",
            "requests_per_minute": "10",
            "evidence": "ticket/1",
            "run_id": self.job,
            "since": "3h",
            "job_id": self.job,
            "job_ids": self.job,
            "plan_id": self.plan,
            "to": str(self.folder / "out"),
            "name": "orders",
            "root": str(self.folder / "project"),
            "not_sent": "",
        }[name]


MORE = {
    ("enqueue",): ("lane", "task", "tenant", "key"),
    ("jobs", "schedule"): ("job_id", "in_"),
    ("jobs", "resolve"): ("not_sent",),
    ("budget", "set"): ("requests_per_minute",),
    ("validate",): ("since",),
    ("new", "lane"): ("root",),
}
"""What may be left out, but not by a command that is to be right."""
INSTEAD = {
    ("jobs", "schedule", "at"): ("in_",),
    ("jobs", "schedule", "file"): ("job_id",),
    ("jobs", "schedule", "lane"): ("job_id",),
    ("enqueue", "file"): ("lane", "task", "tenant", "key"),
}
"""What is left out beside a word that takes its place."""
ALSO = {
    ("jobs", "schedule", "tenant"): ("--lane=support",),
    ("jobs", "schedule", "blocked_by"): ("--lane=support",),
    ("jobs", "schedule", "resume"): ("--at=2030-01-01T00:00Z",),
    ("redrive", "plan", "rate"): ("--native",),
}


def line_of(words: tuple[str, ...], command: Any, name: str, given: str | None, usual: Usual) -> list[str]:
    """The whole command line in which `name` is `given`."""
    options, arguments = list(ALSO.get((*words, name), ())), []
    for one in command.params:
        if one.name == name and given is not None:
            value = given
        elif one.name in INSTEAD.get((*words, name), ()):
            continue
        elif one.required or one.name in MORE.get(words, ()):
            value = usual.of(words, one.name)
        else:
            continue
        if not one.opts[0].startswith("-"):
            arguments.append(value)
        else:
            options.append(f"{one.opts[0]}={value}" if not getattr(one, "is_flag", False) else one.opts[0])
    return [*words, *options, "--", *arguments]


def asked(*line: str) -> tuple[int, str, str]:
    """How it ended and what it said, on standard output and beside it."""
    result = CliRunner().invoke(app, list(line), input="")
    assert result.exception is None or isinstance(result.exception, SystemExit), (line, result.exception)
    return result.exit_code, result.stdout, result.stderr


def stored() -> Any:
    """Every row of the stage."""
    tables = [names.table("dev", one) for one in (*names.TABLES, names.CONTENT_TABLE)]
    return {table: client("dynamodb").scan(TableName=table)["Items"] for table in tables}


@pytest.fixture
def usual(deployed: Stage, stacks: Stacks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Usual:
    """A stage with an account, a lane with runs, a failed job and a plan; a local stack that only seems to run."""
    deploy_runs(deployed)
    client("ssm").put_parameter(
        Name=names.accounts_parameter("dev"),
        Value=json.dumps({"openai": an_account(name="openai").to_mapping()}),
        Type="String",
    )
    job = a_job(status=Status.FAILED)
    deployed.jobs.put(job)
    project = tmp_path / "project"
    (project / DEFAULTS).parent.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[4] / DEFAULTS, project / DEFAULTS)
    stacks.add("default")

    def up(*, name: str, **_: Any) -> None:
        state.folder(name)
        raise StartFailed("the emulator", "is not started by a test", tmp_path / "log")

    monkeypatch.setattr("ops.local.stack.up", up)
    monkeypatch.chdir(tmp_path)
    cause = "token had expired; renewed, checked by hand"
    _, said, _ = asked("redrive", "plan", "support", "--cause", cause, "--json")
    return Usual(job.job_id, json.loads(said)["plan"]["plan_id"], tmp_path)


COMMANDS = [(words, command) for words, command in every_command() if len(command.params) > 2]


@pytest.mark.fault("E5")
@pytest.mark.parametrize(("words", "command"), COMMANDS, ids=[" ".join(words) for words, _ in COMMANDS])
def test_nonsense_is_a_sentence_and_changes_nothing(words: tuple[str, ...], command: Any, usual: Usual) -> None:
    """Refused with 1 or 2, in one line of a length that can be read, told as JSON where that was asked for; never by
    an unexpected error, and never after something was written."""
    before = stored()
    for one in command.params:
        if getattr(one, "is_flag", False) or one.name in ("stage", "json"):
            continue
        for nonsense in NONSENSE.get(one.name, EVERYTHING):
            if nonsense in RIGHT.get((*words, one.name), ()):
                continue
            line = line_of(words, command, one.name, nonsense, usual)
            at = line.index("--")
            code, said, beside = asked(*line[:at], "--json", *line[at:])
            told = (one.name, nonsense[:40], code, said[:300], beside[:300])
            assert code in (1, 2), told
            assert beside == "" or words == ("local", "demo"), told
            error = json.loads(said).get("error")
            assert error is not None, told
            assert error["code"] not in ("defect", "aws_error", "aws_setup"), told
            assert 3 < len(error["problem"]) < 600, told
            assert "\n" not in error["problem"], told
        if ESCAPES in NONSENSE.get(one.name, EVERYTHING):
            code, said, beside = asked(*line_of(words, command, one.name, ESCAPES, usual))
            assert (code in (1, 2), said) == (True, "")
            assert "\x1b" not in beside
            assert "Traceback" not in beside
            assert code == 2 or beside.count("\n") == 1, beside
    assert stored() == before
