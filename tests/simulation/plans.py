"""Plans for named stories: one rule each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shared.adapters.memory.faults import Boundary, Fault, Injection

WRITES = frozenset(
    {
        "put",
        "claim",
        "move",
        "intend",
        "take_over",
        "record",
        "accept",
        "send",
        "delete",
        "open_run",
        "close_run",
        "commit",
    }
)


@dataclass(slots=True)
class Rule:
    """What `choose` says of each boundary."""

    choose: Callable[[Boundary], Injection | None]

    @property
    def threaded(self) -> frozenset[str]:
        """Nobody."""
        return frozenset()

    def at(self, boundary: Boundary) -> Injection | None:
        """Ask the rule."""
        return self.choose(boundary)


def always(fault: Fault, port: str, method: str, *, workers: str = "", until: Callable[[], bool] | None = None) -> Rule:
    """The same fault at every call of one method, by those whose name begins so, while `until` is not yet true."""

    def choose(boundary: Boundary) -> Injection | None:
        if until is not None and until():
            return None
        mine = boundary.worker.startswith(workers) and (boundary.port, boundary.method) == (port, method)
        return Injection(fault) if mine else None

    return Rule(choose)


def once(fault: Fault, worker: str, port: str, method: str, nth: int = 1, seconds: float = 0.0) -> Rule:
    """One fault at one call."""
    where = Boundary(worker, port, method, nth)
    return Rule(lambda boundary: Injection(fault, seconds) if boundary == where else None)


def every_write_loses_its_answer() -> Rule:
    """Each write is applied, its answer lost; asked again, it answers."""

    def choose(boundary: Boundary) -> Injection | None:
        lost = boundary.method in WRITES and boundary.nth % 2 == 1
        return Injection(Fault.APPLIED_BUT_ERROR) if lost else None

    return Rule(choose)
