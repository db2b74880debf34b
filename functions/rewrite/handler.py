"""The scheduled functions of lane `rewrite`: submit batches, collect them, and work off what is not batched."""

from __future__ import annotations

from functions.rewrite.prompts import RESULT, accepted, prompt_of
from functions.rewrite.tasks import TASKS
from shared.core.job import Job
from shared.core.rewrite import RoutingDecision, group_of
from shared.runtime import runs
from shared.runtime.run_door import run_door


def model_of(job: Job) -> str:
    """`provider/model`, as a run's record counts."""
    decision = RoutingDecision.from_mapping(job.routing_decision)
    return f"{decision.provider}/{decision.model}"


batch_submitter = run_door("batch_submitter", runs.submitter(group_of=group_of, prompt_of=prompt_of))
batch_collector = run_door("batch_collector", runs.collector(accept=accepted, result=RESULT))
worker = run_door("worker", runs.worker(TASKS, model_of=model_of))
