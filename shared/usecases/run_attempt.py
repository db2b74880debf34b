"""Run an attempt: one message in, its job claimed, its task run, its end written, and whether to acknowledge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum

from shared.contract import envelope, metrics
from shared.core import lifecycle, liveness
from shared.core.account import AccountSpec
from shared.core.errors import (
    BadInput,
    ClaimLost,
    ControlUnreadable,
    PenstockError,
    RowMoved,
    Unavailable,
    UnreadableRow,
)
from shared.core.job import CANARY, NATIVE, Category, Job, Status
from shared.core.lane import POISON_RECEIVES, LaneSpec
from shared.core.outcome import Defer, Done, Fail, Outcome, Retry, checked
from shared.core.ports import (
    Claimed,
    Clock,
    ContentStore,
    Delivery,
    EffectStore,
    JobStore,
    SignalLedger,
    Telemetry,
    Vendor,
)
from shared.core.switches import Switches, lane_scopes
from shared.usecases.budgets import Budgets
from shared.usecases.conclude import conclude
from shared.usecases.context import Context, Task
from shared.usecases.deadline import Deadline
from shared.usecases.ending import EndAttempt
from shared.usecases.evidence import Evidence
from shared.usecases.make_effect import SWITCH_HOLD_S, EffectMaker
from shared.usecases.passage import Passage
from shared.usecases.persist import persist
from shared.usecases.recover import recover
from shared.usecases.settle import settle
from shared.usecases.spend import Spender
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.tally import Tally

STORE_PAUSE_S = 15
WAIT_SHARE = 0.2
"""So much of a job's time may pass in waits for the moments of its permits; then it is put back for its turn."""
TASK_VERSION = 1
TAKEN_BACK = "taken_back"
"""Put back until the worker it was taken from is gone: one worker at a time may act for a job."""


class Answer(Enum):
    """What becomes of the message."""

    ACKNOWLEDGE = "acknowledge"
    RETURN = "return"


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What a lane's worker works with."""

    lane: LaneSpec
    tasks: Mapping[str, Task]
    jobs: JobStore
    effects: EffectStore
    content: ContentStore
    vendors: Mapping[str, Vendor]
    board: SwitchBoard
    clock: Clock
    telemetry: Telemetry
    budgets: Budgets = field(default_factory=Budgets)
    accounts: tuple[AccountSpec, ...] = ()
    """The accounts of the lane, as configured."""
    tally: Tally = field(default_factory=Tally)
    signals: SignalLedger | None = None
    """Where what was counted is written, once a batch."""


def run_attempt(delivery: Delivery, worker: Worker, *, by: str, deadline: Deadline) -> Answer:
    """Never raises: a message whose handling failed is returned, and harms no neighbour.

    Acknowledged only when the job is in an end state, stands in the waiting index, or was handed to a batch.
    """
    try:
        answer = _attempt(delivery, worker, by, deadline)
    except PenstockError as exc:
        worker.telemetry.error("message_returned", exc, message_id=delivery.message_id, job_id=delivery.job_id)
        answer = Answer.RETURN
    except Exception as exc:
        worker.telemetry.error("worker_fault", exc, message_id=delivery.message_id, job_id=delivery.job_id)
        worker.tally.broke()
        answer = Answer.RETURN
    if answer is Answer.RETURN:
        worker.telemetry.count(metrics.NACKED, lane=worker.lane.name)
    return answer


def _attempt(delivery: Delivery, worker: Worker, by: str, deadline: Deadline) -> Answer:
    if delivery.job_id is None or delivery.lane != worker.lane.name:
        # Returned until the dead-letter queue has it; triage keeps it where an operator finds it.
        worker.telemetry.event(
            "envelope_unreadable", message_id=delivery.message_id, problem=delivery.problem or "wrong_lane"
        )
        return Answer.RETURN
    if deadline.remaining_s <= 0:
        return Answer.RETURN
    job_id = delivery.job_id
    switches = worker.board.read()
    if switches.standing(lane_scopes(worker.lane.name, worker.lane.shared_vendors)).closes_claims:
        return _hold_unclaimed(job_id, delivery, worker)
    if switches.standing(switches.entries).closes_admission:
        held = _hold_moved(job_id, worker, switches)
        if held is not None:
            return held
    job = _take(job_id, delivery, worker, by)
    if not isinstance(job, Job):
        return job
    work_on(job, worker, deadline, receive_count=delivery.receive_count)
    return Answer.ACKNOWLEDGE


