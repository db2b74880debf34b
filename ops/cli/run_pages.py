"""What is shown of a scheduled run: its counts, who asked for it, and the batches it began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ops.cli.show import NOTHING, Column, ago, pairs, plain, span, styled, table
from shared.core.moment import iso
from shared.usecases.run_slot import BY_HAND

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from shared.core.batch import Batch
    from shared.core.history import HistoryEvent
    from shared.core.schedule import RunRecord

UNFINISHED_S = 900
"""No function runs longer than this: a run that never closed has died."""
LIMITS = ("rate_limited", "capacity_errors", "budget_empty")
"""Counts that say a provider, or its account, would not take more."""


def document(run: RunRecord, lane: str | None = None) -> dict[str, Any]:
    """A run, for programs."""
    return {
        "schedule": run.schedule,
        "slot": run.slot,
        "run_id": run.run_id,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "counts": counts(run, lane),
    }


def counts(run: RunRecord, lane: str | None) -> Mapping[str, int]:
    """What a run counted; of one lane only when it is given, under the lane's own names then."""
    if lane is None:
        return run.counts
    prefix = f"{lane}."
    return {name.removeprefix(prefix): count for name, count in run.counts.items() if name.startswith(prefix)}


def took(run: RunRecord, now: datetime) -> str:
    """How long a run took, or that it has not ended."""
    if run.finished_at is not None:
        return span((run.finished_at - run.started_at).total_seconds())
    return "running" if (now - run.started_at).total_seconds() < UNFINISHED_S else "never ended"


def said(counted: Mapping[str, int]) -> str:
    """Counts on one line; what is zero is left out, and so is what is said by model."""
    shown = {name: count for name, count in counted.items() if "/" not in name}
    return "  ".join(f"{name} {count:,}" for name, count in sorted(shown.items()) if count) or NOTHING


def by_model(counted: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """`provider/model` → what was counted for it. A model's name may hold a point, a count's name does not."""
    found: dict[str, dict[str, int]] = {}
    for name, count in sorted(counted.items()):
        model, _, what = name.rpartition(".")
        if "/" in model:
            found.setdefault(model, {})[what] = count
    return found


def whole(run: RunRecord, asked_for: HistoryEvent | None, batches: Sequence[Batch]) -> dict[str, Any]:
    """One run with everything, for programs."""
    return {
        **document(run),
        "counts": {name: count for name, count in run.counts.items() if "/" not in name},
        "by_model": by_model(run.counts),
        "limits": {name: run.counts.get(name, 0) for name in LIMITS},
        "manual": _manual(run),
        "by": None if asked_for is None else asked_for.by,
        "why": None if asked_for is None else asked_for.detail.get("why"),
        "batches": [{**plain(batch), "lane": batch.lane} for batch in batches],
    }


def page(
    run: RunRecord, asked_for: HistoryEvent | None, batches: Sequence[Batch], now: datetime
) -> list[RenderableType]:
    """One run with everything, for people."""
    fields: dict[str, str | Text] = {
        "run": styled(run.run_id, "bold"),
        "schedule": run.schedule,
        "slot": slot(run),
        "started": f"{iso(run.started_at)}  {ago(run.started_at, now)}",
        "finished": NOTHING if run.finished_at is None else iso(run.finished_at),
        "took": took(run, now),
        "started by": _who(run, asked_for),
    }
    if asked_for is not None:
        fields["why"] = str(asked_for.detail.get("why", NOTHING))
    limits = {name: run.counts[name] for name in LIMITS if run.counts.get(name)}
    fields["limits"] = styled(said(limits), "yellow") if limits else "no limit said no"
    parts: list[RenderableType] = [pairs(fields), ""]
    rows = [(name, f"{count:,}") for name, count in sorted(run.counts.items()) if "/" not in name]
    if rows:
        parts.append(table(["counted", Column(header="", right=True)], rows))
    else:
        parts.append("Nothing is counted (yet).")
    models = by_model(run.counts)
    if models:
        names = sorted({name for of in models.values() for name in of})
        columns: list[str | Column] = ["provider/model", *(Column(header=name, right=True) for name in names)]
        rows_of = [(model, *(f"{of.get(name, 0):,}" for name in names)) for model, of in models.items()]
        parts += ["", table(columns, rows_of)]
    if batches:
        parts += ["", batch_table(batches, now)]
    return parts


def batch_table(batches: Sequence[Batch], now: datetime) -> RenderableType:
    """Batches, a line each."""
    columns: list[str | Column] = [
        Column(header="batch", whole=True),
        *("state", "provider/model", "languages", "at the provider"),
        *(Column(header=name, right=True) for name in ("jobs", "tokens")),
        *("begun", "ended as"),
    ]
    rows = [
        (
            batch.tag,
            batch.state.value,
            f"{batch.group.provider}/{batch.group.model}",
            batch.group.locales,
            batch.provider_id or NOTHING,
            f"{batch.count:,}",
            f"{batch.tokens:,}",
            ago(batch.intent_at, now),
            batch.ending or NOTHING,
        )
        for batch in batches
    ]
    return table(columns, rows)


def slot(run: RunRecord) -> str:
    """The time of a run, and whether a person started it."""
    at, by_hand, _ = run.slot.partition(BY_HAND)
    return f"{at} by hand" if by_hand else at


def request_of(run: RunRecord) -> str | None:
    """The id of the request that a person started the run with; None for one that its schedule started."""
    return run.slot.partition(BY_HAND)[2] or None


def _manual(run: RunRecord) -> bool:
    return request_of(run) is not None


def _who(run: RunRecord, asked_for: HistoryEvent | None) -> str:
    if not _manual(run):
        return "its schedule"
    # The run keeps the id of its request; who asked stands in the history, which nobody rewrites.
    return "a person, of whom the history does not tell" if asked_for is None else asked_for.by
