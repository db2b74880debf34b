"""A customer's words in every field of a row, through the change feed: in no event, no log, no answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.adapters import rows
from shared.core.job import Category, Status
from tests.builders import a_job
from tests.functions.stage import stream_record
from tests.leaks.sweep import CANARY, WORD, holds
from tests.leaks.test_canary import clean, invoke, settle_down, swept

ROW = rows.job_item(a_job(status=Status.FAILED, category=Category.AUTH, task="answer_event"))
TYPED: tuple[dict[str, Any], ...] = (
    {"S": CANARY},
    {"S": WORD},
    {"N": CANARY},
    {"L": [{"S": CANARY}]},
    {"M": {CANARY: {"S": CANARY}}},
)


@pytest.mark.req("R14", "R15")
@pytest.mark.parametrize("typed", TYPED, ids=lambda typed: next(iter(typed)))
def test_words_in_any_field_of_a_row_reach_no_subscriber(typed: dict[str, Any], tmp_path: Path) -> None:
    """New or old image, known field or a new one, read or refused. A tenant is an id that its producer chose: it goes
    on into messages and events, so a word that could be one is let pass there, and there alone."""
    with swept(tmp_path) as (sweep, stage):
        for name in [*(set(ROW) - {"pk"}), "a_new_field"]:
            strange = {**ROW, name: typed}
            for new, old in ((strange, None), (ROW, strange), (strange, {**ROW, "status": {"S": "processing"}})):
                invoke(sweep, stage, "feed", {"Records": [stream_record(new, "MODIFY" if old else "INSERT", old)]})
        told = [{key: value for key, value in detail.items() if key != "tenant"} for detail in stage.feed.details]
        assert told
        assert not holds(json.dumps(told))
        assert {detail["tenant"] for detail in stage.feed.details} <= {a_job().tenant, WORD}
        clean(sweep)


@pytest.mark.req("R14", "R15")
def test_a_payload_reaches_no_subscriber(tmp_path: Path) -> None:
    """The whole walk of jobs whose payloads, errors and answers hold the word."""
    with swept(tmp_path) as (sweep, stage):
        for key, topic in (("a", "billing"), ("b", "legal"), ("c", CANARY)):
            stage.enqueue(key, payload={"text": CANARY, "conversation_id": "c-1", "topic": topic})
        settle_down(sweep, stage)
        for one in stage.desk.jobs.stream.since(0, 10_000):
            old = one.old.item if one.old else None
            invoke(sweep, stage, "feed", {"Records": [stream_record(one.new and one.new.item, one.event_name, old)]})
        assert {detail["status"] for detail in stage.feed.details} >= {"queued", "processing", "completed"}
        assert not holds(json.dumps(stage.feed.details))
        clean(sweep)