def work_on(job: Job, worker: Worker, deadline: Deadline, *, receive_count: int = 1) -> Job:
    """One attempt at a claimed job: its task is run, its end written. Raises ClaimLost when it is somebody else's."""
    worker.tally.claimed(job, worker.clock.now())
    try:
        outcome = _outcome_of(job, receive_count, worker, deadline)
    except ControlUnreadable as exc:
        # Claimed, and the switches went out of sight: nothing more is sent, and no attempt is used for it.
        worker.telemetry.error("attempt_store_fault", exc, job_id=job.job_id)
        outcome = Defer(worker.clock.now() + timedelta(seconds=STORE_PAUSE_S), f"store:{exc.code}")
    after = settle(
        job,
        outcome,
        lane=worker.lane,
        jobs=worker.jobs,
        effects=worker.effects,
        clock=worker.clock,
        telemetry=worker.telemetry,
    )
    worker.tally.settled(after, outcome)
    return after


def _take(job_id: str, delivery: Delivery, worker: Worker, by: str) -> Job | Answer:
    """The claimed job, or what to do with the message instead."""
    jobs, clock = worker.jobs, worker.clock
    claim = persist(lambda: jobs.claim(job_id, by=by, now=clock.now()), clock)
    seen = None if isinstance(claim, Claimed) else claim.job
    if seen is not None and liveness.is_stale(seen, worker.lane, clock.now()):
        back = recover(seen, worker.lane, jobs=jobs, effects=worker.effects, clock=clock, telemetry=worker.telemetry)
        if back is None:
            return Answer.RETURN
        worker.tally.recovered(back)
        if back.status is Status.FAILED:
            return Answer.ACKNOWLEDGE
        # It stands in the waiting index now, so a crash here is safe; go on and take it at once.
        claim = persist(lambda: jobs.claim(job_id, by=by, now=clock.now()), clock)
    if isinstance(claim, Claimed):
        return claim.job
    return _unclaimed(claim.job, delivery, worker)


def _unclaimed(job: Job | None, delivery: Delivery, worker: Worker) -> Answer:
    if job is None:
        # Expired or never there: returned, so that triage keeps a trace of it.
        worker.telemetry.event("job_missing", job_id=delivery.job_id, lane=worker.lane.name)
        return Answer.RETURN
    if job.status is Status.PROCESSING:
        return Answer.RETURN
    if job.status is Status.QUEUED and not job.waits:
        return _hold(job, "early", worker)
    return _letter_back(job, delivery, worker)


def _hold_unclaimed(job_id: str, delivery: Delivery, worker: Worker) -> Answer:
    """A closed switch: the job goes to the waiting index with the reason, the message is acknowledged."""
    job = persist(lambda: worker.jobs.get(job_id), worker.clock)
    if job is None or job.status is Status.PROCESSING:
        return Answer.RETURN
    if job.status is not Status.QUEUED:
        return _letter_back(job, delivery, worker)
    standing = worker.board.read().for_job(job, worker.lane.vendors_of(job.task))
    return _hold(job, f"switches:{standing.scope}", worker)


def _hold_moved(job_id: str, worker: Worker, switches: Switches) -> Answer | None:
    """A moved letter has passed no admission: while that is closed, its job waits like any other. None: go on."""
    job = persist(lambda: worker.jobs.get(job_id), worker.clock)
    if job is None or job.status is not Status.QUEUED or job.route != NATIVE:
        return None
    standing = switches.for_job(job, worker.lane.vendors_of(job.task))
    return _hold(job, f"switches:{standing.scope}", worker) if standing.closes_admission else None


def _letter_back(job: Job, delivery: Delivery, worker: Worker) -> Answer:
    """The message of an ended job is done with. One that is a failed job's dead letter was moved here without a plan:
    nothing is replayed, and the row asks the sweeper for its letter before this one is gone."""
    if job.status is not Status.FAILED or job.waits or not envelope.is_dead_letter(delivery.body):
        return Answer.ACKNOWLEDGE
    try:
        persist(lambda: worker.jobs.move(job, lifecycle.letter_taken(job, worker.clock.now())), worker.clock)
    except RowMoved:
        return Answer.RETURN
    worker.telemetry.event("dead_letter_moved", job_id=job.job_id, lane=job.lane)
    return Answer.ACKNOWLEDGE


def _hold(job: Job, reason: str, worker: Worker) -> Answer:
    after = lifecycle.held(job, reason, worker.clock.now())
    try:
        persist(lambda: worker.jobs.move(job, after), worker.clock)
    except RowMoved:
        return Answer.RETURN
    worker.telemetry.count(metrics.HELD, lane=job.lane)
    return Answer.ACKNOWLEDGE


