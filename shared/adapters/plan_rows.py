"""How redrive plans, their manifests and steps, and resolutions are written as rows, and read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from shared.adapters import attributes
from shared.adapters.attributes import Fields, Item
from shared.adapters.rows import key_of
from shared.contract import table
from shared.core.plan import Ending, Entry, Fate, Finding, Plan, PlanState, Resolution, Step

_MOST = 10**9
"""A count of jobs, letters, looks or steps beyond it, or below nought, is a row that somebody spoiled."""
PART = 1000
"""Jobs in one part of a manifest: about 80 KB, far below what an item may hold."""
_TEXTS = ("lane", "requester", "cause", "hash")
_OPTIONAL_TEXTS = ("approver", "started_by", "aborted_by", "abort_why")
_TIMES = ("created_at", "valid_until")
_OPTIONAL_TIMES = ("approved_at", "started_at", "aborted_at")


def plan_key(plan_id: str, sk: str = table.PLAN_SK) -> Item:
    """Where a plan, a part of its manifest or a step stands."""
    return {table.PK: attributes.text(table.plan_pk(plan_id)), table.SK: attributes.text(sk)}


def plan_item(plan: Plan) -> Item:
    """A plan's own row; it never expires."""
    item: Item = {
        **plan_key(plan.plan_id),
        "plan_id": attributes.text(plan.plan_id),
        "state": attributes.text(plan.state.value),
        "count": attributes.whole(plan.count),
    }
    if plan.rate is not None:
        item["rate"] = attributes.whole(plan.rate)
    for name in (*_TEXTS, *_OPTIONAL_TEXTS):
        if value := getattr(plan, name):
            item[name] = attributes.text(value)
    for name in (*_TIMES, *_OPTIONAL_TIMES):
        if (at := getattr(plan, name)) is not None:
            item[name] = attributes.time(at)
    for name in ("chosen", "estimate"):
        if told := getattr(plan, name):
            item[name] = attributes.from_json(told, name)
    return item


def plan_from_item(item: Item) -> Plan:
    """The plan a row says. Raises UnreadableRow."""
    fields = Fields(key_of(item), item)
    state = fields.text("state")
    if state not in tuple(PlanState):
        fields.unreadable("state", "is not one this version knows")
    told: dict[str, Any] = {name: fields.text(name) for name in _TEXTS}
    told |= {name: fields.time(name) for name in _TIMES}
    told |= {name: fields.text_or_none(name) for name in _OPTIONAL_TEXTS}
    told |= {name: fields.time_or_none(name) for name in _OPTIONAL_TIMES}
    return Plan(
        plan_id=fields.text("plan_id"),
        state=PlanState(state),
        count=fields.whole("count", least=0, most=_MOST),
        rate=fields.whole("rate", least=1, most=_MOST) if "rate" in item else None,
        chosen=fields.mapping("chosen") or {},
        estimate=fields.mapping("estimate") or {},
        **told,
    )


def manifest_items(plan_id: str, manifest: Sequence[Entry]) -> Iterator[Item]:
    """The parts of a manifest."""
    for number, start in enumerate(range(0, len(manifest), PART)):
        lines = [f"{one.job_id}|{one.fence}|{one.category}|{one.signature}" for one in manifest[start : start + PART]]
        yield {
            **plan_key(plan_id, table.manifest_sk(number)),
            "jobs": {"L": [attributes.text(line) for line in lines]},
        }


def manifest_from_items(items: Iterable[Item]) -> tuple[Entry, ...]:
    """The whole manifest. Raises UnreadableRow."""
    found: list[Entry] = []
    for item in items:
        fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
        for line in fields.texts("jobs"):
            parts = line.split("|", 3)
            if len(parts) != 4 or not parts[1].isdecimal():
                fields.unreadable("jobs", "holds a line that cannot be read")
            found.append(Entry(job_id=parts[0], fence=int(parts[1]), category=parts[2], signature=parts[3]))
    return tuple(found)


