"""Faults at the ports: a proxy announces every call as a boundary, a plan says what goes wrong there.

The adapters themselves know nothing of it, so what is tested is what runs: the use cases, on ports that die,
lose answers, refuse, stand still or deliver twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from types import GeneratorType
from typing import Any, NamedTuple, NoReturn, Protocol, TypeVar, cast

from shared.core.batch import NotTaken, NoWord
from shared.core.effects import NoAnswer, Refused, Unknown
from shared.core.errors import PenstockError, Unavailable

T = TypeVar("T")


class Crashed(BaseException):
    """The worker is dead. Not an Exception, so no handler can mistake it for one and go on."""


class Fault(StrEnum):
    """What can go wrong at a boundary."""

    CRASH_BEFORE = "crash_before"
    """The worker dies before the call is applied."""
    CRASH_AFTER = "crash_after"
    """The call is applied, then the worker dies."""
    APPLIED_BUT_ERROR = "applied_but_error"
    """The call is applied, and the worker is told it failed."""
    THROTTLE = "throttle"
    """The call is not applied, and the worker is told so."""
    OUTAGE = "outage"
    """As throttle, for this call and the next ones of this worker to the same port: more than it retries."""
    FREEZE = "freeze"
    """The worker stands still before the call; the world goes on; later the call goes out."""
    DUPLICATE_DELIVERY = "duplicate_delivery"
    """The message being worked on is delivered to a second worker at this moment."""


OUTAGE_CALLS = 6


class Boundary(NamedTuple):
    """One call of one worker: the n-th of this method. The same run has the same boundaries."""

    worker: str
    port: str
    method: str
    nth: int

    def __str__(self) -> str:
        return f"{self.worker}:{self.port}.{self.method}#{self.nth}"


@dataclass(frozen=True, slots=True)
class Injection:
    """One thing that goes wrong; `seconds` is how long a freeze lasts."""

    fault: Fault
    seconds: float = 0.0


class Plan(Protocol):
    """Says what happens at a boundary, as it is reached."""

    def at(self, boundary: Boundary) -> Injection | None:
        """What goes wrong here, if anything."""
        ...

    @property
    def threaded(self) -> frozenset[str]:
        """Workers that need a thread of their own: two that stand still at once and thaw in any order."""
        ...


class NoFaults:
    """Everything works."""

    def at(self, boundary: Boundary) -> Injection | None:
        """Nothing, ever."""
        return None

    @property
    def threaded(self) -> frozenset[str]:
        """Nobody."""
        return frozenset()


@dataclass(slots=True)
class Scripted:
    """Faults at named boundaries, each once."""

    faults: Mapping[Boundary, Injection]

    def at(self, boundary: Boundary) -> Injection | None:
        """What the script says for this boundary."""
        return self.faults.get(boundary)

    @property
    def threaded(self) -> frozenset[str]:
        """Those whom the script holds, if there is more than one, or if one was called by another's duplicate."""
        held = frozenset(where.worker for where, one in self.faults.items() if one.fault is Fault.FREEZE)
        nested = any(one.fault is Fault.DUPLICATE_DELIVERY for one in self.faults.values())
        return held if nested or len(held) > 1 else frozenset()

    def __str__(self) -> str:
        return ", ".join(f"{one.fault} at {where}" for where, one in self.faults.items()) or "no fault"


@dataclass(slots=True)
class Worker:
    """Somebody who calls ports. A dead one never calls again; `revive` is a new process of the same name."""

    name: str
    dead: bool = False
    frozen: bool = False
    _calls: dict[tuple[str, str], int] = field(default_factory=dict)
    _outages: dict[str, int] = field(default_factory=dict)

    def revive(self) -> None:
        """A fresh process: alive, no outage remembered; its calls are counted on."""
        self.dead = self.frozen = False
        self._outages.clear()

    def next_call(self, port: str, method: str) -> Boundary:
        """Count a call."""
        of = (port, method)
        nth = self._calls[of] = self._calls.get(of, 0) + 1
        return Boundary(self.name, port, method, nth)

    def begin_outage(self, port: str) -> None:
        """The next calls to this port fail, too."""
        self._outages[port] = OUTAGE_CALLS - 1

    def in_outage(self, port: str) -> bool:
        """True while an outage of this port lasts; asking uses up one call."""
        if not self._outages:
            return False
        left = self._outages.get(port, 0)
        if left > 0:
            self._outages[port] = left - 1
        return left > 0

    def die(self) -> NoReturn:
        """End here."""
        self.dead = True
        raise Crashed(self.name)


