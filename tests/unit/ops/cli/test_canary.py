"""No command but `jobs result` ever prints what a customer wrote, whether it succeeds or fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.core.job import Status, canonical_payload, payload_hash
from tests.builders import a_job, an_effect_row
from tests.unit.ops.cli.test_command import COMMANDS

CANARY = "CANARY-7f3a"
PAYLOAD = {"text": f"hello {CANARY}", CANARY: [CANARY]}

OFFLINE = {("cost",), *(words for words in COMMANDS if words[0] in ("local", "new"))}
"""Commands that read no stage."""


@pytest.fixture
def written(deployed: Stage, penstock: Any) -> str:
    """A job with a canary in its payload and in its result, and its effect; the id."""
    data = canonical_payload(PAYLOAD)
    job = a_job(
        status=Status.COMPLETED,
        payload_ref="payload/x/y",
        payload_hash=payload_hash(data),
        result_ref="result/x/answer",
    )
    deployed.content.put("payload/x/y", data)
    deployed.content.put("result/x/answer", json.dumps(PAYLOAD).encode())
    deployed.jobs.put(job)
    deployed.effects.intend(an_effect_row(job_id=job.job_id))
    return job.job_id


def asked(job_id: str, tmp_path: Path) -> dict[tuple[str, ...], list[list[str]]]:
    """Every command that reads a stage, with arguments that make it show all it has; bad payloads, too."""
    why = ["--why", "x"]
    one = ["support", "reply", "-t", "acme", "-k", "evt-9", "--payload"]
    (tmp_path / "good.jsonl").write_text(
        json.dumps({"lane": "support", "task": "reply", "tenant": "acme", "key": "k", "payload": PAYLOAD})
    )
    line = '{"lane": "support", "task": "reply", "tenant": "acme", "key": "k2", "payload": %s}'
    bad = [line % text for text in (f'{{"a": 1, "a": "{CANARY}"}}', f'"{CANARY}"', f'{{"{CANARY}": NaN}}')]
    bad += [CANARY, f'{{"{CANARY}": 1}}', line.replace('"k2"', f'"k {CANARY}"') % "{}"]
    bad += [line.replace('"key"', f'"priority": "{CANARY}", "key"') % "{}"]
    bad += [line.replace('"key"', f'"not_before": "{CANARY}", "key"') % "{}"]
    (tmp_path / "bad.jsonl").write_text("\n".join(bad))
    (tmp_path / "ids.txt").write_text(f"{job_id}\n{CANARY}\n")
    (tmp_path / "text.json").write_text(f'{{"text": "{CANARY}",')
    return {
        ("enqueue",): [
            [*one, json.dumps(PAYLOAD)],
            [*one, json.dumps({**PAYLOAD, "more": CANARY})],
            [*one, f'{{"text": "{CANARY}"'],
            [*one, f'["{CANARY}"]'],
            [*one, f'{{"a": "{CANARY}", "a": 1}}'],
            [*one, f"@{tmp_path / 'text.json'}"],
            ["--file", str(tmp_path / "good.jsonl")],
            ["--file", str(tmp_path / "bad.jsonl")],
        ],
        ("jobs", "list"): [[]],
        ("jobs", "show"): [[job_id]],
        ("jobs", "why"): [[job_id]],
        ("jobs", "cancel"): [[job_id, *why]],
        ("jobs", "schedule"): [[job_id, "--now", *why], ["--file", str(tmp_path / "ids.txt"), "--now", *why, "--yes"]],
        ("jobs", "reset"): [[job_id, *why]],
        ("jobs", "resolve"): [[job_id, "--accepted", "--evidence", "x"], [job_id, "--not-sent", "--evidence", CANARY]],
        ("dlq", "list"): [["support"], ["support", "--by-tenant"]],
        ("dlq", "show"): [[job_id]],
        ("dlq", "export"): [["support", "--to", str(tmp_path / f"dead-{len(list(tmp_path.iterdir()))}.jsonl")]],
        ("dlq", "dismiss"): [[job_id, *why]],
        ("redrive", "plan"): [
            ["support", "--cause", "it was put right"],
            ["support", "--job", job_id, "--cause", "x"],
            ["support", "--native", "--cause", "it was put right"],
        ],
        ("redrive", "approve"): [["nobody"]],
        ("redrive", "start"): [["nobody"]],
        ("redrive", "watch"): [["nobody"]],
        ("redrive", "abort"): [["nobody", *why]],
        ("redrive", "list"): [["support"]],
        ("budget", "show"): [[], ["helpdesk"], [CANARY.lower()]],
        ("budget", "set"): [["helpdesk", "--requests-per-minute", "30", *why], ["helpdesk", "--open", *why]],
        ("capacity", "show"): [[], ["support"], [CANARY.lower()]],
        ("capacity", "pin"): [["support", "4", "--for", "2h", *why], ["support", "99", "--for", "2h", *why]],
        ("capacity", "unpin"): [["support", *why]],
        ("status",): [["--count"]],
        ("runs", "list"): [[], ["support"]],
        ("runs", "show"): [["nobody"], [CANARY]],
        ("runs", "start"): [["support", "worker", *why], [CANARY.lower(), "worker", *why]],
        ("forecast",): [["support"], ["support", "--what-if", "cap=3"]],
        ("incident", "open"): [["support", *why]],
        ("incident", "note"): [["support", "x"]],
        ("incident", "close"): [["support", "--cause", "x"]],
        ("incident", "show"): [["support"]],
        ("control", "show"): [[]],
        ("control", "check"): [[], ["lane/support"], [CANARY.lower()]],
        ("control", "set"): [["all", "halt", *why]],
        ("control", "safe-mode"): [["on", *why]],
        ("control", "automation"): [["off", *why]],
        ("validate",): [["support", "--since", "1h", "--to", str(tmp_path / f"v-{len(list(tmp_path.iterdir()))}")]],
        ("audit",): [["--repair"]],
        ("doctor",): [[]],
        ("jobs", "erase"): [[job_id, *why], [CANARY, *why]],
    }


@pytest.mark.fault("I5")
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["people", "programs"])
def test_no_command_prints_customer_text(
    penstock: Any, deployed: Stage, written: str, tmp_path: Path, form: list[str]
) -> None:
    """Every command there is, in both forms, with good and bad input: no canary on either stream."""
    from typer.testing import CliRunner

    from ops.cli.main import app

    # The sweep can see: the one command that may show it does.
    assert CANARY in penstock("jobs", "result", written, *form).out
    tried = asked(written, tmp_path)
    assert set(tried) == set(COMMANDS) - OFFLINE - {("jobs", "result")}, "a new command must be tried here"
    for words, many in tried.items():
        for arguments in many:
            result = CliRunner().invoke(app, [*words, *arguments, *form])
            assert CANARY not in result.stdout + result.stderr, (words, arguments)
            assert "Traceback" not in result.stderr