def step_item(plan_id: str, step: Step) -> Item:
    """One step."""
    item: Item = {
        **plan_key(plan_id, table.step_sk(step.number)),
        "number": attributes.whole(step.number),
        "at": attributes.time(step.at),
        "tried": attributes.whole(step.tried),
        "letters": attributes.whole(step.letters),
        "quiet": attributes.whole(step.quiet),
    }
    if step.fates:
        item["fates"] = {"M": {job_id: attributes.text(fate.value) for job_id, fate in step.fates.items()}}
    for name in ("waits_for", "stopping"):
        if text := getattr(step, name):
            item[name] = attributes.text(text)
    if step.begun:
        item["begun"] = {"BOOL": True}
    if step.ending is not None:
        item["ending"] = attributes.text(step.ending.value)
    return item


def step_from_item(item: Item) -> Step:
    """The step a row says. Raises UnreadableRow."""
    fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
    fates, ending = fields.mapping("fates") or {}, fields.text_or_none("ending")
    if not all(fate in tuple(Fate) for fate in fates.values()) or (ending or Ending.FINISHED) not in tuple(Ending):
        fields.unreadable("fates", "hold an end this version does not know")
    return Step(
        number=fields.whole("number", least=0, most=_MOST),
        at=fields.time("at"),
        tried=fields.whole("tried", least=0, most=_MOST),
        fates={job_id: Fate(fate) for job_id, fate in fates.items()},
        letters=fields.whole("letters", 0, least=0, most=_MOST),
        quiet=fields.whole("quiet", 0, least=0, most=_MOST),
        waits_for=fields.text_or_none("waits_for") or "",
        begun=fields.flag("begun") if "begun" in item else False,
        stopping=fields.text_or_none("stopping") or "",
        ending=None if ending is None else Ending(ending),
    )


def lane_key(lane: str) -> Item:
    """Where it stands which plan has a lane."""
    return {table.PK: attributes.text(table.redrive_pk(lane)), table.SK: attributes.text(table.REDRIVE_SK)}


def lane_item(lane: str, plan_id: str) -> Item:
    """That a plan has it."""
    return {**lane_key(lane), "plan_id": attributes.text(plan_id)}


def holder_from_item(item: Item) -> str:
    """The plan that a lane's row names. Raises UnreadableRow."""
    return Fields(key_of(item), item).text("plan_id")


def resolution_key(job_id: str, fence: int, only: str | None = None) -> Item:
    """Where a resolution stands."""
    return {
        table.PK: attributes.text(table.resolution_pk(job_id)),
        table.SK: attributes.text(table.resolution_sk(fence, only)),
    }


def resolution_item(resolution: Resolution) -> Item:
    """A resolution's row; it never expires."""
    item: Item = {
        **resolution_key(resolution.job_id, resolution.fence, resolution.only),
        "job_id": attributes.text(resolution.job_id),
        "fence": attributes.whole(resolution.fence),
        # One job: what a stage lets one person do for so few, it lets one do here, too.
        "count": attributes.whole(1),
        "finding": attributes.text(resolution.finding.value),
        "evidence": attributes.text(resolution.evidence),
        "effects": {"L": [attributes.text(name) for name in resolution.effects]},
        "more_to_do": {"BOOL": resolution.more_to_do},
        "hash": attributes.text(resolution.hash),
        "requester": attributes.text(resolution.requester),
        "requested_at": attributes.time(resolution.requested_at),
        "valid_until": attributes.time(resolution.valid_until),
    }
    if resolution.only is not None:
        item["only"] = attributes.text(resolution.only)
    if resolution.confirmer is not None:
        item["confirmer"] = attributes.text(resolution.confirmer)
    if resolution.confirmed_at is not None:
        item["confirmed_at"] = attributes.time(resolution.confirmed_at)
    return item


def resolution_from_item(item: Item) -> Resolution:
    """The resolution a row says. Raises UnreadableRow."""
    fields = Fields(f"{key_of(item)}/{key_of(item, table.SK)}", item)
    finding = fields.text("finding")
    if finding not in tuple(Finding):
        fields.unreadable("finding", "is not one this version knows")
    return Resolution(
        job_id=fields.text("job_id"),
        fence=fields.whole("fence"),
        finding=Finding(finding),
        evidence=fields.text("evidence"),
        effects=tuple(fields.texts("effects")),
        more_to_do=fields.flag("more_to_do"),
        only=fields.text_or_none("only"),
        requester=fields.text("requester"),
        requested_at=fields.time("requested_at"),
        valid_until=fields.time("valid_until"),
        confirmer=fields.text_or_none("confirmer"),
        confirmed_at=fields.time_or_none("confirmed_at"),
    )
