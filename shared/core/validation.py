"""Is it over, and was nothing done that must not be? What was gathered after an incident, judged check by check.

Each check passes, fails, or says what could not be looked at; nothing passes by being left out.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from shared.core.effects import BY_OPERATOR, Absent, EffectRow, EffectState, Found, Lookup
from shared.core.incident import Incident
from shared.core.job import Status
from shared.core.lane import LaneSpec
from shared.core.personal import Kind
from shared.core.validation_facts import Check, Facts, Looked, Verdict, Violation

LEEWAY = timedelta(minutes=30)
"""People stop a lane first and write it down afterwards: so far from an incident a change still belongs to it."""


def judged(facts: Facts) -> tuple[Check, ...]:
    """Every check, in the order of the report."""
    return (
        _documented(facts),
        _effects(facts),
        _tier_0(facts),
        _leaks(facts),
        _replays(facts),
        _states(facts),
    )


def overall(checks: Iterable[Check]) -> Verdict:
    """One violation fails the whole; one gap leaves it incomplete."""
    verdicts = {check.verdict for check in checks}
    return next((one for one in (Verdict.FAIL, Verdict.INCOMPLETE) if one in verdicts), Verdict.PASS)


# ------------------------------------------------------------------------------------------------ effects
def _effects(facts: Facts) -> Check:
    violations: list[Violation] = []
    counts: Counter[str] = Counter()
    open_: list[str] = []
    unanswered: Counter[str] = Counter()
    for one in facts.effects:
        counts[f"{one.row.name} {one.row.state.value}"] += 1
        if one.answer is not None:
            counts["looked up"] += 1
        found = _against_the_vendor(one, facts.at, facts.lane)
        if isinstance(found, Violation):
            violations.append(found)
        elif found == "open":
            open_.append(one.row.job_id)
        elif found:
            unanswered[found] += 1
    violations += _same_cause(facts.effects)
    unchecked = [f"{count:,} effects: {why}" for why, count in sorted(unanswered.items())]
    if open_:
        unchecked.append(
            f"{len(open_):,} effects have no known outcome, of jobs such as {open_[0]}: look at the vendor, then"
            " `penstock jobs resolve`"
        )
    if facts.sampled_from is not None:
        looked_up = f"{counts['looked up']:,} of {facts.sampled_from:,} effects were looked up at their vendor"
        unchecked.append(f"a sample: {looked_up}; leave --sample out to be sure")
    return Check(
        name="effects",
        title="Nothing was sent twice, nothing was lost",
        violations=tuple(violations),
        unchecked=(*unchecked, *facts.gaps.get("effects", ())),
        counts=dict(sorted(counts.items())),
    )


def _against_the_vendor(one: Looked, now: datetime, lane: LaneSpec) -> Violation | str | None:
    """A violation, why nobody can tell, or None when the row and the vendor's record agree."""
    row, answer = one.row, one.answer
    where = f"job {row.job_id}, effect {row.name}"
    if row.also_accepted:
        ids = ", ".join((row.vendor_id or "?", *row.also_accepted))
        return Violation(
            code="double_effect",
            where=where,
            what=f"{row.vendor} accepted it as {ids}",
            todo="undo all but one of them at the vendor",
        )
    if answer is None:
        return "open" if row.open and not _under_way(one, now, lane) else None
    match answer:
        case Found(times=times) if times is not None and times > 1:
            return Violation(
                code="double_effect",
                where=where,
                what=f"{row.vendor} accepted it {times} times",
                todo="undo one of them at the vendor; the idempotency key it was sent under is the effect's id",
            )
        case Found() if row.state is EffectState.REFUSED:
            return Violation(
                code="accepted_after_all",
                where=where,
                what=f"its row says that it was not sent, and {row.vendor} has it",
                todo="do not replay the job: a plan would send it again; dismiss it with `penstock dlq dismiss`",
            )
        case Found() if row.open and not _under_way(one, now, lane):
            return Violation(
                code="accepted_unrecorded",
                where=where,
                what=f"nobody recorded its outcome, and {row.vendor} has it",
                todo=f"`penstock jobs resolve {row.job_id} --accepted --evidence {answer.vendor_id or 'REF'}`",
            )
        case Found(vendor_id=vendor_id) if _another(row, vendor_id):
            return Violation(
                code="another_id",
                where=where,
                what=f"its row and {row.vendor} name different ids for it",
                todo="look at both at the vendor: one of them may be a second one",
            )
        case Found(times=None):
            return f"{row.vendor} does not say how often it accepted them"
        case Absent() if row.state is EffectState.ACCEPTED:
            if one.lookup is not Lookup.EXACT and now - row.intent_at < timedelta(seconds=lane.lookup_grace_s):
                return f"{row.vendor} may not know them yet: validate again later"
            return Violation(
                code="lost_effect",
                where=where,
                what=f"its row says accepted, and {row.vendor} does not know it",
                todo="the customer may have heard nothing: look at the conversation, and answer it by hand",
            )
        case Absent() if row.open and not _under_way(one, now, lane):
            return "open"
        case Found() | Absent():
            return None
    return f"{row.vendor} gave no answer ({answer.reason})"


