"""The local stack: the real CDK app on an emulator, with vendors that speak HTTP. Up, down, status.

state = up(progress=print)
boto3 with environment(state) set talks to it
down()
"""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ops.local import deploy, emulator, people, processes, state, tokens
from ops.local import logs as function_logs
from ops.local.calls import calls
from ops.local.clients import ACCOUNT, REGION, SECRET_KEY, Clients
from ops.local.compare import MOVED_WHILE_RUNNING, assert_deployed, excuse
from ops.local.errors import LocalStackError, NotAsWritten
from ops.local.fingerprint import fingerprint
from ops.local.logs import LogLine
from ops.local.processes import Process
from ops.local.repair import repair
from ops.local.state import Record, StackState
from ops.local.template import load

__all__ = ["LogLine", "StackState", "calls", "down", "environment", "logs", "status", "up"]

Progress = Callable[[str], None]


def up(
    *,
    name: str = "default",
    port: int | None = None,
    vendor_port: int | None = None,
    app_dir: Path | None = None,
    progress: Progress = lambda line: None,
) -> StackState:
    """Bring a stack up and return where it is. Running already: deployed again only if the app changed.

    Everything listens on 127.0.0.1, on free ports unless given. When any step fails, what was started is stopped
    and the error says why; logs stay in the stack's folder.
    """
    where = app_dir or (Path.cwd() if (Path.cwd() / "cdk.json").exists() else state.ROOT)
    with state.locked(name):
        record = _living(name)
        if record is not None and record.state is not None:
            _insist_on_ports(record.state, port, vendor_port)
            marks = fingerprint(where)
            if record.fingerprint == marks:
                return record.state
            progress("the app changed: deploying it again")
            return _deploy_again(name, where, record, record.state, marks, progress)
        return _start(name, port, vendor_port, where, progress)


def down(*, name: str = "default") -> bool:
    """Stop a stack and every process it started; False when there was nothing to stop. Logs stay."""
    if not state.folder(name).is_dir():
        return False
    with state.locked(name):
        return _stop(name)


def status(*, name: str = "default") -> StackState | None:
    """The running stack; None when it does not run. What a crash left behind is cleaned away."""
    if not state.folder(name).is_dir():
        return None
    record = state.read(name)
    if record is not None and _runs(record):
        return record.state
    with state.locked(name, wait=False) as free:
        if free:  # otherwise somebody is bringing it up or down right now
            _stop(name)
    return None


def environment(running: StackState, person: str | None = None) -> dict[str, str]:
    """Variables with which boto3, the AWS CLI and `penstock` find this stack, as one of its people if one is named."""
    return {
        "AWS_ENDPOINT_URL": running.endpoint,
        "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
        "AWS_ACCESS_KEY_ID": running.access_key if person is None else people.key_of(running, person),
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_SESSION_TOKEN": "",
        "AWS_REGION": running.region,
        "AWS_DEFAULT_REGION": running.region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "PENSTOCK_STAGE": running.stage,
        "PENSTOCK_VENDOR_URL": running.vendor_url,
    }


def logs(name: str, function: str, since: datetime | None = None) -> Iterator[LogLine]:
    """What a function wrote, oldest first."""
    running = status(name=name)
    if running is None:
        raise LocalStackError(f"the local stack {name!r} is not running")
    return function_logs.log_lines(running, function, since)


