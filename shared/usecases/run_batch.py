"""Run a batch: its messages in parallel, each on its own, joined before the answer."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from shared.core.ports import Delivery
from shared.usecases.deadline import Deadline
from shared.usecases.run_attempt import Answer, Worker, run_attempt


def run_batch(deliveries: Sequence[Delivery], worker: Worker, *, invocation: str, deadline: Deadline) -> list[str]:
    """The ids of the messages to return to the queue; always a subset of what came in."""

    def one(numbered: tuple[int, Delivery]) -> Answer:
        # The place in the batch is part of who claims: the same message may be delivered twice in one batch,
        # and "already mine" must not be true for both.
        position, delivery = numbered
        by = f"{invocation}/{position}.{delivery.message_id[:8]}"
        return run_attempt(delivery, worker, by=by, deadline=deadline)

    parallel = min(worker.lane.parallel, len(deliveries))
    if parallel <= 1:
        answers = [one(numbered) for numbered in enumerate(deliveries)]
    else:
        # Joined on exit: no thread outlives the invocation and sends after a thaw.
        with ThreadPoolExecutor(max_workers=parallel) as pool:
            answers = list(pool.map(one, enumerate(deliveries)))
    return [
        delivery.message_id for delivery, answer in zip(deliveries, answers, strict=True) if answer is Answer.RETURN
    ]
