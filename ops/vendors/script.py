"""Faults for exact tests: which request of which kind goes wrong, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ops.vendors.faults import Fault, fault_from_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptStep:
    """From the `nth` matching request on, the next `times` of them that no earlier step took.

    Requests are counted from the moment the script was set. Every part of a match that is given must
    hold; a step without any matches every request.
    """

    do: Fault
    path_contains: str = ""
    key: str = ""
    method: str = ""
    nth: int = 1
    times: int = 1

    def matches(self, *, method: str, path: str, key: str) -> bool:
        """True when the request is of the kind this step waits for."""
        return (
            self.path_contains in path
            and (not self.key or self.key == key)
            and (not self.method or self.method == method)
        )

    def to_json(self) -> dict[str, object]:
        """The step in the form that `step_from_json` reads."""
        match: dict[str, object] = {"nth": self.nth}
        for name in ("path_contains", "key", "method"):
            if getattr(self, name):
                match[name] = getattr(self, name)
        return {"match": match, "do": str(self.do), "times": self.times}


def step_from_json(step: object) -> ScriptStep:
    """Read one step. Raises ValueError with a sentence that says what is wrong."""
    if not isinstance(step, Mapping):
        raise ValueError("must be an object with match and do")
    if unknown := sorted(set(step) - {"match", "do", "times"}):
        raise ValueError(f"has no field {unknown[0]!r}; it has match, do and times")
    if "do" not in step:
        raise ValueError("needs do, the fault")
    match = step.get("match", {})
    if not isinstance(match, Mapping):
        raise ValueError("match must be an object")
    if unknown := sorted(set(match) - {"path_contains", "key", "method", "nth"}):
        raise ValueError(f"match has no field {unknown[0]!r}; it has path_contains, key, method and nth")
    try:
        do = fault_from_text(step["do"])
    except ValueError as exc:
        raise ValueError(f"do {exc}") from None
    return ScriptStep(
        do=do,
        path_contains=_text(match, "path_contains"),
        key=_text(match, "key"),
        method=_text(match, "method").upper(),
        nth=_positive(match, "nth"),
        times=_positive(step, "times"),
    )


class Script:
    """The steps still to come, with what they have counted. One request takes one step at most."""

    def __init__(self, steps: tuple[ScriptStep, ...] = ()) -> None:
        self._steps = steps
        self._counts = [0] * len(steps)
        self._left = [step.times for step in steps]

    def take(self, *, method: str, path: str, key: str) -> Fault | None:
        """Count this request on every step it matches, and consume the first step that is due."""
        due: int | None = None
        for place, step in enumerate(self._steps):
            if self._left[place] == 0 or not step.matches(method=method, path=path, key=key):
                continue
            self._counts[place] += 1
            if due is None and self._counts[place] >= step.nth:
                due = place
        if due is None:
            return None
        self._left[due] -= 1
        return self._steps[due].do

    def pending(self) -> tuple[ScriptStep, ...]:
        """The steps that have not been consumed, as they were set."""
        return tuple(step for step, left in zip(self._steps, self._left, strict=True) if left)


def _text(match: Mapping[str, object], name: str) -> str:
    value = match.get(name, "")
    if not isinstance(value, str):
        raise ValueError(f"match.{name} must be text")
    return value


def _positive(holder: Mapping[str, object], name: str) -> int:
    value = holder.get(name, 1)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1")
    return value
