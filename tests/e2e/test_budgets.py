"""Vendor budgets on the local stack: real workers, one shared account, a vendor that counts what it refuses."""

from __future__ import annotations

import json
import time
import uuid

import pytest

from ops.local import stack
from ops.local.state import ROOT
from ops.vendors.record import VerdictKind
from shared.contract import names
from shared.core.job import Status
from tests.e2e.paths import STAGE, LocalStage

REPORT = ROOT / "build" / "reports" / "documents.json"
LANE, TASK, VENDOR = "extraction", "extract_document", "openai"
DOCUMENTS = 20
MINUTE_S, TOKENS, REQUESTS = 1.0, 4_000, 100
"""As the local stage's account says (`config/local.yaml`)."""
PARAGRAPH = "Penstock holds back what a Vendor cannot bear, and Acme of Berlin pays for what it lets through. "


def a_document(number: int) -> str:
    """More than the whole limit of the account: three chunks of about two thousand tokens."""
    return f"Document {number}. " + PARAGRAPH * 200


@pytest.mark.req("X7")
@pytest.mark.req("X4")
@pytest.mark.req("X6")
def test_twenty_large_documents_complete_and_none_fails(stage: LocalStage) -> None:
    """Each is more than the whole limit; over many refill periods all complete, and no attempt is used for waiting. How
    seldom the vendor has to refuse is judged over more calls (tests/simulation)."""
    stage.vendor.configure(
        VENDOR,
        minute_s=MINUTE_S,
        tokens_per_minute=TOKENS,
        requests_per_minute=REQUESTS,
        rejected_calls_count=True,
        entities_from_text=True,
    )
    before = max((entry["seq"] for entry in stage.vendor.requests(VENDOR)), default=0)
    run, began = uuid.uuid4().hex[:8], time.monotonic()
    job_ids = []
    for number in range(DOCUMENTS):
        ref = stage.penstock.put_document("acme", f"{run}-{number}", a_document(number))
        job_ids.append(stage.penstock.enqueue(LANE, TASK, "acme", f"{run}-{number}", {"document": ref}).job_id)

    jobs = stage.ended_in_turn(*job_ids)
    seconds = time.monotonic() - began
    # Nobody else asks the model meanwhile: these tests run one after the other, and each waits for its jobs.
    asked = [entry for entry in stage.vendor.requests(VENDOR) if entry["seq"] > before]
    served = [entry for entry in asked if entry["verdict"] == VerdictKind.COMPUTED]
    refused = [entry for entry in asked if entry["verdict"] == VerdictKind.REFUSED_429]
    tokens = sum(entry["tokens"] for entry in served)
    lines = [line.text for line in stack.logs(stage.state.name, names.function(STAGE, names.worker(LANE)))]
    told = [json.loads(line) for line in lines if '"rate_limit_schedule"' in line]
    deferrals = [line for line in told if line["job_id"] in job_ids]
    report = {
        "documents": DOCUMENTS,
        "completed": sum(job.status is Status.COMPLETED for job in jobs),
        "failed": sum(job.status is Status.FAILED for job in jobs),
        "attempts_used": sum(job.attempt_count for job in jobs),
        "seconds": round(seconds, 1),
        "tokens": tokens,
        "refill_periods": round(tokens / TOKENS, 1),
        "rate_limit_schedule_events": len(deferrals),
        "vendor_calls": len(asked),
        "vendor_429": len(refused),
    }
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_text(json.dumps(report))
    print(report)
    assert (report["completed"], report["failed"], report["attempts_used"]) == (DOCUMENTS, 0, 0)
    assert tokens >= 5 * TOKENS, "five periods have to fill the account again before so many tokens are served"
    # How many depends on how fast the machine works; that the limit is kept by waiting does not.
    assert deferrals
    assert {"estimated_tokens", "available_tokens", "available_requests"} <= deferrals[0]["input_data"].keys()
    assert {"delay_seconds", "scheduled_at"} == deferrals[0]["output_data"].keys()
    assert "Acme of Berlin" not in "".join(lines)