def _start(name: str, port: int | None, vendor_port: int | None, where: Path, progress: Progress) -> StackState:
    folder = state.folder(name)
    cdk = deploy.command_line(where)
    for leftover in ("tmp", "cdk.out", "cdk-home"):
        shutil.rmtree(folder / leftover, ignore_errors=True)
    for leftover in ("emulator.log", "vendor.log", "deploy.log", "calls.jsonl", "vendor-record.jsonl", "repairs.log"):
        (folder / leftover).unlink(missing_ok=True)
    clock = _Clock(progress)
    started: list[Process] = []

    def remember(process: Process) -> Process:
        started.append(process)
        state.write(name, Record(processes=tuple(started)))
        return process

    try:
        machine = remember(emulator.start_emulator(folder, port=port))
        vendors = remember(emulator.start_vendors(folder, port=vendor_port))
        endpoint = emulator.await_emulator(machine, folder)
        clock.tell(f"emulator on {endpoint}")
        vendor_url = emulator.await_vendors(vendors, folder)
        clock.tell(f"vendor simulator on {vendor_url}")
        running = StackState(
            name=name,
            endpoint=endpoint,
            vendor_url=vendor_url,
            emulator_pid=machine.pid,
            vendor_pid=vendors.pid,
            region=REGION,
            account=ACCOUNT,
            stage=deploy.STAGE,
            # A key of its own: the CDK command line remembers an account by its key.
            access_key=f"PENSTOCK{uuid.uuid4().hex[:12].upper()}",
            stacks=(),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        marks = fingerprint(where)
        running = _deploy(cdk, where, running, clock, first=True)
        state.write(name, Record(processes=tuple(started), state=running, fingerprint=marks))
    except BaseException:
        _stop(name)
        raise
    progress(f"ready in {clock.total_s:.1f} s")
    return running


def _deploy_again(
    name: str, where: Path, record: Record, running: StackState, marks: str, progress: Progress
) -> StackState:
    clock = _Clock(progress)
    # Not this app any more, and not yet the next one: a failure must not count as deployed.
    state.write(name, replace(record, fingerprint=""))
    running = _deploy(deploy.command_line(where), where, running, clock, first=False)
    state.write(name, replace(record, state=running, fingerprint=marks))
    progress(f"ready in {clock.total_s:.1f} s")
    return running


def _deploy(cdk: Path, where: Path, running: StackState, clock: _Clock, *, first: bool) -> StackState:
    folder = state.folder(running.name)
    clients = Clients(
        endpoint=running.endpoint, access_key=running.access_key, region=running.region, account=running.account
    )
    env = deploy.environment(clients, running.access_key, SECRET_KEY, folder)
    with ThreadPoolExecutor(max_workers=1) as beside:
        # Bootstrap while the command line starts and synthesizes: it is needed only by the first upload.
        ready = beside.submit(deploy.bootstrap, clients, cdk, folder) if first else None
        try:
            assembly = deploy.deploy(cdk, where, folder, env, running.vendor_url, clock.progress)
        finally:
            if ready is not None:
                ready.result()  # a failed bootstrap explains a failed deploy
    clock.tell("synthesized and deployed")
    templates = load(assembly)
    found = assert_deployed(templates, clients)
    repaired = repair(found, templates, clients)
    mended = {one.resource.key for one in repaired}
    left = [one for one in found if one.resource.key not in mended]
    left += assert_deployed(templates, clients, only=lambda resource: resource.key in mended)
    with (folder / "repairs.log").open("a", encoding="utf-8") as log:
        log.writelines(f"{one}\n" for one in repaired)
    if not first:
        left = [one for one in left if not excuse(one, MOVED_WHILE_RUNNING)]
    if left:
        raise NotAsWritten(left)
    tokens.fill(clients, running.stage)
    clock.tell(f"deployed equals template, {len(repaired)} properties the emulator had left out said again")
    return replace(running, stacks=tuple(template.name for template in templates))


def _living(name: str) -> Record | None:
    """The record of a stack that runs; the remains of one that does not are removed."""
    record = state.read(name)
    if record is not None and _runs(record):
        return record
    _stop(name)
    return None


def _runs(record: Record) -> bool:
    """Asks the kernel, not the emulator: one that is too busy to answer must not be taken for dead."""
    return record.state is not None and all(processes.alive(one) for one in record.processes)


def _stop(name: str) -> bool:
    record = state.read(name)
    if record is None:
        return False
    for process in record.processes:
        processes.stop(process)
    shutil.rmtree(state.folder(name) / "tmp", ignore_errors=True)
    state.forget(name)
    return True


def _insist_on_ports(running: StackState, port: int | None, vendor_port: int | None) -> None:
    for wanted, address in ((port, running.endpoint), (vendor_port, running.vendor_url)):
        if wanted and not address.endswith(f":{wanted}"):
            raise LocalStackError(f"{running.name!r} already runs at {address}; stop it to move it to port {wanted}")


class _Clock:
    """Tells each step with the seconds it took."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._began = self._last = time.monotonic()

    @property
    def total_s(self) -> float:
        return time.monotonic() - self._began

    def tell(self, what: str) -> None:
        now = time.monotonic()
        self.progress(f"{what} ({now - self._last:.1f} s)")
        self._last = now
