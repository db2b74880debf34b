"""The doors of a lane's runs, on memory adapters: they look first, run once a slot, and take a person's request."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from shared.contract import env
from shared.core.job import Status
from shared.runtime import runs, wiring
from shared.runtime.settings import WorkerSettings
from shared.usecases.run_attempt import Worker
from tests.functions.stage import ENVIRONMENT, LambdaContext
from tests.settings import settings_file
from tests.unit.usecases.rewriting import RewriteDesk

ROLES = ("batch_submitter", "batch_collector", "worker")


class Doors:
    """The three functions, each invocation with a request id of its own."""

    def __init__(self) -> None:
        self.desk = RewriteDesk()
        self.module = importlib.reload(importlib.import_module("functions.rewrite.handler"))
        self.invocations = 0

    def invoke(self, role: str, event: Any = None, *, left_s: float = 255.0) -> dict[str, Any]:
        self.invocations += 1
        context = LambdaContext(f"00000000-0000-4000-8000-{self.invocations:012d}", left_s)
        answer: dict[str, Any] = getattr(self.module, role)({} if event is None else event, context)
        return answer

    def said(self, capsys: pytest.CaptureFixture[str]) -> list[str]:
        """The messages of the log lines so far."""
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
        return [str(line.get("message")) for line in lines]


@pytest.fixture
def doors(monkeypatch: pytest.MonkeyPatch) -> Doors:
    doors = Doors()
    desk = doors.desk

    def worker(settings: WorkerSettings, tasks: Any, telemetry: Any) -> Worker:
        return Worker(
            lane=settings.lane,
            tasks=tasks,
            jobs=desk.jobs,
            effects=desk.effects,
            content=desk.content,
            vendors=desk.vendors,
            board=desk.board,
            clock=desk.clock,
            telemetry=telemetry,
        )

    monkeypatch.setattr(wiring, "clock", lambda: desk.clock)
    monkeypatch.setattr(wiring, "ledger", lambda table: desk.ledger)
    monkeypatch.setattr(wiring, "worker", worker)
    for part in ("jobs", "board"):
        monkeypatch.setattr(wiring, part, lambda settings, connections=1, part=part: getattr(desk, part))
    for part in ("content", "content_objects"):
        monkeypatch.setattr(runs, part, lambda settings, connections=1: desk.content)
    monkeypatch.setattr(runs, "batch_store", lambda table: desk.batches)
    monkeypatch.setattr(runs, "batch_providers", lambda settings: {"openai": desk.provider})
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv(env.LANE, "rewrite")
    monkeypatch.setenv(env.SETTINGS, settings_file(lanes={"rewrite": desk.lane.to_mapping()}))
    monkeypatch.setenv(env.PERIOD_S, "900")
    return doors


@pytest.mark.req("R5")
@pytest.mark.parametrize("role", ROLES)
def test_with_nothing_to_do_a_run_is_skipped_and_says_so(
    doors: Doors, capsys: pytest.CaptureFixture[str], role: str
) -> None:
    """In the contract's words, the same each time; no error, nothing claimed and nobody asked; its record is kept."""
    said = []
    for _ in range(2):
        answer = doors.invoke(role)
        assert (answer["ran"], answer["counts"]) == (True, {"no_pending_items": 1})
        said.append([one for one in doors.said(capsys) if "skipped" in one])
        doors.desk.clock.advance(900)
    assert said == [[f"rewrite_{role} skipped: no pending items"]] * 2
    assert len(doors.desk.ledger.runs(f"rewrite_{role}", limit=5)) == 2
    assert doors.desk.provider.batches == {}


@pytest.mark.req("R5")
def test_pending_is_what_the_role_works_on(doors: Doors, capsys: pytest.CaptureFixture[str]) -> None:
    """A waiting job for the submitter and not for the worker; a batch that has not ended for the collector."""
    doors.desk.enqueue()
    assert doors.invoke("worker")["counts"] == {"no_pending_items": 1}
    assert doors.invoke("batch_collector")["counts"] == {"no_pending_items": 1}
    assert doors.invoke("batch_submitter")["counts"]["submitted"] == 1
    doors.desk.clock.advance(900)
    assert doors.invoke("batch_submitter")["counts"] == {"no_pending_items": 1}
    assert doors.invoke("batch_collector")["counts"]["succeeded"] == 1
    assert doors.desk.states() == {Status.COMPLETED: 1}
    assert not any("text" in one for one in doors.said(capsys))


@pytest.mark.req("R4", "R13")
def test_a_slot_has_one_run_and_its_record(doors: Doors) -> None:
    """Fired three times, it runs once; what it counted is kept with its id, its start and its end."""
    doors.desk.enqueue()
    answers = [doors.invoke("batch_submitter") for _ in range(3)]
    assert [answer["ran"] for answer in answers] == [True, False, False]
    (run,) = doors.desk.ledger.runs("rewrite_batch_submitter", limit=5)
    assert (run.run_id, dict(run.counts)) == (answers[0]["run_id"], answers[0]["counts"])
    assert run.finished_at is not None
    always = {"max_jobs_per_run", "claimed", "succeeded", "failed", "requeued"}
    assert always <= set(run.counts)
    assert run.counts["openai/model-a.claimed"] == 1


@pytest.mark.req("R4")
def test_a_persons_request_has_a_slot_of_its_own(doors: Doors) -> None:
    """Within a slot that has run; its record names the request, which the history tells of."""
    doors.invoke("batch_submitter")
    doors.desk.enqueue()
    doors.desk.clock.advance(60)
    assert doors.invoke("batch_submitter", {"manual": "a1b2"})["counts"]["submitted"] == 1
    newest = doors.desk.ledger.runs("rewrite_batch_submitter", limit=1)[0]
    assert newest.slot.endswith("+a1b2")


@pytest.mark.req("R4")
@pytest.mark.parametrize("asked", [7, "", "not an id", {"by": "me"}, "x" * 65])
def test_a_request_without_an_id_is_refused(doors: Doors, asked: Any) -> None:
    """Nothing runs: whoever starts a run has written down first who they are."""
    from shared.runtime.door import DoorFailed

    doors.desk.enqueue()
    with pytest.raises(DoorFailed):
        doors.invoke("batch_submitter", {"manual": asked})
    assert doors.desk.states() == {Status.QUEUED: 1}
    assert doors.desk.ledger.runs("rewrite_batch_submitter", limit=5) == []


@pytest.mark.req("R6")
def test_a_run_ends_before_its_time_does(doors: Doors) -> None:
    """`max_runtime_seconds`, or what is left of the function's own: with too little to hand over, all goes back."""
    doors.desk.enqueue()
    counts = doors.invoke("batch_submitter", left_s=12)["counts"]
    assert counts.get("submitted", 0) == 0
    assert doors.desk.states() == {Status.QUEUED: 1}
    assert doors.desk.job().attempt_count == 0
