"""Batches whose runs die, lose answers or are refused at any call: no job in two, none paid twice, none lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache

import pytest

from shared.adapters.memory.faults import Boundary, Crashed, Fault, Faults, Injection, Scripted
from shared.adapters.memory.faults import Worker as Process
from shared.core.errors import PenstockError
from shared.core.job import Status
from shared.core.run import RunConfig
from shared.usecases.deadline import Deadline
from tests.builders import an_account
from tests.judge import illegal_steps
from tests.unit.usecases.rewriting import RewriteDesk

pytestmark = pytest.mark.crash

JOBS = 3
FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.APPLIED_BUT_ERROR, Fault.THROTTLE, Fault.OUTAGE)
ROUNDS = 12
"""Runs of each kind until everything must have ended: a claim time-out and two backoffs fit into them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """How one story ended."""

    trace: tuple[Boundary, ...]
    problems: tuple[str, ...]


class Story:
    """Submitters, collectors and the sweeper, every quarter of an hour, on ports where things go wrong."""

    def __init__(self, faults: Mapping[Boundary, Injection], *, together: bool = False) -> None:
        self.desk = RewriteDesk(
            run=RunConfig(retry_backoff_seconds=(60, 600), claim_timeout_seconds=600),
            account=an_account(vendor="openai", batch_tokens=100_000, requests_per_minute=6000),
            max_attempts=3,
        )
        self.faults = Faults(Scripted(faults))
        self.together = together
        self.everything = self.desk.jobs.stream.reader()
        for number in range(JOBS):
            self.desk.enqueue(number)

    def run(self) -> Walked:
        """To the end, then judged."""
        for _ in range(ROUNDS):
            for name in ("submitter", "second", "collector") if self.together else ("submitter", "collector"):
                self._go(name)
            self.desk.sweep()
            self.desk.clock.advance(900)
        return Walked(trace=tuple(self.faults.trace), problems=tuple(self._problems()))

    def _go(self, name: str) -> None:
        desk = self.desk
        self._processes = getattr(self, "_processes", {})
        process = self._processes.setdefault(name, Process(name))
        process.revive()
        ports = {port: self.faults.wrap(getattr(desk, port), port, process) for port in ("jobs", "batches", "budgets")}
        ports["providers"] = {"openai": self.faults.wrap(desk.provider, "provider", process)}
        content = self.faults.wrap(desk.content, "content", process)
        deadline = Deadline(at=desk.clock.now() + timedelta(seconds=240), clock=desk.clock)
        desk.runs += 1
        try:
            if name == "collector":
                desk.collector(content=content, **ports).run(f"run-{desk.runs}", deadline)
            else:
                desk.submitter(content=content, **ports).run(f"run-{desk.runs}", deadline)
        except (Crashed, PenstockError):
            # A run that died, or was given up by its door: the next one is another process.
            pass

    def _problems(self) -> list[str]:
        desk, problems = self.desk, []
        paid = Counter(name.rpartition(".")[0] for name in desk.provider.paid().elements())
        problems += [f"paid {count} times: {job_id}" for job_id, count in paid.items() if count > 1]
        tags = Counter(batch.tag for batch in desk.provider.batches.values())
        problems += [f"batch submitted {count} times: {tag}" for tag, count in tags.items() if count > 1]
        problems += [f"{job.status}: {job.job_id}" for job in desk.rows() if job.status is not Status.COMPLETED]
        problems += [f"no text: {job.job_id}" for job in desk.rows() if desk.text_of(job) is None]
        problems += [f"under way: {batch.tag}" for batch in desk.batches.under_way("rewrite")]
        problems += [f"illegal: {step}" for step in illegal_steps(self.everything.read(10**6))]
        account = next(iter(desk.accounts.values()))
        problems += [f"held: {name}" for name in desk.budgets.read(account).holds]
        return problems


@cache
def calm() -> Walked:
    """Nothing goes wrong."""
    return Story({}).run()


def test_without_a_fault_each_is_paid_once() -> None:
    """The walk itself."""
    assert calm().problems == ()


@pytest.mark.req("R8")
@pytest.mark.fault("B8")
@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_at_any_call(fault: Fault) -> None:
    """At every call of every run, before it, after it, with its answer lost, refused, or refused again and again."""
    boundaries = calm().trace
    found = {}
    for boundary in boundaries:
        walked = Story({boundary: Injection(fault)}).run()
        if walked.problems:
            found[str(boundary)] = walked.problems
    print(f"batches, {fault}: {len(boundaries)} executions, {len(found)} with a problem")
    assert found == {}


@pytest.mark.parametrize("fault", [Fault.CRASH_AFTER, Fault.APPLIED_BUT_ERROR])
def test_two_submitters_and_one_fault(fault: Fault) -> None:
    """The second one meets what the first has left, at once and not a quarter of an hour later."""
    calm_pair = Story({}, together=True).run()
    assert calm_pair.problems == ()
    found = {}
    for boundary in calm_pair.trace:
        walked = Story({boundary: Injection(fault)}, together=True).run()
        if walked.problems:
            found[str(boundary)] = walked.problems
    print(f"two submitters, {fault}: {len(calm_pair.trace)} executions, {len(found)} with a problem")
    assert found == {}
