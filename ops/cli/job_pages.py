"""What is shown of one job: its page, its history and its explanation. None of it is text a customer wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ops.cli.show import NOTHING, Column, ago, pairs, plain, status, styled, table
from shared.core.errors import BadInput, UnreadableRow
from shared.core.job import KEPT_MOVES, Job, Status
from shared.core.moment import iso

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from shared.core.effects import EffectRow
    from shared.core.history import HistoryEvent
    from shared.usecases.explain import Explanation

_APART = ("job_id", "status", "moves", "routing_decision", "facts", "withheld")
"""Fields that are not simply shown by their name."""


def reason(job: Job) -> str:
    """Why a job is as it is, in a few words."""
    if job.status is Status.FAILED:
        return f"{job.category or 'failed'}: {job.last_error or NOTHING}"
    if job.status is Status.COMPLETED:
        return job.result or NOTHING
    if job.status is Status.PROCESSING:
        return f"claimed by {job.claimed_by or NOTHING}"
    return job.blocked_by or (job.moves[-1].reason if job.moves else NOTHING)


def listing(jobs: Sequence[Job], now: datetime) -> Table:
    """Many jobs, a line each. What is the same for all of them is said once, above."""
    same = [name for name in ("lane", "task", "tenant") if len({getattr(job, name) for job in jobs}) == 1]
    differ = [name for name in ("lane", "task", "tenant") if name not in same]
    shown = ("job", *differ, "status", "changed", "")
    columns = [Column(header=name, whole=name not in ("tenant", "")) for name in shown]
    rows: list[tuple[str | Text, ...]] = [
        (
            job.job_id,
            *(str(getattr(job, name)) for name in differ),
            status(job.status),
            ago(job.updated_at, now),
            reason(job),
        )
        for job in jobs
    ]
    return table(columns, rows, " · ".join(f"{name} {getattr(jobs[0], name)}" for name in same))


def unreadable(row: UnreadableRow) -> dict[str, Any]:
    """A row that cannot be read, for programs."""
    return {"unreadable": row.key, "problem": row.problem}


def bulk_runs(job: Job) -> list[str]:
    """The bulk runs that moved a job: their event is kept once, not in each job's history."""
    marked = (move.reason.partition(":")[2] for move in job.moves)
    return list(dict.fromkeys(name for name in marked if name.startswith("bulk/")))


def timeline(job: Job, events: Sequence[HistoryEvent]) -> list[dict[str, Any]]:
    """Moves and people's decisions together, oldest first."""
    moves = [{"at": move.at, "what": move.to.value, "reason": move.reason, "by": None} for move in job.moves]
    decided = [{"at": event.at, "what": event.kind, "reason": _said(event.detail), "by": event.by} for event in events]
    return sorted([*moves, *decided], key=lambda entry: entry["at"])


def page(job: Job, effects: Sequence[EffectRow], events: Sequence[HistoryEvent], now: datetime) -> list[RenderableType]:
    """Everything about a job."""
    parts: list[RenderableType] = [pairs(_fields(job, now)), ""]
    if effects:
        rows = [
            (
                row.name,
                row.vendor,
                styled(row.state.value, "yellow" if row.open else ""),
                ago(row.intent_at, now),
                _answer(row),
                row.effect_id,
            )
            for row in effects
        ]
        key = Column(header="key at the vendor", whole=True)
        parts += [table(["effect", "vendor", "state", "intent", "answer", key], rows), ""]
    else:
        parts += [styled("No effect was begun: nothing was sent.", "dim"), ""]
    rows_of_history = [
        (iso(entry["at"]), ago(entry["at"], now), entry["what"], entry["reason"], entry["by"] or NOTHING)
        for entry in timeline(job, events)
    ]
    parts.append(table(["time", "", "what", "reason", "by"], rows_of_history))
    if len(job.moves) >= KEPT_MOVES:
        parts.append(styled(f"The row keeps its last {KEPT_MOVES} moves.", "dim"))
    return parts


def _answer(row: EffectRow) -> str:
    """What the vendor said of an effect, and everything that speaks against it."""
    if not row.contradicted:
        return row.vendor_id or row.reason or NOTHING
    again = f", also accepted as {', '.join(row.also_accepted)}" if row.also_accepted else ""
    before = f", before: {row.reason}" if row.reason else ""
    return f"{row.vendor_id or NOTHING}{again}{before}"


