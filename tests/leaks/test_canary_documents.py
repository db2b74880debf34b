"""A customer's words in a document, through the model and back: found in the content store alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.adapters.vendors.openai_chat import OpenAiChat
from shared.core.document import document_ref
from shared.core.errors import BadInput
from shared.core.job import Status
from shared.core.vendor import VendorSpec
from tests.functions.stage import Stage
from tests.leaks.sweep import CANARY, holds
from tests.leaks.test_canary import clean, look, settle_down, swept
from tests.model import SimulatedModel
from tests.unit.vendors import sockets
from tests.unit.vendors.sockets import RawServer

TEXT = f"{CANARY}\n\n" * 400
ENTITIES = json.dumps({"entities": [{"type": "other", "value": " ".join(CANARY.split())[:200]}]})


def enqueue(stage: Stage, key: str, payload: Any) -> None:
    stage.desk.enqueue("extract_document", key=key, payload=payload)


def where_it_is(stage: Stage) -> set[str]:
    """The rooms of the content store that hold the words."""
    refs = stage.desk.content.refs()
    return {
        ref.partition("/")[0]
        for ref in refs
        if holds((stage.desk.content.get(ref) or b"").decode().replace("\\n", "\n"))
    }


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I6", "I8")
@pytest.mark.parametrize(
    "answer", [None, ENTITIES, CANARY, json.dumps({"entities": [CANARY]}), json.dumps({CANARY: []})]
)
def test_a_document_stays_in_the_content_store(tmp_path: Path, answer: str | None) -> None:
    """Answered well, answered with anything else, refused for the limit: no row, message, log or metric holds a word,
    and no name of an object does."""
    limits: dict[str, Any] = {"tokens_per_minute": 9_000}
    if answer is not None:
        limits["canned_answers"] = [{"contains": "", "content": answer}]
    with swept(tmp_path, lane="extraction", vendor=lambda clock: SimulatedModel(clock, **limits)) as (sweep, stage):
        stage.desk.content.put(document_ref("tenant-1", "d-1"), TEXT.encode())
        enqueue(stage, "a", {"document": document_ref("tenant-1", "d-1")})
        enqueue(stage, "b", {"text": TEXT[:5000], CANARY: CANARY})
        enqueue(stage, "c", {"document": CANARY})
        enqueue(stage, "d", {"document": f"document/tenant-1/{CANARY}"})
        enqueue(stage, "e", {"text": [CANARY]})
        settle_down(sweep, stage, rounds=12)
        look(sweep, stage)
        clean(sweep)
        assert not any(holds(ref) for ref in stage.desk.content.refs())
        assert {job.status for job in stage.jobs()} <= {Status.COMPLETED, Status.FAILED}
        assert where_it_is(stage) >= {"document", "payload"}


REPLIES = {
    "accepted": sockets.reply("200 OK", json.dumps({"choices": [{"message": {"content": CANARY}}]}).encode()),
    "not json": sockets.reply("200 OK", CANARY.encode()),
    "permanent": sockets.reply("422 No", CANARY.encode()),
    "rate limit": sockets.reply("429 Wait", CANARY.encode(), f"Retry-After: {CANARY.splitlines()[0]}"),
    "server error": sockets.reply("500 Oops", CANARY.encode()),
}


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I3")
@pytest.mark.parametrize("answer", REPLIES.values(), ids=REPLIES)
def test_a_model_cannot_leak_by_answering(tmp_path: Path, answer: bytes) -> None:
    """Over real sockets, at DEBUG."""
    with RawServer(lambda request: [answer]) as server, swept(tmp_path, lane="extraction") as (sweep, stage):
        spec = VendorSpec(name="openai", kind="openai", base_url=server.url, read_timeout_s=60)
        stage.desk.vendor = OpenAiChat(spec, token=lambda fresh: "token")  # type: ignore[assignment]
        enqueue(stage, "a", {"text": CANARY})
        settle_down(sweep, stage)
        look(sweep, stage)
        clean(sweep)


@pytest.mark.req("R14")
@pytest.mark.parametrize(
    ("tenant", "document_id", "data"), [(CANARY, "d", "x"), ("t", CANARY, "x"), ("t", "d", [CANARY])]
)
def test_a_producers_mistake_does_not_repeat_their_document(tenant: str, document_id: str, data: Any) -> None:
    """Errors name fields."""
    from shared.adapters.memory.stores import MemoryContentStore
    from shared.client import Penstock

    content = MemoryContentStore()
    with pytest.raises(BadInput) as refused:
        Penstock("prod", lanes={}, jobs=object(), content=content).put_document(tenant, document_id, data)  # type: ignore[arg-type]
    assert not holds(f"{refused.value!r} {refused.value}")
    assert not content.refs()
