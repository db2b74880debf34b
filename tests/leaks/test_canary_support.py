"""What a customer wrote in an event, through the model, the help desk and back: found in the content store alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.core.job import Status
from shared.core.switches import Level
from tests.functions.stage import Stage
from tests.leaks.sweep import CANARY, holds
from tests.leaks.test_canary import clean, look, settle_down, swept
from tests.model import SimulatedModel

ANSWERS = {
    "an intent": None,
    "the words": CANARY,
    "the words as an intent": json.dumps({"intent": CANARY, "sure": True}),
    "the words beside it": json.dumps({"intent": "billing", "sure": True, CANARY: CANARY}),
    "the words as certainty": json.dumps({"intent": "billing", "sure": CANARY}),
}


def enqueue(stage: Stage, key: str, payload: Any) -> None:
    stage.desk.enqueue("handle_event", key=key, payload=payload)


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I6", "I8")
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_event_stays_in_the_content_store(tmp_path: Path, answer: str | None) -> None:
    """Answered, not understood, Tier 0, malformed, refused for the limit or withheld: no row, message, log or metric
    holds a word of it, whatever the model makes of it."""
    limits: dict[str, Any] = {"requests_per_minute": 4}
    if answer is not None:
        limits["canned_answers"] = [{"contains": "", "content": answer}]
    with swept(tmp_path, model=lambda clock: SimulatedModel(clock, **limits)) as (sweep, stage):
        enqueue(stage, "a", {"conversation_id": "c-a", "subject": CANARY, "text": f"billing {CANARY}"})
        enqueue(stage, "b", {"conversation_id": "c-b", "text": f"My lawyer says {CANARY}", "topic": CANARY})
        enqueue(stage, "c", {"conversation_id": CANARY, "text": CANARY})
        enqueue(stage, "d", {"conversation_id": "c-d", "text": [CANARY]})
        enqueue(stage, "e", {"conversation_id": "c-e", "text": CANARY * 400, CANARY: CANARY})
        settle_down(sweep, stage, rounds=12)
        stage.desk.close("all", Level.ROUTE_ONLY, automation_enabled=False)
        enqueue(stage, "f", {"conversation_id": "c-f", "text": CANARY})
        settle_down(sweep, stage, rounds=12)
        look(sweep, stage)
        clean(sweep)
        assert not any(holds(ref) for ref in stage.desk.content.refs())
        assert {job.status for job in stage.jobs()} <= {Status.COMPLETED, Status.FAILED}
        rooms = {ref.split("/")[0] for ref in stage.desk.content.refs() if _held(stage, ref)}
        assert rooms == {"payload", "text"}


def _held(stage: Stage, ref: str) -> bool:
    return holds((stage.desk.content.get(ref) or b"").decode().replace("\\n", "\n"))