def explained(explanation: Explanation) -> dict[str, Any]:
    """An explanation, for programs."""
    blocked = explanation.verdict.blocked
    return {
        "job_id": explanation.job.job_id,
        "status": explanation.job.status,
        "standing": explanation.standing,
        "since": explanation.since,
        "sentence": explanation.sentence,
        "earliest": explanation.earliest,
        "runs_now": explanation.runs_now,
        "waits_for_run": None if explanation.turn is None else explanation.turn.schedule,
        "blocked_by": None if blocked is None else blocked.gate,
        "trouble": None if explanation.trouble is None else explanation.trouble.sentence,
        "gates": [plain(gate) for gate in explanation.verdict.gates],
    }


def explanation_page(explanation: Explanation, now: datetime) -> list[RenderableType]:
    """An explanation, for people: where it stands, then gate by gate."""
    job = explanation.job
    parts: list[RenderableType] = [
        pairs(
            {
                "job": job.job_id,
                "status": status(job.status),
                "standing": explanation.sentence,
                "since": f"{iso(explanation.since)}  {ago(explanation.since, now)}",
                "can run": _earliest(explanation, now),
            }
        ),
        "",
    ]
    if job.status.ended:
        parts.append(styled("It has ended; this is what the gates say to a job like it now:", "dim"))
    rows = [
        (
            gate.gate,
            styled("open", "green") if gate.open else styled("closed", "red"),
            gate.key or NOTHING,
            NOTHING if gate.open else ("unknown when" if gate.retry_at is None else ago(gate.retry_at, now)),
        )
        for gate in explanation.verdict.gates
    ]
    parts.append(table(["gate", "verdict", "key", "opens"], rows))
    if explanation.trouble is not None:
        parts += ["", styled(f"Beside the gates: {explanation.trouble.sentence}.", "red")]
    closed = [gate for gate in explanation.verdict.gates if gate.unblock]
    # Below the table, each on its own line: a command is there to be copied whole.
    return [*parts, *([""] if closed else []), *(f"{gate.gate} opens by: {gate.unblock}" for gate in closed)]


def _earliest(explanation: Explanation, now: datetime) -> str | Text:
    if explanation.job.status.ended:
        return styled("it has ended", "dim")
    if explanation.job.status is not Status.QUEUED:
        return styled("it runs", "green")
    if explanation.earliest is None:
        stopped = explanation.verdict.runs and explanation.trouble is not None
        return styled("not before its workers are fed" if stopped else "not before a closed gate opens", "yellow")
    if explanation.earliest <= now:
        return styled("now", "green")
    return f"{iso(explanation.earliest)}  {ago(explanation.earliest, now)}, at the earliest"


def _fields(job: Job, now: datetime) -> dict[str, str | Text]:
    shown: dict[str, str | Text] = {"job": job.job_id, "status": status(job.status)}
    for name, value in plain(job).items():
        if name in _APART or value in (None, "") or (name == "replay_count" and not value):
            continue
        moment = getattr(job, name)
        shown[name] = f"{value}  {ago(moment, now)}" if isinstance(moment, datetime) else str(value)
    shown["attempts"] = f"{job.attempt_count} of {job.max_attempts} used"
    shown.pop("attempt_count", None)
    shown.pop("max_attempts", None)
    if job.facts:
        shown["facts"] = _listed(job.facts)
    if job.routing_decision:
        shown["routing_decision"] = _listed(job.routing_decision)
    if job.withheld:
        shown["withheld"] = ", ".join(f"{what} by {scope}" for what, scope in job.withheld.items())
    return shown


def contract(job: Job) -> dict[str, Any]:
    """The job in the words of its lane's contract, for programs; nothing for lanes without one."""
    if job.facts is None:
        return {}
    from shared.core.rewrite import record

    try:
        return {"record": record(job)}
    except BadInput as exc:
        # Written by another version: the row is shown as it is.
        return {"record": {"unreadable": exc.field}}


def _listed(values: Mapping[str, Any]) -> str:
    """Closed words and ids, one a line."""
    lines = [
        f"{name} {' → '.join(map(str, value.values())) if isinstance(value, Mapping) else json.dumps(plain(value))}"
        for name, value in values.items()
        if value is not None
    ]
    return "\n".join(line.replace('"', "") for line in lines)


def _said(detail: Mapping[str, Any]) -> str:
    others = ", ".join(f"{name} {value}" for name, value in sorted(detail.items()) if name != "why")
    why = str(detail.get("why", ""))
    return f"{why} ({others})" if why and others else why or others
