"""A customer's words in every part of an event that can hold them: they are in the content store and nowhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.core.errors import Unavailable
from tests.functions.senders import KEY, OTHER, Door, a_door, body_of, request, with_headers
from tests.leaks.sweep import CANARY, Sweep, holds, sweeping
from tests.leaks.test_canary import clean, look

TEXT: dict[str, Any] = {"text": CANARY, CANARY: [CANARY, {"deep": CANARY}]}
EVENTS: dict[str, dict[str, Any]] = {
    "taken": request(body_of(**TEXT)),
    "taken again": request(body_of(**TEXT)),
    "another payload": request(body_of(**TEXT, more=CANARY)),
    "forged": request(body_of(**TEXT), key=OTHER),
    "as the tenant": request(body_of(**TEXT), tenant=CANARY),
    "as the id": request(body_of(CANARY, **TEXT)),
    "as a field": request(json.dumps({"id": "a", "data": {}, CANARY: CANARY}).encode()),
    "as the event": request(json.dumps(CANARY).encode()),
    "not JSON": request(CANARY.encode()),
    "twice": request(f'{{"{CANARY.split()[1]}": 1, "{CANARY.split()[1]}": 2}}'.encode()),
    "no text": request(json.dumps({"id": "b", "data": {"x": f"{CANARY}\ud800"}}).encode()),
    "as the time": with_headers(request(body_of(**TEXT)), penstock_timestamp=CANARY),
    "as the signature": with_headers(request(body_of(**TEXT)), penstock_signature=CANARY),
    "too large": request(CANARY.encode() * 10_000),
    "not base64": request(body_of(**TEXT)) | {"body": CANARY, "isBase64Encoded": True},
    "elsewhere": request(body_of("c"), rawPath=CANARY, rawQueryString=CANARY, cookies=[CANARY]),
}


def send(sweep: Sweep, door: Door, name: str, event: dict[str, Any]) -> int:
    """One request; its answer goes to somebody else's log, so it is swept, too."""
    answer = door.stage.invoke("intake", event)
    sweep.export(f"{name}.json", json.dumps(answer))
    return int(answer["statusCode"])


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I6", "I7")
def test_an_event_cannot_leak_by_coming_in(tmp_path: Path) -> None:
    """Taken, refused or malformed: logs, metrics, rows and answers hold ids and sentences of ours."""
    with sweeping(tmp_path) as sweep, a_door() as door:
        answers = {}
        for name, event in EVENTS.items():
            answers[name] = send(sweep, door, name, event)
            door.stage.desk.clock.advance(1)
        look(sweep, door.stage)
        clean(sweep)
        assert (answers["taken"], answers["taken again"], answers["another payload"]) == (202, 200, 409)
        assert {200, 202, 400, 401, 409, 413} == set(answers.values())
        assert any(holds((door.stage.desk.content.get(ref) or b"").decode()) for ref in door.stage.desk.content.refs())


@pytest.mark.req("R14")
@pytest.mark.fault("I1")
def test_an_outage_cannot_leak_an_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the store says as it fails."""
    with sweeping(tmp_path) as sweep, a_door() as door:

        def fails(*args: object, **more: object) -> None:
            raise Unavailable("jobs", "down") from ValueError(CANARY)

        monkeypatch.setattr(door.stage.desk.jobs, "put", fails)
        assert send(sweep, door, "down", request(body_of(**TEXT), key=KEY)) == 503
        clean(sweep)
