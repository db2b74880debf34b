"""Start a run: a person asks for one of a lane's scheduled runs out of its turn. Who and why are kept first."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.core.errors import BadInput
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, History
from shared.usecases.steer import note, reason_of

ASKED = "run_asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What became of a request."""

    request_id: str
    ran: bool
    """False: the run before is still going, and nothing was done."""
    run_id: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


def subject_of(schedule: str) -> str:
    """Under which name the history keeps who asked for runs of a schedule."""
    return f"run/{schedule}"


def role_of(lane: LaneSpec, given: str) -> str:
    """One of the lane's scheduled functions, by its name or by the last part of it: `submitter`."""
    if not lane.runs:
        raise BadInput("lane", f"{lane.name} has no runs: its jobs start as they come")
    found = [role for role in lane.runs if given in (role, role.rpartition("_")[2])]
    if len(found) != 1:
        raise BadInput("role", f"must be one of {', '.join(lane.runs)}")
    return found[0]


def start_run(
    schedule: str, *, by: str, why: str, invoke: Callable[[str], Mapping[str, Any]], history: History, clock: Clock
) -> Started:
    """Ask for one run, and wait for it. `invoke` starts the function with the id of the request and tells its answer.

    The history is written before anything starts: a run that nobody asked for cannot be somebody's.
    """
    reason, request_id = reason_of(why), uuid.uuid4().hex
    note(subject_of(schedule), ASKED, by, {"why": reason, "request": request_id}, history, clock)
    answer = invoke(request_id)
    ran, counts = answer.get("ran"), answer.get("counts")
    if not isinstance(ran, bool) or not isinstance(counts, Mapping):
        raise BadInput("runs", f"{schedule} gave an answer of no known shape: look at it with `penstock runs list`")
    return Started(request_id=request_id, ran=ran, run_id=str(answer.get("run_id", "")), counts=dict(counts))
