"""A validation on the local stack: rows, logs and vendor records as they really are, then two planted violations."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from ops.cli.main import app
from shared.contract import names
from shared.core.effects import effect_id_of
from shared.core.job import Status
from shared.core.moment import iso
from shared.core.personal import MARK
from tests.e2e.paths import LANE, STAGE, VENDOR, LocalStage

GROUP = f"/aws/lambda/{names.function(STAGE, names.worker(LANE))}"


def penstock(*words: str, code: int = 0) -> Any:
    """What `penstock` answers to programs; it must end with `code`."""
    result = CliRunner().invoke(app, [*words, "--json"])
    assert result.exit_code == code, result.stdout[-4000:] + result.stderr
    return json.loads(result.stdout)


def handled(stage: LocalStage, text: str) -> str:
    """One event of any kind, with a canary in what its customer wrote."""
    key = f"evt-{uuid.uuid4().hex[:12]}"
    payload = {"conversation_id": f"c-{key}", "text": f"{text} {MARK}-{key}"}
    return stage.penstock.enqueue(LANE, "handle_event", "acme", key, payload).job_id


@pytest.mark.req("C12", "R14")
def test_a_clean_recovery_passes_and_a_planted_violation_fails(stage: LocalStage, tmp_path: Path) -> None:
    """Traffic with canaries, an incident opened and closed, a pin by hand: pass. A reply that the vendor accepts once
    more, and an address in a log: fail, each by its name, and the address is not repeated."""
    if any(one["closed_at"] is None for one in penstock("incident", "show", LANE)["incidents"]):
        penstock("incident", "close", LANE, "--cause", "left open by another test")
    since = iso(datetime.now(UTC) + timedelta(milliseconds=1))
    penstock("incident", "open", LANE, "--why", "an exercise")
    answered = [handled(stage, f"a question about billing, number {n}") for n in range(6)]
    legal = handled(stage, "my lawyer will write to you")
    jobs = stage.ended(*answered, legal)
    assert {(job.status, job.result) for job in jobs} == {
        (Status.COMPLETED, "replied"),
        (Status.COMPLETED, "routed:specialists"),
    }
    penstock("capacity", "pin", LANE, "4", "--for", "5m", "--why", "an exercise")
    penstock("capacity", "unpin", LANE, "--why", "it is over")
    penstock("incident", "close", LANE, "--cause", "there was none")

    clean = penstock("validate", LANE, "--since", since, "--to", str(tmp_path / "clean"))
    counts = {check["name"]: check["counts"] for check in clean["checks"]}
    assert (clean["verdict"], counts["tier_0"]) == ("pass", {"Tier 0 jobs": 1, "answered jobs": 6})
    assert counts["effects"]["looked up"] == 6 * 3 + 2
    assert clean["log_lines"][GROUP] > 0
    assert [change["what"].split(" ")[0] for change in clean["changes"]] == ["cap", "cap"]
    assert "<svg" in (tmp_path / "clean" / "timeline.svg").read_text()

    stage.vendor.configure(VENDOR, dedupe_by_key=False)
    try:
        httpx.post(
            f"{stage.state.vendor_url}/helpdesk/conversations/c-1/replies",
            json={"text": "once more"},
            headers={"Idempotency-Key": effect_id_of(answered[0], "reply"), "Authorization": "Bearer local-token"},
        ).raise_for_status()
    finally:
        stage.vendor.configure(VENDOR, dedupe_by_key=True)
    logs, stream = stage.clients.of("logs"), f"planted-{uuid.uuid4().hex[:8]}"
    logs.create_log_stream(logGroupName=GROUP, logStreamName=stream)
    event = {"timestamp": int(time.time() * 1000), "message": "ticket of jane.doe@example.org"}
    logs.put_log_events(logGroupName=GROUP, logStreamName=stream, logEvents=[event])

    bad = penstock("validate", LANE, "--since", since, "--to", str(tmp_path / "bad"), code=1)
    found = {one["code"]: one["where"] for check in bad["checks"] for one in check["violations"]}
    assert set(found) == {"double_effect", "personal_data"}
    assert answered[0] in found["double_effect"]
    assert stream in found["personal_data"]
    written = "".join(path.read_text() for path in (tmp_path / "bad").iterdir())
    assert "jane" not in written
    assert MARK not in written