def _under_way(one: Looked, now: datetime, lane: LaneSpec) -> bool:
    """A worker may be sending it right now, or the engine will look it up itself."""
    fresh = now - one.row.intent_at < timedelta(seconds=lane.claim_timeout_s + lane.lookup_grace_s)
    return fresh and not one.job.status.ended


def _another(row: EffectRow, vendor_id: str) -> bool:
    evidence = (row.reason or "").startswith(BY_OPERATOR)
    return bool(row.vendor_id and vendor_id and row.vendor_id != vendor_id and not evidence)


def _same_cause(effects: Sequence[Looked]) -> list[Violation]:
    """Two jobs of one cause, by two tasks, that did the same: each was sent once, and the customer saw it twice."""
    made: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for one in effects:
        if one.row.state is EffectState.ACCEPTED:
            made[one.job.tenant, one.job.key, one.row.name].add(one.row.job_id)
    return [
        Violation(
            code="double_effect",
            where=f"jobs {', '.join(sorted(jobs))}, effect {name}",
            what=f"one cause, and {len(jobs)} jobs did the same for it",
            todo="undo one of them at the vendor, and enqueue each cause for one task only",
        )
        for (_, _, name), jobs in sorted(made.items())
        if len(jobs) > 1
    ]


# ------------------------------------------------------------------------------------------------- Tier 0
def answers(row: EffectRow) -> bool:
    """True for an effect that a customer sees, or may have seen: begun is enough, unless the vendor refused it."""
    return row.state is not EffectState.REFUSED and row.customer_visible


def _tier_0(facts: Facts) -> Check:
    tier_0 = frozenset() if facts.lane.routing is None else frozenset(facts.lane.routing.tier_0)
    violations: list[Violation] = []
    counts: Counter[str] = Counter({"Tier 0 jobs": 0, "answered jobs": 0})
    routed = {job.job_id: job.routing_decision or {} for job in facts.jobs}
    counts["Tier 0 jobs"] = sum(_is_tier_0(route, tier_0) for route in routed.values())
    unknown: list[str] = []
    for job_id, rows in _by_job(one.row for one in facts.effects if answers(one.row)).items():
        counts["answered jobs"] += 1
        route = routed[job_id]
        if not isinstance(route.get("tier_0"), bool) or not route.get("intent"):
            unknown.append(job_id)
        elif _is_tier_0(route, tier_0):
            violations.append(
                Violation(
                    code="tier_0_answered",
                    where=f"job {job_id}, effect {', '.join(row.name for row in rows)}",
                    what=f"its intent is {route['intent']}, which only people answer",
                    todo="tell the team what the customer was sent; close the lane until it is clear why",
                )
            )
    unchecked = list(facts.gaps.get("tier_0", ()))
    if unknown:
        unchecked.append(f"{len(unknown):,} answered jobs keep no route, such as {unknown[0]}: nobody can tell")
    return Check(
        name="tier_0",
        title="Nothing was answered that only people answer",
        violations=tuple(violations),
        unchecked=tuple(unchecked),
        counts=dict(counts),
    )


def _is_tier_0(route: Mapping[str, object], tier_0: frozenset[str]) -> bool:
    """As its row says, or as the list says now: an intent that was moved into Tier 0 counts, too."""
    return route.get("tier_0") is True or route.get("intent") in tier_0


def _by_job(rows: Iterable[EffectRow]) -> dict[str, list[EffectRow]]:
    found: dict[str, list[EffectRow]] = defaultdict(list)
    for row in rows:
        found[row.job_id].append(row)
    return found


# --------------------------------------------------------------------------------------------------- logs
def _leaks(facts: Facts) -> Check:
    violations = [
        Violation(
            code="personal_data",
            where=f"{one.group}, stream {one.stream or '?'}, {one.at:%Y-%m-%d %H:%M:%S.%f} UTC, character {one.offset}",
            what=f"the shape of a {one.kind.value}" if one.kind is not Kind.CANARY else "a canary",
            todo="find the line's writer and mend it; delete the stream, or let its retention pass",
        )
        for one in facts.seen
    ]
    return Check(
        name="leaks",
        title="No personal data in the logs",
        violations=tuple(violations),
        unchecked=facts.gaps.get("leaks", ()),
        counts={"lines read": sum(facts.lines.values()), "log groups": len(facts.lines)},
        notes=(f"looked for the shapes of {', '.join(Kind)}; a canary is seen only if one was planted",),
    )


