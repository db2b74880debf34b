"""Run a batch: its messages in parallel, each on its own, joined before the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from shared.core.ports import Delivery
from shared.usecases.deadline import Deadline
from shared.usecases.run_attempt import Answer, Worker, run_attempt
from shared.usecases.tally import write_tally

Side = Callable[[tuple[int, Delivery]], Answer]
Spread = Callable[[Side, Sequence[Delivery], int], list[Answer]]
"""How a batch is spread: the work, the deliveries, how many at once. All of it is over when it returns."""


def in_threads(one: Side, deliveries: Sequence[Delivery], parallel: int) -> list[Answer]:
    """On threads of their own. Joined on exit: no thread outlives the invocation and sends after a thaw."""
    if parallel <= 1:
        return [one(numbered) for numbered in enumerate(deliveries)]
    with ThreadPoolExecutor(max_workers=parallel) as pool:
        return list(pool.map(one, enumerate(deliveries)))


def run_batch(
    deliveries: Sequence[Delivery],
    worker: Worker,
    *,
    invocation: str,
    deadline: Deadline,
    spread: Spread = in_threads,
) -> list[str]:
    """The ids of the messages to return to the queue; always a subset of what came in.

    What was counted is written once, at the end: one write a batch, whatever its size, and none of its messages fails
    because that write does.
    """

    def one(numbered: tuple[int, Delivery]) -> Answer:
        # The place in the batch is part of who claims: the same message may be delivered twice in one batch,
        # and "already mine" must not be true for both.
        position, delivery = numbered
        by = f"{invocation}/{position}.{delivery.message_id[:8]}"
        return run_attempt(delivery, worker, by=by, deadline=deadline)

    worker.budgets.expect(len(deliveries), max(1.0, deadline.remaining_s))
    answers = spread(one, deliveries, min(worker.lane.parallel, len(deliveries)))
    worker.budgets.give_back()
    write_tally(
        worker.tally,
        lane=worker.lane,
        signals=worker.signals,
        clock=worker.clock,
        telemetry=worker.telemetry,
    )
    return [
        delivery.message_id for delivery, answer in zip(deliveries, answers, strict=True) if answer is Answer.RETURN
    ]
