"""Move tasks in memory: letters moved at a rate as the clock goes on; what is hidden stays behind, as with SQS."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.adapters.memory.queues import MemoryDeadLetterQueues, MemoryLaneQueues
from shared.core.native import MoveState, MoveTask
from shared.core.ports import Clock

HIDE_S = 30


@dataclass(slots=True)
class _Moving:
    handle: str
    lane: str
    rate: int
    started_at: datetime
    to_move: int
    moved: int = 0
    state: MoveState = MoveState.RUNNING


class MemoryMoveTasks:
    """`MoveTasks` on the memory queues; `catch_up` does what SQS does by itself meanwhile."""

    def __init__(self, *, clock: Clock, queues: MemoryLaneQueues, dead_letters: MemoryDeadLetterQueues) -> None:
        self._clock, self._queues, self._dead = clock, queues, dead_letters
        self._tasks: list[_Moving] = []
        self.fails_after: int | None = None
        """A task that has moved so many fails."""
        self.slowness = 1.0
        """So many times slower than the rate, which is only the most that SQS moves."""

    @property
    def started(self) -> int:
        """Tasks that were ever started; for judges."""
        return len(self._tasks)

    def start(self, lane: str, *, rate: int) -> bool:
        """One at a time."""
        self.catch_up()
        if self._active(lane) is not None:
            return False
        to_move = self._dead.depth(lane).visible
        self._tasks.append(_Moving(f"task-{len(self._tasks)}", lane, rate, self._clock.now(), to_move))
        return True

    def of(self, lane: str) -> tuple[MoveTask, ...]:
        """The newest first; a handle only while it runs."""
        self.catch_up()
        return tuple(
            MoveTask(
                state=task.state,
                started_at=task.started_at,
                moved=task.moved,
                rate=task.rate,
                handle=task.handle if task.state is MoveState.RUNNING else None,
            )
            for task in reversed(self._tasks)
            if task.lane == lane
        )

    def cancel(self, lane: str, handle: str) -> None:
        """At once."""
        self.catch_up()
        for task in self._tasks:
            if task.handle == handle and task.state.active:
                task.state = MoveState.CANCELLED

    def catch_up(self) -> None:
        """Move what the time since the last look allows."""
        for task in [task for task in self._tasks if task.state.active]:
            gone_s = (self._clock.now() - task.started_at).total_seconds()
            while task.moved < min(task.to_move, int(gone_s * task.rate / self.slowness)):
                taken, _ = self._dead.queue(task.lane).take(1, HIDE_S)
                if not taken:
                    task.to_move = task.moved
                    break
                self._queues.add(task.lane, taken[0].body, taken[0].group)
                self._dead.delete(task.lane, taken[0].receipt)
                task.moved += 1
                if task.moved == self.fails_after:
                    task.state = MoveState.FAILED
                    break
            if task.state.active and task.moved >= task.to_move:
                task.state = MoveState.COMPLETED

    def next_at(self) -> datetime | None:
        """When the next letter is moved."""
        times = [
            task.started_at + timedelta(seconds=(task.moved + 1) * self.slowness / task.rate)
            for task in self._tasks
            if task.state.active
        ]
        return min(times, default=None)

    def _active(self, lane: str) -> _Moving | None:
        return next((task for task in self._tasks if task.lane == lane and task.state.active), None)
