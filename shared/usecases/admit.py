"""Admit: what the stream consumer does with new and moved jobs. Sends, holds with a reason, or writes a dead letter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shared.contract import metrics
from shared.core import lifecycle
from shared.core.admission import BudgetGate
from shared.core.admission import admit as ask
from shared.core.errors import UnknownLane, UnreadableRow
from shared.core.job import Category, Job, Status
from shared.core.lane import LaneSpec
from shared.core.message import Message, dead_letter_of, message_of
from shared.core.ports import Clock, DeadLetterQueues, JobStore, LaneQueues, Telemetry
from shared.usecases.persist import persist
from shared.usecases.try_move import try_move
from shared.usecases.view import Viewer

AHEAD_S, AHEAD_ALONE_S = 2, 60
"""A new job whose turn at its account comes so soon is sent with the delay; what waits longer waits in the table. Where
nobody waits there yet, the consumer gives out starts until the dispatcher's next run can take over."""


@dataclass(slots=True)
class Admitted:
    """What became of one batch of changes."""

    sent: int = 0
    held: int = 0
    dead_letters: int = 0
    isolated: int = 0
    skipped: int = 0


def admit(
    images: Sequence[Job | UnreadableRow],
    *,
    jobs: JobStore,
    queues: LaneQueues,
    dead_letters: DeadLetterQueues,
    viewer: Viewer,
    clock: Clock,
    telemetry: Telemetry,
) -> Admitted:
    """Take each change on its own: a bad record never holds up its neighbours.

    Raises Unavailable only when SQS or DynamoDB is down; the batch then comes again, and doing it twice
    is harmless: a message more is met by the claim.
    """
    done = Admitted()
    failed: list[Job] = []
    to_send: dict[str, list[tuple[Job, int]]] = {}
    for image in images:
        if isinstance(image, UnreadableRow):
            done.isolated += 1
            telemetry.error("stream_row_unreadable", image, row=image.key)
            telemetry.count(metrics.STREAM_ERRORS)
        elif image.status is Status.FAILED:
            if image.withdrawn:
                # Its letter still stands; one that was moved after all asks for itself.
                done.skipped += 1
            elif viewer.knows(image.lane):
                failed.append(image)
            else:
                # No lane, no dead-letter queue: the row itself is what an operator finds.
                done.isolated += 1
                telemetry.event("failed_job_of_unknown_lane", job_id=image.job_id)
        elif image.status is not Status.QUEUED or image.waits or image.route is not None:
            done.skipped += 1
        else:
            _consider(image, done, to_send, jobs, viewer, clock, telemetry)
    for lane, ready in to_send.items():
        _send(lane, ready, done, jobs, queues, viewer, clock, telemetry)
    viewer.write_lines()
    if failed:
        letters = [dead_letter_of(job) for job in failed]
        refused = persist(lambda: dead_letters.send(letters), clock)
        done.dead_letters += len(letters) - len(refused)
        for letter in refused:
            # The auditor finds a failed job without its dead letter.
            telemetry.event("dead_letter_not_sent", job_id=letter.job_id, lane=letter.lane)
    return done


def _consider(
    job: Job,
    done: Admitted,
    to_send: dict[str, list[tuple[Job, int]]],
    jobs: JobStore,
    viewer: Viewer,
    clock: Clock,
    telemetry: Telemetry,
) -> None:
    now = clock.now()
    try:
        if viewer.lane(job.lane).run is not None:
            # A run takes it when its turn comes; nobody sends it.
            try_move(job, lifecycle.held(job, "run", now), jobs=jobs, clock=clock, telemetry=telemetry)
            done.held += 1
            return
        view = viewer.of(job.lane, job.task)
    except UnknownLane as exc:
        telemetry.error("job_of_unknown_lane", exc, job_id=job.job_id)
        orphan = LaneSpec(name="unknown", tasks=("unknown",))
        after = lifecycle.failed_unclaimed(job, orphan, now, Category.POISON, "unknown_lane")
        try_move(job, after, jobs=jobs, clock=clock, telemetry=telemetry)
        done.isolated += 1
        return
    verdict = ask(job, view, now)
    start = verdict.starts_at(now, AHEAD_S if viewer.backlog(view.lane, job.task) else AHEAD_ALONE_S)
    if start is not None:
        wait_s = math.floor((start - now).total_seconds())
        to_send.setdefault(job.lane, []).append((job, wait_s))
        # Not told to its accounts if it starts at once: an open path that wrote would cost a write a job.
        viewer.sent(job, start, to_tell=wait_s > AHEAD_S)
        return
    if verdict.blocked is not None and verdict.blocked.gate == BudgetGate.name:
        viewer.left_behind(view.lane, job.task)
    held = lifecycle.held(job, verdict.reason or "", now)
    try_move(job, held, jobs=jobs, clock=clock, telemetry=telemetry)
    done.held += 1
    telemetry.count(metrics.HELD, lane=job.lane)


def _send(
    lane: str,
    ready: list[tuple[Job, int]],
    done: Admitted,
    jobs: JobStore,
    queues: LaneQueues,
    viewer: Viewer,
    clock: Clock,
    telemetry: Telemetry,
) -> None:
    messages: list[Message] = [message_of(job, delay_s=delay_s) for job, delay_s in ready]
    refused = {message.job_id for message in persist(lambda: queues.send(messages), clock)}
    for job, _ in ready:
        if job.job_id in refused:
            held = lifecycle.held(job, f"send:{lane}", clock.now())
            try_move(job, held, jobs=jobs, clock=clock, telemetry=telemetry)
            done.held += 1
    done.sent += len(ready) - len(refused)
    telemetry.count(metrics.ADMITTED, len(ready) - len(refused), lane=lane)