def _outcome_of(job: Job, receive_count: int, worker: Worker, deadline: Deadline) -> Outcome:
    """Run the task, or say why it is not run."""
    now, gone_at = worker.clock.now(), liveness.others_gone_at(job, worker.lane)
    if gone_at is not None and now < gone_at:
        return Defer(gone_at, TAKEN_BACK)
    if lifecycle.is_poison(job, receive_count, POISON_RECEIVES):
        return Fail(Category.POISON, "receives_exhausted")
    task = _canary if job.task == CANARY else worker.tasks.get(job.task)
    if task is None:
        return Fail(Category.MALFORMED, "unknown_task")
    if job.task_version != TASK_VERSION:
        return Fail(Category.MALFORMED, "unknown_task_version")
    standing = worker.board.read().for_job(job, worker.lane.vendors_of(job.task))
    if standing.closes_claims:
        return Defer(now + timedelta(seconds=SWITCH_HOLD_S), f"switches:{standing.scope}")
    return _run(task, job, worker, deadline.within(worker.lane.job_timeout_s))


def _canary(job: Job, ctx: Context) -> Outcome:
    """That it got here and ends is all it is for: no effect, no call."""
    return Done(CANARY)


def _run(task: Task, job: Job, worker: Worker, deadline: Deadline) -> Outcome:
    passage = Passage(job=job, effects=worker.effects, clock=worker.clock)
    evidence = Evidence(
        job=job,
        lane=worker.lane,
        effects=worker.effects,
        vendors=worker.vendors,
        clock=worker.clock,
        deadline=deadline,
        telemetry=worker.telemetry,
    )
    maker = EffectMaker(
        job=job,
        lane=worker.lane,
        effects=worker.effects,
        board=worker.board,
        clock=worker.clock,
        deadline=deadline,
        telemetry=worker.telemetry,
        passage=passage,
        evidence=evidence,
        spender=Spender(
            job=job,
            budgets=worker.budgets,
            clock=worker.clock,
            telemetry=worker.telemetry,
            tally=worker.tally,
            patience_s=WAIT_SHARE * max(0.0, deadline.remaining_s),
        ),
    )
    ctx = Context(
        job=job,
        content=worker.content,
        vendors=worker.vendors,
        maker=maker,
        board=worker.board,
        clock=worker.clock,
        deadline=deadline,
        accounts=worker.accounts,
        routing=worker.lane.routing,
    )
    try:
        return conclude(_end_of(task, job, ctx, worker), passage=passage, evidence=evidence)
    except EndAttempt as end:
        return end.outcome
    except (Unavailable, UnreadableRow) as exc:
        worker.telemetry.error("attempt_store_fault", exc, job_id=job.job_id)
        return Defer(worker.clock.now() + timedelta(seconds=STORE_PAUSE_S), f"store:{exc.code}")


def _end_of(task: Task, job: Job, ctx: Context, worker: Worker) -> Outcome:
    """What the task says of its end, or what ended it."""
    try:
        returned = _returned(task, job, ctx)
    except EndAttempt as end:
        return end.outcome
    except (ClaimLost, ControlUnreadable):
        raise
    except (Unavailable, UnreadableRow) as exc:
        worker.telemetry.error("attempt_store_fault", exc, job_id=job.job_id)
        return Defer(worker.clock.now() + timedelta(seconds=STORE_PAUSE_S), f"store:{exc.code}")
    except BadInput as exc:
        worker.telemetry.error("task_fault", exc, job_id=job.job_id, task=job.task)
        return checked(Fail(Category.MALFORMED, f"bad_input:{exc.field}"[:96]))
    except (Exception, SystemExit) as exc:
        # A task that calls exit ends itself, not its neighbours.
        worker.telemetry.error("task_fault", exc, job_id=job.job_id, task=job.task)
        return checked(Retry(f"exception:{type(exc).__name__}"[:96]))
    outcome = checked(returned)
    if not isinstance(outcome, Done):
        return outcome
    if ctx.replayed and not ctx.sent and not ctx.withheld:
        return replace(outcome, result="already_done")
    return replace(outcome, withheld=ctx.withheld)


def _returned(task: Task, job: Job, ctx: Context) -> object:
    """What the task returns. Where the engine has ended it, what the task made of that has no say."""
    try:
        return task(job, ctx)
    finally:
        ctx.close()
        if ctx.ended is not None:
            raise ctx.ended
