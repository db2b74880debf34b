"""Reset the switches: begin their row anew, with all halted, when it cannot be read."""

from __future__ import annotations

from shared.core.errors import BadInput, UnreadableRow
from shared.core.ports import Clock, ControlStore, History
from shared.core.switches import Level, Switch
from shared.usecases.steer import note, reason_of


def reset_switches(*, by: str, why: str, control: ControlStore, history: History, clock: Clock) -> Switch:
    """The halt that stands there afterwards, alone. What was closed is gone from the row and stays closed under it; who
    closed what is in each scope's history. A row that can be read is not thrown away."""
    switch = Switch(scope="all", level=Level.HALT, by=by, why=reason_of(why), at=clock.now())
    try:
        control.switches()
    except UnreadableRow as exc:
        problem = exc.problem
    else:
        raise BadInput("reset", "is for switches that cannot be read, and these can be read: set each by its scope")
    control.reset_switches(switch)
    detail = {"level": switch.level.word, "automation_enabled": True, "why": switch.why}
    note("switch/all", "switch", by, {**detail, "reset": True, "problem": problem}, history, clock)
    return switch