class Faults:
    """The machinery: wraps ports, keeps the trace, and carries out what the plan says."""

    def __init__(self, plan: Plan | None = None) -> None:
        self.plan: Plan = plan or NoFaults()
        self.trace: list[Boundary] = []
        self.fired: list[tuple[Boundary, Fault]] = []
        self.on_freeze: Callable[[Worker, float], None] = _nobody_to_hand_over_to
        """Set by the scheduler: blocks the worker until it resumes."""
        self.on_duplicate: Callable[[Worker], None] = _nobody_to_hand_over_to
        """Set by the scheduler: lets a second worker have the message now."""
        self.on_fault: Callable[[Boundary, Fault], None] | None = None
        """Told of every fault as it happens."""

    def wrap(self, target: T, port: str, worker: Worker) -> T:
        """`target` as `worker` reaches it: the same methods, each a boundary."""
        return cast(T, PortProxy(target, port, worker, self))

    def call(
        self,
        worker: Worker,
        port: str,
        method: str,
        apply: Callable[..., Any],
        /,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """One call of one worker, with whatever goes wrong there."""
        if worker.dead:
            raise Crashed(worker.name)
        boundary = worker.next_call(port, method)
        self.trace.append(boundary)
        injection = self.plan.at(boundary)
        if injection is None:
            if worker.in_outage(port):
                return _refuse(port, method)
            result = apply(*args, **kwargs)
            return _read_out(result) if type(result) is GeneratorType else result
        self.fired.append((boundary, injection.fault))
        if self.on_fault is not None:
            self.on_fault(boundary, injection.fault)
        return self._go_wrong(worker, boundary, injection, lambda: _read_out(apply(*args, **kwargs)))

    def _go_wrong(self, worker: Worker, boundary: Boundary, injection: Injection, bound: Callable[[], Any]) -> Any:
        match injection.fault:
            case Fault.CRASH_BEFORE:
                worker.die()
            case Fault.CRASH_AFTER:
                with suppress(PenstockError):
                    bound()
                worker.die()
            case Fault.APPLIED_BUT_ERROR:
                bound()
                return _lose_answer(boundary.port, boundary.method)
            case Fault.THROTTLE:
                return _refuse(boundary.port, boundary.method)
            case Fault.OUTAGE:
                worker.begin_outage(boundary.port)
                return _refuse(boundary.port, boundary.method)
            case Fault.FREEZE:
                self.on_freeze(worker, injection.seconds)
                if worker.dead:
                    raise Crashed(worker.name)
            case Fault.DUPLICATE_DELIVERY:
                self.on_duplicate(worker)
        return bound()


class PortProxy:
    """Stands in for a port object; what is not a method passes through."""

    def __init__(self, target: Any, port: str, worker: Worker, faults: Faults) -> None:
        self._target, self._port, self._worker, self._faults = target, port, worker, faults

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._target, name)
        if not callable(attribute):
            return attribute
        # Kept on the instance: the next call of this method does not come here again.
        announced = self.__dict__[name] = partial(self._faults.call, self._worker, self._port, name, attribute)
        return announced


def _read_out(result: Any) -> Any:
    # A page that is read lazily would be read outside the boundary.
    return iter(list(result)) if isinstance(result, GeneratorType) else result


def _lose_answer(port: str, method: str) -> Any:
    match method:
        case "perform":
            return Unknown("answer_lost")
        case "look_up":
            return NoAnswer("answer_lost")
        case "submit" | "find" | "progress":
            return NoWord("answer_lost")
    raise Unavailable(port, "answer_lost")


def _refuse(port: str, method: str) -> Any:
    match method:
        case "perform":
            return Refused("429", retry_after_s=1.0)
        case "look_up":
            return NoAnswer("429")
        case "submit":
            return NotTaken("429", limited=True)
        case "find" | "progress":
            return NoWord("429")
    raise Unavailable(port, "throttled")


def _nobody_to_hand_over_to(worker: Worker, *_: Any) -> None:
    raise RuntimeError(f"{worker.name} cannot be held up: no scheduler is attached")
