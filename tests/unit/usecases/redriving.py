"""A desk with failed jobs, people, and everything that goes on while an executor looks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shared.adapters.memory.vendor import Says
from shared.core.cohort import Chosen
from shared.core.job import Job, Status
from shared.core.plan import Plan, Progress
from shared.core.ports import Delivery
from shared.usecases.approve_redrive import approve_redrive
from shared.usecases.plan_redrive import Planned, plan_redrive
from shared.usecases.run_attempt import Answer
from shared.usecases.start_redrive import abort_redrive, start_redrive
from tests.processes import images_of
from tests.unit.usecases.desk import Desk

ADA, BOB = "arn:aws:iam::123456789012:user/ada", "arn:aws:iam::123456789012:user/bob"
CAUSE = "the token had expired; it was renewed"


def a_session(role: str, name: str) -> str:
    """A caller in a session of a role."""
    return f"arn:aws:sts::123456789012:assumed-role/{role}/{name}"


class RedriveDesk(Desk):
    """Ada plans, Bob approves; while the executor sleeps, the stream and the workers go on."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"parallel": 10, **options})
        self.reader = self.jobs.stream.reader()
        self.clock.on_sleep = self.meanwhile

    # ------------------------------------------------------------------------------------------ failures
    def fail(self, count: int, says: Says = Says.REFUSE_AUTH, **more: Any) -> list[str]:
        """So many jobs that the vendor turned down, in the order of a plan; their dead letters stand."""
        first = len(list(self.jobs.scan()))
        ids = [self.enqueue(key=f"event-{first + n}", **more).job_id for n in range(count)]
        self.vendor.script.extend([says] * count)
        self.go_on()
        assert {self.job(job_id).status for job_id in ids} == {Status.FAILED}
        # What the executor's view knows of the queue is believed for two seconds.
        self.clock.advance(3)
        return sorted(ids)

    def go_on(self) -> None:
        """The stream is read and the queue worked off."""
        while True:
            records = self.reader.read(10)
            if records:
                self.admit(*images_of(records))
                self.reader.commit(records)
                continue
            received = self.queues.receive(self.lane.name, limit=10)
            if not received:
                return
            for one in received:
                if self.work(one.delivery) is Answer.ACKNOWLEDGE:
                    self.queues.delete(self.lane.name, one.receipt)

    def meanwhile(self, seconds: float) -> None:
        """What happens while the executor sleeps."""
        self.go_on()
        self.triage().run(self.lane)
        self.clock.advance(seconds)

    # -------------------------------------------------------------------------------------------- people
    def plan(self, by: str = ADA, cause: str = CAUSE, **choice: Any) -> Planned:
        return plan_redrive(
            Chosen(**{"lane": self.lane.name, **choice}),
            cause=cause,
            by=by,
            jobs=self.jobs,
            effects=self.effects,
            plans=self.plans,
            history=self.history,
            clock=self.clock,
        )

    def approve(self, plan: Plan | str, by: str = BOB) -> Plan:
        plan_id = plan if isinstance(plan, str) else plan.plan_id
        return approve_redrive(
            plan_id,
            by=by,
            people=self.people,
            lane=self.lane,
            plans=self.plans,
            history=self.history,
            clock=self.clock,
        )

    def start(self, plan: Plan | str, by: str = ADA) -> Plan:
        return start_redrive(
            plan if isinstance(plan, str) else plan.plan_id,
            by=by,
            lane=self.lane,
            switches=self.control.switches(),
            jobs=self.jobs,
            effects=self.effects,
            plans=self.plans,
            history=self.history,
            clock=self.clock,
        )

    def abort(self, plan: Plan, by: str = BOB, why: str = "wrong") -> Plan:
        return abort_redrive(plan.plan_id, by=by, why=why, plans=self.plans, history=self.history, clock=self.clock)

    def started(self, **choice: Any) -> Plan:
        """Planned, approved and started."""
        plan = self.plan(**choice).plan
        self.approve(plan)
        return self.start(plan)

    # -------------------------------------------------------------------------------------------- engine
    def tick(self, run_s: float = 50) -> dict[str, int]:
        """One run of the executor."""
        return self.redriver().run(self.lane, stop_at=self.clock.now() + timedelta(seconds=run_s))

    def one_look(self) -> dict[str, int]:
        """A run that has time for one look."""
        return self.tick(run_s=0)

    def progress(self, plan: Plan) -> Progress:
        return Progress(steps=self.plans.steps(plan.plan_id))

    def ending(self, plan: Plan) -> tuple[str, str]:
        """How a plan ended, and why in a word."""
        ended = self.progress(plan).ended
        assert ended is not None
        assert ended.ending is not None
        return ended.ending.value, ended.waits_for.partition(":")[0]

    def statuses(self, ids: list[str]) -> list[str]:
        return [self.job(job_id).status.value for job_id in ids]

    def letter_of(self, job: Job) -> Delivery:
        """The job's dead letter, taken out of its queue and delivered to a worker: what a console redrive does."""
        for message in self.dead_letters.receive(self.lane.name, limit=100, hide_s=0):
            if message.job_id == job.job_id:
                self.dead_letters.delete(self.lane.name, message.receipt)
                return Delivery(
                    message_id=message.message_id,
                    job_id=job.job_id,
                    lane=job.lane,
                    receive_count=1,
                    body=message.body,
                )
        raise AssertionError("no letter")
