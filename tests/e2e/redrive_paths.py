"""A reviewed redrive, and one that nobody reviewed, on the local stack."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

from shared.adapters.aws.clock import SystemClock
from shared.adapters.aws.history import DynamoDbHistory
from shared.adapters.aws.plans import DynamoDbPlanStore
from shared.contract import envelope, names
from shared.core.cohort import Chosen
from shared.core.job import Category, Job, Status
from shared.core.plan import Ending, Fate, Progress
from shared.usecases.approve_redrive import approve_redrive
from shared.usecases.plan_redrive import plan_redrive
from shared.usecases.start_redrive import start_redrive
from tests.builders import FREELY_NAMED
from tests.e2e.paths import LANE, STAGE, LocalStage, a_row, letter_taken
from tests.waiting import until

SIGNATURE = "e#e_redrive"


def walk_a_redrive(stage: LocalStage) -> None:
    """Plan, approve and start; the executor's runs take it to its end. Then a dead letter is moved by hand."""
    ids = [_failed(stage).job_id for _ in range(2)]
    history = names.table(STAGE, "history")
    plans = DynamoDbPlanStore(client=stage.clients.of("dynamodb"), table_name=history)
    told = DynamoDbHistory(client=stage.clients.of("dynamodb"), table_name=history)
    clock = SystemClock()
    plan = plan_redrive(
        Chosen(lane=LANE, signature=SIGNATURE),
        cause="these rows were planted; their payloads are good",
        by="ada",
        jobs=stage.jobs,
        effects=stage.effects,
        plans=plans,
        history=told,
        clock=clock,
    ).plan
    assert plan.count == len(ids)
    approve_redrive(plan.plan_id, by="bob", people=FREELY_NAMED, plans=plans, history=told, clock=clock)
    start_redrive(
        plan.plan_id,
        by="ada",
        lane=stage.lanes[LANE],
        switches=stage.control.switches(),
        jobs=stage.jobs,
        effects=stage.effects,
        plans=plans,
        history=told,
        clock=clock,
    )
    for _ in range(3):
        stage.run("redriver")
        progress = Progress(steps=plans.steps(plan.plan_id))
        if progress.ended is not None:
            break
    assert progress.ended is not None
    assert progress.ended.ending is Ending.FINISHED, progress.ended
    assert progress.fates == dict.fromkeys(ids, Fate.COMPLETED)
    assert {stage.job(job_id).replay_count for job_id in ids} == {1}
    _moved_by_hand(stage)


def _moved_by_hand(stage: LocalStage) -> None:
    """What a console redrive does: the letter in the lane's queue. Nothing is replayed, and it stands again."""
    job = _failed(stage)
    letter = envelope.encode_dead_letter(job_id=job.job_id, lane=LANE, category="auth", signature=SIGNATURE, at="now")
    until(lambda: letter_taken(stage, job.job_id), "the stream to send the dead letter")
    stage.send(letter)
    until(lambda: stage.job(job.job_id).waits, "the worker to ask for the letter")
    stage.run("sweeper")
    after = stage.job(job.job_id)
    assert (after.status, after.waits, after.replay_count) == (Status.FAILED, False, 0)
    until(lambda: letter_taken(stage, job.job_id), "its dead letter to stand again")


def _failed(stage: LocalStage) -> Job:
    """A job that failed an hour ago and would not fail now."""
    key = f"dead-{uuid.uuid4().hex[:8]}"
    ref = f"payload/{key}"
    stage.clients.of("s3").put_object(
        Bucket=stage.bucket, Key=ref, Body=json.dumps({"conversation_id": f"c-{key}"}).encode()
    )
    return stage.plant(
        a_row(
            key,
            age=timedelta(hours=1),
            status=Status.FAILED,
            fence=1,
            category=Category.AUTH,
            signature=SIGNATURE,
            last_error=SIGNATURE,
            payload_ref=ref,
        )
    )