# ----------------------------------------------------------------------------------------------- incident
def _documented(facts: Facts) -> Check:
    lane = facts.lane.name
    violations: list[Violation] = []
    if not facts.incidents:
        violations.append(
            Violation(
                code="no_incident",
                where=f"lane {lane}",
                what="no incident is on record for this time",
                todo=f'write it down: `penstock incident open {lane} --why "…"`, then note and close it',
            )
        )
    for incident in facts.incidents:
        where = f"incident {incident.incident_id}"
        if incident.open:
            violations.append(
                Violation(
                    code="incident_open",
                    where=where,
                    what=f"opened by {incident.opened_by} and not closed",
                    todo=f'`penstock incident close {lane} --cause "…"`',
                )
            )
        elif not (incident.cause or "").strip():
            violations.append(Violation(code="no_root_cause", where=where, what="closed without a root cause"))
    for change in facts.changes:
        where = f"{change.subject}, {change.at:%Y-%m-%d %H:%M:%S} UTC"
        if not change.by or not change.why:
            missing = " and ".join(word for word, said in (("who", change.by), ("why", change.why)) if not said)
            violations.append(Violation(code="unexplained", where=where, what=f"{change.what}: nobody knows {missing}"))
        if not any(_covers(incident, change.at) for incident in facts.incidents):
            violations.append(
                Violation(
                    code="outside_incident",
                    where=where,
                    what=f"{change.what} by {change.by or 'nobody known'}, in no incident",
                    todo=f'say in an incident what it was for: `penstock incident open {lane} --why "…"`',
                )
            )
    return Check(
        name="documented",
        title="The incident is written down, with its cause and every change by hand",
        violations=tuple(violations),
        unchecked=facts.gaps.get("documented", ()),
        counts={"incidents": len(facts.incidents), "changes by hand": len(facts.changes)},
    )


def _covers(incident: Incident, at: datetime) -> bool:
    begun = incident.opened_at - LEEWAY <= at
    return begun and (incident.closed_at is None or at <= incident.closed_at + LEEWAY)


# ------------------------------------------------------------------------------------------------ replays
def _replays(facts: Facts) -> Check:
    violations: list[Violation] = []
    unchecked = list(facts.gaps.get("replays", ()))
    for plan_id, replay in facts.replays.items():
        plan = replay.plan
        if plan.started_at is None:
            continue
        alone = plan.requester == plan.approver and plan.count > facts.lane.one_person_redrive
        if plan.approver is None or alone:
            what = "nobody approved it" if plan.approver is None else f"{plan.requester} approved their own plan"
            violations.append(Violation(code="unapproved_plan", where=f"plan {plan_id}", what=what))
        if replay.progress.ended is None:
            unchecked.append(f"plan {plan_id} still runs: validate again when it has ended")
    replayed = [job for job in facts.jobs if job.replay_count > 0]
    for job in replayed:
        replay_of = facts.replays.get(job.plan_id or "")
        if job.plan_id is None or replay_of is None:
            what = "it was replayed, and no plan says so" if job.plan_id is None else f"plan {job.plan_id} is not there"
        elif replay_of.plan.started_at is None or job.job_id not in replay_of.manifest:
            what = f"plan {job.plan_id} never released it"
        else:
            continue
        violations.append(
            Violation(
                code="replayed_without_plan",
                where=f"job {job.job_id}",
                what=what,
                todo=f"look who did it: `penstock jobs show {job.job_id}`",
            )
        )
    return Check(
        name="replays",
        title="Everything that was replayed was planned and approved",
        violations=tuple(violations),
        unchecked=tuple(unchecked),
        counts={"plans": len(facts.replays), "replayed jobs": len(replayed)},
    )


# ------------------------------------------------------------------------------------------------- states
def _states(facts: Facts) -> Check:
    states = Counter(job.status.value for job in facts.jobs)
    waiting = sum(states[status] for status in Status if not status.ended)
    notes = [f"{waiting:,} jobs have not ended yet"] if waiting else []
    if states[Status.FAILED]:
        notes.append(f"{states[Status.FAILED]:,} jobs stay failed: `penstock dlq list {facts.lane.name}`")
    return Check(
        name="states",
        title="Every job is in one state, and none is stuck",
        violations=tuple(
            Violation(code="stuck", where=f"job {job_id}", what=what, todo=todo) for job_id, what, todo in facts.faults
        ),
        unchecked=facts.gaps.get("states", ()),
        counts={"jobs": len(facts.jobs), **dict(sorted(states.items()))},
        notes=tuple(notes),
    )
