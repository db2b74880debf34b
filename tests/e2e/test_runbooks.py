"""The runbooks, followed to the letter on a stack of their own: every block is typed, and says what it promises."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread

import pytest
from botocore.exceptions import BotoCoreError

from ops.local import stack, state
from ops.local.clients import Clients
from ops.local.errors import LocalStackError
from ops.local.state import StackState
from shared.contract import names
from shared.core.effects import EffectRow, EffectState, effect_id_of
from shared.core.job import Category, Job, Status
from shared.core.moment import whole_ms
from shared.core.severity import Severity
from shared.core.switches import Level
from tests.e2e.conftest import PREFIX
from tests.e2e.paths import LANE, STAGE, VENDOR, LocalStage, a_row
from tests.e2e.runbook import OTHER, Block, Reader, typed
from tests.waiting import until

FIRST, SECOND = "ada", "bob"
LATENCY_S = 2.5
BACKLOG = 1_000


@pytest.fixture(scope="module")
def night() -> Iterator[LocalStage]:
    """A stage on which nothing happened before: a report on an incident reads everything."""
    name = f"{PREFIX}{os.getpid()}-runbooks"
    try:
        running = stack.up(name=name, app_dir=state.ROOT)
        clients = Clients(
            endpoint=running.endpoint, access_key=running.access_key, region=running.region, account=running.account
        )
        yield LocalStage(state=running, clients=clients)
    finally:
        stack.down(name=name)
        shutil.rmtree(state.folder(name), ignore_errors=True)


def whose(running: StackState, person: str) -> dict[str, str]:
    """The environment of somebody with a shell: `penstock` on the path, the stage, and who they are."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PENSTOCK_"))}
    path = os.pathsep.join((str(Path(sys.executable).parent), bare.get("PATH", "")))
    return {**bare, **stack.environment(running, person), "PATH": path, "COLUMNS": "200", "NO_COLOR": "1"}


def reader(stage: LocalStage, folder: Path) -> Reader:
    return Reader(me=whose(stage.state, FIRST), other=whose(stage.state, SECOND), folder=folder)


@contextmanager
def fast_time(stage: LocalStage) -> Iterator[None]:
    """The scheduled functions follow one another: nobody waits for a whole minute where a minute has two seconds."""
    over = Event()

    def turn(*schedules: str) -> None:
        while not over.wait(0.5):
            for schedule in schedules:
                with suppress(LocalStackError, BotoCoreError):  # its own schedule was there first, or the night is over
                    stage.run(schedule)

    for schedules in (("governor", "triage"), ("dispatcher",), ("redriver",)):
        Thread(target=turn, args=schedules, daemon=True).start()
    try:
        yield
    finally:
        over.set()


@pytest.mark.req("C2", "C3", "C4", "C6", "C12")
def test_the_backlog_runbook(night: LocalStage, tmp_path: Path) -> None:
    """A vendor so slow that jobs wait: from the first look to the closed incident, each answer as it is promised."""
    desk = reader(night, tmp_path)
    night.vendor.configure(VENDOR, latency_s=LATENCY_S)
    for number in range(BACKLOG):
        night.enqueue(f"night-{number}", tenant=f"t-{number % 12}")

    def severe() -> bool:
        night.run("governor")
        seen = night.control.capacity(LANE)
        return seen is not None and seen.severity is Severity.SEVERE

    time.sleep(night_s(night))
    until(severe, "the lane to be in trouble")
    with fast_time(night):
        for block in typed("backlog"):
            desk.follow(block)
            if "control safe-mode on" in block.commands:
                night.vendor.configure(VENDOR, latency_s=0)
    rows = [job for job in night.rows() if job.key.startswith("night-")]
    assert {job.status for job in rows} == {Status.COMPLETED}
    assert {job.result for job in rows} == {"replied", "withheld"}
    assert (tmp_path / "validation" / "report.md").exists()


def night_s(stage: LocalStage) -> float:
    """So long a job must wait before the lane is in trouble: what is waited for is its age."""
    told = json.loads(_governing(stage))["severity"]
    return float(told["severe_age_s"]) - 6


def _governing(stage: LocalStage) -> str:
    return str(stage.clients.of("ssm").get_parameter(Name=names.rules_parameter(STAGE))["Parameter"]["Value"])


@pytest.mark.req("C8", "C9", "C10")
def test_the_redrive_runbook(night: LocalStage, tmp_path: Path) -> None:
    """More jobs failed than one person may replay: looked at, planned, agreed to by somebody else, replayed."""
    failed = [_refused(night) for _ in range(night.lanes[LANE].one_person_redrive + 1)]
    night.ended(*failed)
    night.ended(night.enqueue(payload={"topic": "general"}))
    unknown = _outcome_unknown(night)
    night.vendor.configure(VENDOR, script=[])
    desk = reader(night, tmp_path)
    with fast_time(night):
        for block in typed("redrive"):
            if OTHER in block.how and "approve" in block.commands:
                _refused_to_whoever_asked(desk, block)
            desk.follow(block)
    assert {(job.status, job.replay_count) for job in map(night.job, failed)} == {(Status.COMPLETED, 1)}
    assert night.job(unknown.job_id).status is Status.COMPLETED
    assert "c-locked" not in (tmp_path / "failed.jsonl").read_text()


def _refused_to_whoever_asked(desk: Reader, block: Block) -> None:
    """The same block, typed by the author of the plan: refused, with a sentence that says what to do."""
    with pytest.raises(AssertionError) as told:
        Reader(me=desk.me, other=desk.me, folder=desk.folder, known=dict(desk.known)).follow(block)
    assert "ended with 1" in str(told.value)
    assert "somebody else must approve it" in str(told.value), told.value


@pytest.mark.req("C2")
def test_the_alarms_runbook(night: LocalStage, tmp_path: Path) -> None:
    """To look and to stop: one person, at any time."""
    try:
        for block in typed("alarms"):
            reader(night, tmp_path).follow(block)
        assert night.control.switches().entries[f"lane/{LANE}"].level is Level.HALT
    finally:
        night.switch(Level.NORMAL)


def _refused(stage: LocalStage) -> str:
    """A job that the vendor refuses for good, for now."""
    key = f"locked-{uuid.uuid4().hex[:8]}"
    step = {"match": {"method": "POST", "path_contains": f"c-{key}"}, "do": "status:422"}
    _scripts.append(step)
    stage.vendor.configure(VENDOR, script=_scripts)
    return stage.enqueue(key)


_scripts: list[dict[str, object]] = []


def _outcome_unknown(stage: LocalStage) -> Job:
    """A job whose send was begun an hour ago, and of which the answer was lost."""
    then = whole_ms(datetime.now(UTC) - timedelta(hours=1))
    job = a_row(
        f"lost-{uuid.uuid4().hex[:8]}",
        age=timedelta(hours=1),
        status=Status.FAILED,
        fence=1,
        category=Category.OUTCOME_UNKNOWN,
        signature="outcome_unknown:reply",
        last_error="outcome_unknown:reply",
    )
    stage.effects.intend(
        EffectRow(
            effect_id=effect_id_of(job.job_id, "reply"),
            job_id=job.job_id,
            name="reply",
            vendor=VENDOR,
            state=EffectState.INTENT,
            fence=1,
            first_intent_at=then,
            intent_at=then,
        )
    )
    return stage.plant(job)
