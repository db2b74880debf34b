"""A backlog that lasts until somebody has looked at it, however long the looking takes: where some end, others come.

with arriving(standing=lambda: 42, level=300, enqueue=one_more):   300 stand there, whatever is done meanwhile
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, Thread

LOOK_S = 0.5


@contextmanager
def arriving(*, standing: Callable[[], int], level: int, enqueue: Callable[[int], object]) -> Iterator[None]:
    """Within, as many jobs come as are missing to `level`; `enqueue` is told the number of each, from 0."""
    over, came = Event(), 0

    def fill(producers: ThreadPoolExecutor) -> None:
        nonlocal came
        missing = max(0, level - standing())
        list(producers.map(enqueue, range(came, came + missing)))
        came += missing

    def go_on(producers: ThreadPoolExecutor) -> None:
        while not over.wait(LOOK_S):
            fill(producers)

    with ThreadPoolExecutor(4) as producers:
        fill(producers)
        filling = Thread(target=go_on, args=(producers,), daemon=True)
        filling.start()
        try:
            yield
        finally:
            over.set()
            filling.join()
