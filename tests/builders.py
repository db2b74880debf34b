"""Values for tests: complete by default, each part overridable."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.contract import envelope
from shared.core.account import AccountSpec
from shared.core.effects import EffectRow, EffectState, effect_id_of
from shared.core.job import Category, Job, Move, Status, canonical_payload, job_id_of, payload_hash
from shared.core.lane import LaneSpec
from shared.core.people import People
from shared.core.ports import Delivery
from shared.core.run import RunConfig
from shared.core.switches import Level, Switch

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROUTING: dict[str, Any] = {
    "default_team": "front_desk",
    "tier_0": ["legal", "safety", "payment_dispute", "account_security"],
    "intents": {
        "legal": {"team": "specialists", "words": ["lawyer*", "legal action"]},
        "safety": {"team": "specialists", "words": ["injur*"]},
        "payment_dispute": {"team": "specialists", "words": ["chargeback*"]},
        "account_security": {"team": "specialists", "words": ["hack*"]},
        "billing": {"team": "billing", "words": ["invoice*"]},
        "shipping": {"team": "logistics", "words": ["parcel*"]},
        "general": {"team": "front_desk"},
    },
}
"""A lane's routing, as configuration says it."""

FREELY_NAMED = People(free_session_names=True)
"""Whoever says it is somebody else is somebody else: for what is not about people."""


def a_lane(**overrides: Any) -> LaneSpec:
    """A lane called `support` with one task, short times and one vendor."""
    values: dict[str, Any] = {
        "name": "support",
        "tasks": ("reply",),
        "vendors": ("helpdesk",),
        "max_attempts": 5,
        "retry_backoff_s": (5, 10, 20, 40),
        "function_timeout_s": 20,
        "visibility_s": 120,
        "job_timeout_s": 10,
        "send_budget_s": 4.0,
        "lookup_grace_s": 240,
        "batch_size": 1,
        "parallel": 1,
    }
    return LaneSpec(**{**values, **overrides})


def a_run_lane(**overrides: Any) -> LaneSpec:
    """A lane called `rewrite` whose jobs are taken by scheduled runs."""
    values = {
        "name": "rewrite",
        "tasks": ("complaint_rewrite",),
        "vendors": ("openai",),
        "admission": "scheduled",
        "max_attempts": 2,
        "run": RunConfig(),
        "runs": {"batch_submitter": 900, "batch_collector": 1800, "worker": 3600},
    }
    lane = a_lane(**{**values, "retry_backoff_s": (30, 300), **overrides})
    assert lane.run is not None
    return lane


def an_account(**overrides: Any) -> AccountSpec:
    """An account with the vendor of `a_lane()`: 60 requests and 30,000 tokens a minute, two seconds of them ahead."""
    values: dict[str, Any] = {
        "name": "desk_account",
        "vendor": "helpdesk",
        "requests_per_minute": 60,
        "tokens_per_minute": 30_000,
        "burst_s": 2.0,
    }
    return AccountSpec(**{**values, **overrides})


def a_job(**overrides: Any) -> Job:
    """A queued job of `a_lane()`; `status` and what belongs to it can be given together."""
    lane = overrides.get("lane", "support")
    tenant, task = overrides.get("tenant", "tenant-1"), overrides.get("task", "reply")
    key = overrides.get("key", "event-1")
    values: dict[str, Any] = {
        "job_id": job_id_of(lane, tenant, task, key),
        "lane": lane,
        "tenant": tenant,
        "task": task,
        "key": key,
        "created_at": NOW,
        "updated_at": NOW,
        "payload_hash": payload_hash(canonical_payload({})),
        "moves": (Move(at=NOW, to=Status.QUEUED, reason="enqueued"),),
    }
    values.update(_standing(overrides.get("status", Status.QUEUED)))
    return Job(**{**values, **overrides})


def an_effect_row(**overrides: Any) -> EffectRow:
    """An open intent of `a_job()`, first fence."""
    job_id = overrides.get("job_id", a_job().job_id)
    name = overrides.get("name", "reply")
    values: dict[str, Any] = {
        "effect_id": effect_id_of(job_id, name),
        "job_id": job_id,
        "name": name,
        "vendor": "helpdesk",
        "state": EffectState.INTENT,
        "fence": 1,
        "first_intent_at": NOW,
        "intent_at": NOW,
    }
    return EffectRow(**{**values, **overrides})


def a_ticket(job: Job | None = None, **overrides: Any) -> Delivery:
    """A message in a worker's hands, for `job` or `a_job()`."""
    job = job or a_job()
    values: dict[str, Any] = {
        "message_id": "00000001-message",
        "job_id": job.job_id,
        "lane": job.lane,
        "receive_count": 1,
        "body": envelope.encode_ticket(job.job_id, job.lane),
    }
    return Delivery(**{**values, **overrides})


def a_switch(scope: str = "all", level: Level = Level.HALT, **overrides: Any) -> Switch:
    """A closed switch."""
    values: dict[str, Any] = {"by": "operator", "why": "test", "at": NOW}
    return Switch(scope=scope, level=level, **{**values, **overrides})


def _standing(status: Status) -> dict[str, Any]:
    match status:
        case Status.PROCESSING:
            return {"claimed_at": NOW, "claimed_by": "w1/00000001", "fence": 1}
        case Status.FAILED:
            return {
                "category": Category.RETRIES_EXHAUSTED,
                "last_error": "vendor_unavailable",
                "signature": "vendor_unavailable",
                "fence": 1,
                "expires_at": NOW + timedelta(days=30),
            }
        case Status.COMPLETED:
            return {"result": "replied", "completed_at": NOW, "expires_at": NOW + timedelta(days=7), "fence": 1}
    return {}
