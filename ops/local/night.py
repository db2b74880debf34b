"""The demo's second half: a backlog at night, jobs that fail, caps that follow, and a replay that two people agree to.

Whatever an operator does is typed: the same commands, by two people, on the same stage.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from threading import Event, Thread
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError
from rich.markup import escape

from ops.local import stack, state, ticks
from ops.local.arrivals import arriving
from ops.local.clients import Clients
from ops.local.errors import LocalStackError
from ops.local.state import ROOT
from shared.contract import names

if TYPE_CHECKING:
    from ops.local.demo import Story
    from shared.core.history import HistoryEvent

LANE, VENDOR = "support", "helpdesk"
BACKLOG, LOCKED = 330, 30
"""Events that wait at once, and those whose workspace is locked: more than one person may replay alone."""
LATENCY_S = 1.5
PATIENCE_S = 600.0
"""Nothing here takes so long, on the slowest machine."""
FIRST, SECOND = "ada", "bob"


@dataclass
class Night:
    """The night as it is being told."""

    story: Story
    told: int = 0
    """Decisions that were shown."""

    @cached_property
    def clients(self) -> Clients:
        running = self.story.running
        return Clients(
            endpoint=running.endpoint, access_key=running.access_key, region=running.region, account=running.account
        )

    def typed(self, command: str, *, by: str = FIRST, lines: int = 1) -> str:
        """An operator's command, told with the end of its answer."""
        self.story.say(f"[bold]{by}$ {escape(command)}[/]")
        done = subprocess.run(
            [sys.executable, "-m", "ops.cli", *shlex.split(command)[1:]],
            env={**os.environ, **stack.environment(self.story.running, by), "COLUMNS": "110", "NO_COLOR": "1"},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        answer = (done.stdout if done.returncode == 0 else done.stdout + done.stderr).rstrip().splitlines()
        for line in answer[-lines:]:
            self.story.say(f"  {escape(line)}")
        return "\n".join(answer)

    def decisions(self) -> list[HistoryEvent]:
        """Every decision on the lane's cap, oldest first."""
        from shared.adapters.aws.history import DynamoDbHistory

        store = DynamoDbHistory(
            client=self.clients.of("dynamodb"), table_name=names.table(self.story.running.stage, "history")
        )
        return [one for one in store.of(f"capacity/{LANE}", limit=200) if one.kind == "decision"][::-1]

    def tick(self) -> int:
        """One look of the governor, said when it changes something; the cap."""
        with suppress(LocalStackError):
            ticks.run_now(self.clients, self.story.running.stage, "governor")
        known = self.decisions()
        for one in known[self.told :]:
            of, to = one.detail["fromCapacity"], one.detail["toCapacity"]
            if of != to:
                why = str(one.detail["reasonCode"]).replace("_", " ")
                wait = one.detail.get("queueAgeSeconds", 0)
                self.story.say(f"  governor: cap {of} → [bold]{to}[/], {why}; the oldest job waits for {wait} s")
        self.told = len(known)
        return int(str(known[-1].detail["toCapacity"])) if known else 0


def tell(story: Story) -> None:
    """Tell it. What it left behind is judged with the rest."""
    night, say = Night(story), story.say
    night.told = len(night.decisions())
    baseline = story.penstock.lanes[LANE].baseline
    say(f"[bold red]a night[/]: the vendor is slow, {BACKLOG} events come at once, one customer's workspace is locked")
    locked = {"match": {"method": "POST", "path_contains": "c-umbrella-locked"}, "do": "status:422", "times": LOCKED}
    story.vendor.configure(VENDOR, latency_s=LATENCY_S, script=[locked])
    refused: list[str] = []

    def event(number: int) -> None:
        if (of_the_locked := number - BACKLOG // 3) in range(LOCKED):
            refused.append(story.enqueue("umbrella", f"locked-{of_the_locked}"))
        else:
            story.enqueue("acme", f"night-{number}")

    def standing() -> int:
        return sum(not job.status.ended for job in story.rows())

    with _turns(night, "dispatcher"):
        with arriving(standing=standing, level=BACKLOG, enqueue=event):
            night.typed(f'penstock incident open {LANE} --why "the help desk is slow, jobs wait"')
            _until(night, lambda: night.tick() > baseline)
            night.typed(f"penstock forecast {LANE}", lines=7)
            _until(night, lambda: night.tick() > baseline + 2 and _ended(story, refused))
        story.vendor.configure(VENDOR, latency_s=0, script=[])
        say("[bold green]the vendor is well again[/], and the workspace unlocked; the cap goes back when all is calm")
        _until(night, lambda: night.tick() == baseline and _ended(story, story.refs))
    _replay(night)


def _replay(night: Night) -> None:
    night.story.say("[bold]what failed waits for two people[/]")
    night.typed(f"penstock dlq list {LANE}", lines=5)
    planned = night.typed(
        f'penstock redrive plan {LANE} --category vendor_permanent --cause "the workspace was locked; unlocked now"'
    )
    plan = planned.rpartition(" ")[2]
    night.typed(f"penstock redrive approve {plan}")
    night.typed(f"penstock redrive approve {plan}", by=SECOND)
    night.typed(f"penstock redrive start {plan}")
    with _turns(night, "redriver", "dispatcher"):
        night.typed(f"penstock redrive watch {plan} --follow", lines=4)
    night.typed(f'penstock incident close {LANE} --cause "a slow help desk, and a locked workspace"')
    report = state.folder(night.story.running.name) / f"report-{datetime.now(UTC):%H%M%S}"
    night.typed(f"penstock validate {LANE} --since 15m --to {os.path.relpath(report, ROOT)}", lines=9)


def _ended(story: Story, job_ids: Iterable[str]) -> bool:
    return {job.job_id for job in story.rows() if job.status.ended} >= set(job_ids)


def _until(night: Night, true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.8)
    night.story.say(f"gave up after {PATIENCE_S:.0f} s")
    return False


@contextmanager
def _turns(night: Night, *schedules: str) -> Iterator[None]:
    """Scheduled functions that follow one another, each on its own."""
    over = Event()

    def turn(schedule: str) -> None:
        while not over.wait(0.3):
            with suppress(LocalStackError, ClientError, BotoCoreError):  # its schedule was there first
                ticks.run_now(night.clients, night.story.running.stage, schedule)

    for schedule in schedules:
        Thread(target=turn, args=(schedule,), daemon=True).start()
    try:
        yield
    finally:
        over.set()
