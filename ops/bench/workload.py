"""The jobs that are measured: events of lane `support`, as messages of both ways, with all a stub needs to answer."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ops.bench.stub_aws import StubAws
from shared.adapters import rows
from shared.contract import env, envelope, table
from shared.core.effects import EffectRow, EffectState, effect_id_of
from shared.core.job import Job, Move, Status, canonical_payload, job_id_of, payload_hash
from shared.core.lane import LaneSpec
from shared.core.moment import whole_ms

BATCH = 10
INTENTS = {"legal": {"team": "specialists", "words": ["lawyer*", "legal action"]}, "shipping": {"team": "logistics"}}
LANE = LaneSpec.from_mapping(
    "support",
    {
        "tasks": ["answer_event"],
        "vendors": ["helpdesk"],
        "batch_size": BATCH,
        "parallel": BATCH,
        "routing": {"default_team": "front_desk", "tier_0": ["legal"], "intents": INTENTS},
    },
)
TENANT = "workspace-00417"
BUCKET = "penstock-bench-content"
VENDOR_URL = "https://helpdesk.example.com"
TEXT = "My parcel has not arrived, and the tracking page has said the same for four days now. Where is it? "
ROUTED, REPLIED = "routed", "replied"
TOPICS = {ROUTED: "legal", REPLIED: "shipping"}
"""A legal matter is routed to people and nothing is sent; the other is answered: one effect."""


def settings_file(**parts: Mapping[str, Any]) -> str:
    """A file that says what a package's settings would; the same parts give the same file."""
    text = json.dumps(parts)
    path = Path(tempfile.gettempdir()) / f"penstock-bench-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


TOLD = {
    "lanes": {LANE.name: LANE.to_mapping()},
    "vendors": {"helpdesk": {"kind": "helpdesk", "base_url": VENDOR_URL, "lookup": "exact"}},
}
ENVIRON = {
    env.STAGE: "bench",
    env.LANE: LANE.name,
    env.SETTINGS: settings_file(**TOLD),
    env.JOBS_TABLE: "penstock-bench-jobs",
    env.EFFECTS_TABLE: "penstock-bench-effects",
    env.CONTROL_TABLE: "penstock-bench-control",
    env.LEDGER_TABLE: "penstock-bench-ledger",
    env.CONTENT_BUCKET: BUCKET,
    env.CONTENT_TABLE: "penstock-bench-content",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """As many jobs of each kind, their texts, and the events that bring them to a worker."""

    stub: StubAws
    jobs: dict[str, list[Job]]

    def ours(self, kind: str) -> list[dict[str, Any]]:
        """Batches of tickets."""
        return _events([envelope.encode_ticket(job.job_id, job.lane) for job in self.jobs[kind]])

    def standard(self, kind: str) -> list[dict[str, Any]]:
        """Batches of messages with an id and where the text is."""
        return _events([json.dumps({"job": job.job_id, "payload": job.payload_ref}) for job in self.jobs[kind]])


def workload(count: int) -> Workload:
    """`count` jobs of each kind, enqueued a moment ago."""
    now = whole_ms(datetime.now(UTC))
    jobs: dict[str, list[Job]] = {}
    texts: dict[str, bytes] = {}
    for kind, topic in TOPICS.items():
        jobs[kind] = []
        for number in range(count):
            data = canonical_payload({"conversation_id": f"c-{number}", "topic": topic, "text": TEXT * 4})
            job = _job(f"{kind}-{number:08d}-event", payload_hash(data), now)
            jobs[kind].append(job)
            texts[job.job_id] = data
    every = [job for of_kind in jobs.values() for job in of_kind]
    stub = StubAws(
        jobs={table.job_pk(job.job_id): rows.job_item(job) for job in every},
        effect=rows.effect_item(_effect(every[-1], now)),
        content=texts,
    )
    return Workload(stub=stub, jobs=jobs)


class Invocation:
    """A Lambda context with a minute left."""

    aws_request_id = "3f9c0f52-6f0e-4c11-9f3b-5d2f0a7c1e44"
    function_name = "penstock-bench-support-worker"
    function_version = "1"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:000000000000:function:penstock-bench-support-worker"

    def get_remaining_time_in_millis(self) -> int:
        """A minute."""
        return 60_000


def _job(key: str, digest: str, now: datetime) -> Job:
    job_id = job_id_of(LANE.name, TENANT, LANE.tasks[0], key)
    return Job(
        job_id=job_id,
        lane=LANE.name,
        tenant=TENANT,
        task=LANE.tasks[0],
        key=key,
        created_at=now,
        updated_at=now,
        payload_ref=f"payload/{job_id}/{digest}",
        payload_hash=digest,
        moves=(Move(at=now, to=Status.QUEUED, reason="enqueued"),),
    )


def _effect(job: Job, now: datetime) -> EffectRow:
    return EffectRow(
        effect_id=effect_id_of(job.job_id, "reply"),
        job_id=job.job_id,
        name="reply",
        vendor="helpdesk",
        state=EffectState.INTENT,
        fence=1,
        first_intent_at=now,
        intent_at=now,
    )


def _events(bodies: Sequence[str]) -> list[dict[str, Any]]:
    records = [_record(number, body) for number, body in enumerate(bodies)]
    return [{"Records": records[start : start + BATCH]} for start in range(0, len(records), BATCH)]


def _record(number: int, body: str) -> dict[str, Any]:
    return {
        "messageId": f"{number:08x}-9d1c-4f0e-8a52-7c1b0e3d5f68",
        "receiptHandle": "AQEB",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1767225600000"},
        "messageAttributes": {},
        "md5OfBody": "d41d8cd98f00b204e9800998ecf8427e",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:penstock-bench-support",
        "awsRegion": "eu-central-1",
    }
