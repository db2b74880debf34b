"""The demo: a burst, a worker killed in the middle of a send, a vendor that goes bad and recovers; then a night with a
backlog, and a replay that two people agree to. Nobody is answered twice and nothing is lost. Every part is real: the
CDK app, the queues, the processes, the HTTP vendor."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rich.console import Console
from rich.live import Live
from rich.table import Table

from ops.local import night, processes, stack, state
from ops.local.judge import Closing, judge
from ops.local.sockets import talking_to
from ops.local.state import StackState
from ops.local.vendor_control import VendorControl
from shared.client import Penstock
from shared.core.effects import effect_id_of
from shared.core.errors import EnqueueConflict, UnreadableRow
from shared.core.job import Job, Status
from shared.core.ports import JobStore
from shared.usecases.enqueue import JobRef

TENANTS = (
    "acme",
    "globex",
    "initech",
    "umbrella",
    "hooli",
    "stark",
    "wayne",
    "tyrell",
    "cyberdyne",
    "wonka",
    "soylent",
    "monarch",
)
TOPICS = ("general", "billing", "shipping", "returns", "general", "billing", "legal")
JOBS_EACH = 20
PATIENCE_S = 600.0
"""Nothing here takes so long, on the slowest machine."""
KILLS = 8
"""A process that answered before it was killed did not die in its send: then the next is tried."""
LANE, TASK, VENDOR = "support", "answer_event", "helpdesk"


@dataclass(slots=True)
class Story:
    """The demo as it is being told."""

    running: StackState
    penstock: Penstock
    jobs: JobStore
    vendor: VendorControl
    say: Callable[[str], None]
    began: float = field(default_factory=time.monotonic)
    refs: dict[str, JobRef] = field(default_factory=dict)
    repeated: int = 0

    @property
    def seconds(self) -> float:
        """Since the story began."""
        return time.monotonic() - self.began

    def enqueue(self, tenant: str, key: str, topic: str = "general", *, conversation: bool = True) -> str:
        """One inbound event becomes one job."""
        payload = {"topic": topic, "text": f"Hello, this is {tenant}. Where is my order?"}
        if conversation:
            payload["conversation_id"] = f"c-{tenant}-{key}"
        ref = self.penstock.enqueue(LANE, TASK, tenant, key, payload)
        if ref.created:
            self.refs[ref.job_id] = ref
        else:
            self.repeated += 1
        return ref.job_id

    def rows(self) -> list[Job]:
        """Every job of the stage."""
        return [row for row in self.jobs.scan() if not isinstance(row, UnreadableRow)]

    def wait(self, what: str, until: Callable[[], bool], patience_s: float = PATIENCE_S) -> bool:
        """Poll with a deadline; False when it passed."""
        deadline = time.monotonic() + patience_s
        while not until():
            if time.monotonic() > deadline:
                self.say(f"gave up waiting for {what} after {patience_s:.0f} s")
                return False
            time.sleep(0.1)
        return True


def run(*, name: str = "demo", headless: bool = False, keep: bool = False, console: Console | None = None) -> Closing:
    """Bring a stack up, tell the story, print the closing table; the stack is stopped unless `keep`."""
    console = console or Console()

    def say(line: str) -> None:
        console.print(f"[dim]{datetime.now(UTC):%H:%M:%S}[/] {line}", highlight=False)

    state.folder(name)  # A name that no stack can have is refused before the story begins.
    say("setting up: the real CDK app on a local emulator")
    running = stack.up(name=name, progress=lambda line: say(f"[dim]{line}[/]"))
    try:
        with _environment(stack.environment(running)):
            story = _story(running, say)
            closing = _tell(story, console, headless)
        console.print(_closing_table(closing))
        return closing
    finally:
        if not keep:
            stack.down(name=name)


def _story(running: StackState, say: Callable[[str], None]) -> Story:
    from shared.adapters.aws.clients import client
    from shared.adapters.aws.jobs import DynamoDbJobStore
    from shared.adapters.aws.lanes import deployed_lanes
    from shared.contract import names

    lanes = deployed_lanes(running.stage)
    jobs = DynamoDbJobStore(client=client("dynamodb"), table_name=names.table(running.stage, "jobs"), lanes=lanes)
    return Story(
        running=running,
        penstock=Penstock(running.stage, lanes=lanes),
        jobs=jobs,
        vendor=VendorControl(running.vendor_url),
        say=say,
    )


def _tell(story: Story, console: Console, headless: bool) -> Closing:
    say, vendor = story.say, story.vendor
    vendor.configure(VENDOR, latency_s=0.1)
    _kill_a_worker(story)
    say(f"[bold]a burst[/]: {len(TENANTS)} tenants, {JOBS_EACH} events each, some sent twice, two malformed")
    for number in range(JOBS_EACH):
        for tenant in TENANTS:
            story.enqueue(tenant, f"evt-{number}", TOPICS[number % len(TOPICS)])
        if number == 3:
            vendor.configure(
                VENDOR, error_429_share=0.25, retry_after_s=5, error_5xx_share=0.2, drop_after_accept_share=0.15
            )
            say("[bold red]the vendor goes bad[/]: 429s, 503s, and replies accepted on a connection that then drops")
        if number % 5 == 0:
            story.enqueue(TENANTS[number % len(TENANTS)], f"evt-{number}", TOPICS[number % len(TOPICS)])
    for tenant in TENANTS[:2]:
        story.enqueue(tenant, "evt-malformed", conversation=False)
    _refuse_a_conflict(story)
    with _live(story, console, headless):
        story.wait("the first jobs to be put back", lambda: _waiting(story) is not None)
        waiting = _waiting(story)
        if waiting is not None:
            _explain(story, waiting)
        _sleep_until(story, 15)
        vendor.configure(VENDOR, error_429_share=0, error_5xx_share=0, drop_after_accept_share=0)
        say("[bold green]the vendor recovers[/]; what was put back starts again when it is due")
        story.wait("every job to end", lambda: _all_ended(story))
    night.tell(story)
    return judge(
        list(story.refs),
        story.rows(),
        vendor.accepted_keys(VENDOR),
        repeated=story.repeated,
        seconds=story.seconds,
    )


def _kill_a_worker(story: Story) -> None:
    """A real process, killed by number while its request is open at the vendor."""
    for number in range(KILLS):
        victims = _killed_at(story, f"evt-killed-{number}")
        if victims:
            pids = ", ".join(map(str, sorted(victims)))
            story.say(f"[bold red]a worker is killed[/] in the middle of a send (process {pids}); ")
            story.say("the vendor has accepted it, nobody wrote that down; its message comes back in a minute")
            return


def _killed_at(story: Story, key: str) -> set[int]:
    """The processes killed while the vendor held the reply of this event; none when it was answered before."""
    hook = effect_id_of(_job_id("acme", key), "reply")
    story.vendor.configure(VENDOR, script=[{"match": {"key": hook}, "do": "hang:2.5"}])
    job_id = story.enqueue("acme", key)
    if not story.wait("the send to reach the vendor", lambda: bool(story.vendor.requests(VENDOR, key=hook))):
        return set()
    port = int(story.running.vendor_url.rpartition(":")[2])
    family = set(processes.group(story.running.emulator_pid)) - {story.running.emulator_pid}
    victims = set(talking_to(port, family))
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    job = story.jobs.get(job_id)
    return victims if job is not None and job.status is Status.PROCESSING else set()


def _refuse_a_conflict(story: Story) -> None:
    try:
        story.penstock.enqueue(LANE, TASK, "acme", "evt-0", {"conversation_id": "c-other"})
    except EnqueueConflict:
        story.say("the same key with another payload is refused: the first job stands")


def _explain(story: Story, job: Job) -> None:
    from shared.adapters.aws.clients import client
    from shared.adapters.aws.control import DynamoDbControlStore
    from shared.adapters.aws.effects import DynamoDbEffectStore
    from shared.contract import names
    from shared.core.admission import Capacity, View
    from shared.core.message import QueueDepth
    from shared.usecases.explain import explain

    stage = story.running.stage
    fresh = story.jobs.get(job.job_id) or job
    lane = story.penstock.lanes[fresh.lane]
    switches = DynamoDbControlStore(client=client("dynamodb"), table_name=names.table(stage, "control")).switches()
    effects = DynamoDbEffectStore(client=client("dynamodb"), table_name=names.table(stage, "effects"))
    view = View(lane=lane, switches=switches, capacity=Capacity(depth=0, limit=lane.queue_limit))
    why = explain(fresh, view, effects.of_job(job.job_id), QueueDepth(visible=0, in_flight=0), datetime.now(UTC))
    story.say(f"[bold]penstock jobs why {job.job_id}[/]")
    story.say(f"  {why.sentence}")
    for gate in why.verdict.gates:
        until = f" until {gate.retry_at:%H:%M:%S}" if gate.retry_at else ""
        mark = "[green]open[/]" if gate.open else f"[yellow]closed[/] by {gate.key}{until}; {gate.unblock}"
        story.say(f"  gate {gate.gate}: {mark}")


def _waiting(story: Story) -> Job | None:
    horizon = datetime.now(UTC) + timedelta(seconds=2)
    found = [job for job in story.rows() if job.status is Status.QUEUED and job.waits and job.runnable_at > horizon]
    return min(found, key=lambda job: job.job_id, default=None)


def _all_ended(story: Story) -> bool:
    ended = {job.job_id for job in story.rows() if job.status.ended}
    return ended >= set(story.refs)


def _sleep_until(story: Story, second: float) -> None:
    story.wait(f"second {second}", lambda: story.seconds >= second, second + 1)


def _job_id(tenant: str, key: str) -> str:
    from shared.core.job import job_id_of

    return job_id_of(LANE, tenant, TASK, key)


@contextmanager
def _live(story: Story, console: Console, headless: bool) -> Iterator[None]:
    """A table that is drawn anew while the story goes on."""
    if headless:
        yield
        return
    import threading

    done = threading.Event()
    with Live(_board(story), console=console, refresh_per_second=4, transient=True) as live:

        def draw() -> None:
            while not done.wait(0.5):
                live.update(_board(story))

        painter = threading.Thread(target=draw, daemon=True)
        painter.start()
        try:
            yield
        finally:
            done.set()
            painter.join()


def _board(story: Story) -> Table:
    rows = story.rows()
    table = Table(title=f"{story.seconds:3.0f} s", title_justify="left")
    for column in ("tenant", "waiting", "processing", "completed", "failed"):
        table.add_column(column, justify="left" if column == "tenant" else "right")
    for tenant in (*TENANTS, None):
        mine = [job for job in rows if tenant in (None, job.tenant)]
        counts = [sum(job.status is status for job in mine) for status in _SHOWN]
        table.add_row(tenant or "[bold]all", *(str(count) if count else "·" for count in counts))
    summary = story.vendor.summary(VENDOR)
    table.caption = f"vendor: {summary['accepts']} accepts, {summary['duplicates']} duplicates"
    return table


_SHOWN = (Status.QUEUED, Status.PROCESSING, Status.COMPLETED, Status.FAILED)


def _closing_table(closing: Closing) -> Table:
    table = Table(title=f"after {closing.seconds:.0f} s", title_justify="left", show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for label, value in closing.rows():
        bad = label in ("duplicates", "lost")
        colour = ("green" if value == "0" else "bold red") if bad else ""
        table.add_row(label, f"[{colour}]{value}[/]" if colour else value)
    return table


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
