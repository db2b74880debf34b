"""A whole system in one thread: each process is a greenlet, waiting hands over, and time moves when all wait.

Only one process runs at a time and the order is fixed, so a simulation replays identically.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from greenlet import getcurrent, greenlet

from shared.adapters.memory.clock import VirtualClock

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(slots=True)
class _Idle:
    """A process that rests between two looks."""

    seconds: float
    roused: bool = False
    looks: set[int] = field(default_factory=set)
    """Its next ones; the first of them ends the rest."""


class Hub:
    """Runs processes on one virtual clock: `clock.sleep` in any of them lets the others run."""

    def __init__(self, clock: VirtualClock | None = None) -> None:
        self.clock = clock or VirtualClock()
        self.clock.on_sleep = self.sleep
        self._waiting: list[tuple[datetime, int, greenlet]] = []
        self._idle: dict[greenlet, _Idle] = {}
        self._void: set[int] = set()
        """Looks that are no longer waited for."""
        self._made = 0
        self._home: greenlet | None = None
        self.stopped = False

    def spawn(self, work: Callable[[], object], after_s: float = 0.0) -> None:
        """Start a process `after_s` from now."""
        # Over, it hands back to the hub, whoever began it.
        self._wait(greenlet(work, self._home), after_s)

    def sleep(self, seconds: float) -> None:
        """Let the others run until `seconds` from now. Called by processes, through the clock."""
        if self._home is None or getcurrent() is self._home:
            self.clock.advance(seconds)
            return
        self._wait(getcurrent(), seconds)
        self._home.switch()

    def idle(self, seconds: float, at_latest: datetime | None = None) -> None:
        """Called by a process that looks for work every so often and found none: while nobody else does anything it
        would find none again, and is not asked. It looks so many seconds after somebody did something, or after
        `at_latest`, when work is known to come by itself."""
        process, idle = getcurrent(), _Idle(seconds)
        assert self._home is not None, "only a process can be idle"
        self._idle[process] = idle
        if at_latest is not None:
            idle.looks.add(self._wait(process, (at_latest - self.clock.now()).total_seconds() + seconds))
        self._home.switch()

    def each(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """Do `work` for every item at once, each in a process of its own; the results when all are over."""
        results: dict[int, Result] = {}
        caller, home = getcurrent(), self._home
        assert home is not None, "only a process can spread its work"

        def one(place: int, item: Item) -> None:
            results[place] = work(item)
            if len(results) == len(items):
                self._wait(caller, 0)

        for place, item in enumerate(items):
            self.spawn(lambda place=place, item=item: one(place, item))  # type: ignore[misc]
        if items:
            home.switch()
        return [results[place] for place in range(len(items))]

    def run(self, until_s: float) -> None:
        """Run until nobody waits, somebody stopped it, or so much time is over."""
        self._home = getcurrent()
        end = self.clock.now() + timedelta(seconds=until_s)
        while self._waiting and not self.stopped:
            at, number, process = heapq.heappop(self._waiting)
            if at > end:
                return
            if number in self._void:
                self._void.remove(number)
                continue
            rested = self._idle.pop(process, None)
            if rested is not None:
                # The first look ends the rest.
                self._void |= rested.looks - {number}
            self.clock.advance_to(at)
            process.switch()
            if rested is None or process not in self._idle:
                self._rouse()

    def stop(self) -> None:
        """Nothing runs after this process has handed over."""
        self.stopped = True

    def _rouse(self) -> None:
        """Something was done: whoever rests looks whether it is something for them."""
        for process, idle in self._idle.items():
            if not idle.roused:
                idle.roused = True
                idle.looks.add(self._wait(process, idle.seconds))

    def _wait(self, process: greenlet, seconds: float) -> int:
        self._made += 1
        at = self.clock.now() + timedelta(seconds=max(0.0, seconds))
        heapq.heappush(self._waiting, (at, self._made, process))
        return self._made
