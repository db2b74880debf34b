"""Every page, while a row of the stage is nonsense: what can be read is shown, what cannot is told in a sentence."""

from __future__ import annotations

import contextlib
import json
import random
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from ops.cli.main import app
from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.contract import names, table
from shared.core.job import Status
from shared.core.schedule import RunRecord
from shared.core.signals import Counts, VendorCounts
from tests.builders import a_job, an_account, an_effect_row
from tests.functions.test_malformed_rows import spoiled
from tests.unit.ops.cli.run_stage import FULL, deploy_runs

SPOILT = 2
"""Of each row."""


def a_stage_at_work(deployed: Stage) -> dict[str, str]:
    """Everything that leaves a row; the names of what has one."""
    deploy_runs(deployed)
    account = {"openai": an_account(name="openai").to_mapping()}
    client("ssm").put_parameter(Name=names.accounts_parameter("dev"), Value=json.dumps(account), Type="String")
    stage = Stage(deployed.name)
    now = stage.clock.now()
    failed = a_job(status=Status.FAILED, created_at=now, updated_at=now)
    stage.jobs.put(failed)
    stage.jobs.put(replace(failed, job_id=a_job(key="other").job_id, key="other"))
    stage.effects.intend(an_effect_row(job_id=failed.job_id))
    stage.jobs.put(a_job(key="waits", created_at=now, updated_at=now, due=now, not_before_at=now, blocked_by="backoff"))
    record = RunRecord(
        schedule="rewrite_submitter", slot=f"{now:%Y-%m-%dT%H:%M}Z", run_id="1f", started_at=now, counts=FULL
    )
    stage.ledger.open_run(record)
    stage.signals.add("support", now, Counts(claims=3, oldest_age_s=40, vendors={"helpdesk": VendorCounts(calls=9)}))
    for line in (
        ("incident", "open", "support", "--why", "slow"),
        ("control", "set", "lane/support", "drain", "--why", "slow"),
        ("capacity", "pin", "support", "4", "--for", "2h", "--why", "slow"),
        ("budget", "set", "openai", "--requests-per-minute", "10", "--why", "slow"),
    ):
        assert CliRunner().invoke(app, list(line)).exit_code == 0
    cause = "token had expired; renewed, checked by hand"
    said = CliRunner().invoke(app, ["redrive", "plan", "support", "--cause", cause, "--json"]).stdout
    return {"JOB": failed.job_id, "PLAN": json.loads(said)["plan"]["plan_id"]}


OF_A_JOB = (("jobs", "show", "JOB"), ("jobs", "why", "JOB"), ("dlq", "show", "JOB"))
OF_A_LANE = (("status",), ("forecast", "support"))
PAGES = {
    "jobs": (*OF_A_JOB, *OF_A_LANE, ("jobs", "list"), ("jobs", "result", "JOB"), ("dlq", "list", "support")),
    "effects": OF_A_JOB,
    "control": (*OF_A_LANE, ("control", "show"), ("control", "check"), ("capacity", "show"), ("jobs", "why", "JOB")),
    "ledger": (
        *(*OF_A_LANE, ("budget", "show"), ("control", "check")),
        *(("redrive", "list", "support"), ("redrive", "watch", "PLAN"), ("runs", "list"), ("runs", "show", "1f")),
    ),
    "history": (
        *(("incident", "show", "support"), ("control", "show", "lane/support"), ("redrive", "list", "support")),
        *(("runs", "show", "1f"), ("jobs", "show", "JOB")),
    ),
}
"""By the table, whoever reads it."""


@pytest.mark.fault("E5")
@pytest.mark.parametrize("name", PAGES)
def test_a_row_that_is_nonsense_is_a_sentence(deployed: Stage, name: str) -> None:
    """No page ends with an unexpected error, whatever stands in one row of the table."""
    known, chance = a_stage_at_work(deployed), random.Random(7)
    dynamodb, faults, where = client("dynamodb"), [], names.table("dev", name)
    rows = dynamodb.scan(TableName=where)["Items"]
    for row in rows * SPOILT:
        with contextlib.suppress(ClientError):  # a key of another type is refused by the table itself
            dynamodb.put_item(TableName=where, Item=spoiled(row, chance))
        for page in PAGES[name]:
            answer = CliRunner().invoke(app, [known.get(word, word) for word in page] + ["--json"])
            faults += [(row[table.PK], page, fault) for fault in faults_of(answer)]
        dynamodb.put_item(TableName=where, Item=row)
    assert rows
    assert faults == []


def faults_of(answer: Any) -> list[str]:
    """What nobody should see of it."""
    if answer.exception is not None and not isinstance(answer.exception, SystemExit):
        return [repr(answer.exception)]
    problems = [json.loads(line)["error"] for line in answer.stdout.splitlines() if line.startswith('{"error":')]
    return [str(one) for one in problems if one["code"] in ("defect", "aws_error", "aws_setup", "local_stack")]
