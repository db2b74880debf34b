"""A validation as people read it: the incident first, then each verdict, then what was changed and replayed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from ops.report.timeline import Moment
from shared.core.incident import CLOSED
from shared.core.validation_facts import Check, Facts, Verdict

LISTED = 50
"""Lines of each list that people are shown; the JSON has all of them."""
PICTURE = "timeline.svg"
_BECAUSE = {
    Verdict.PASS: ": every check passes",
    Verdict.FAIL: ": at least one check fails",
    Verdict.INCOMPLETE: ": no check fails, and something could not be checked",
}


def page(
    facts: Facts, checks: Sequence[Check], verdict: Verdict, timeline: Sequence[Moment], *, stage: str, by: str
) -> str:
    """The whole page."""
    lines = [
        f"# Validation of lane {facts.lane.name}: {verdict.whole}",
        "",
        f"Stage {stage}, {_at(facts.since)} to {_at(facts.until)}. Made {_at(facts.at)} by {_cell(by)}.",
        f"The verdict is **{verdict.whole}**{_BECAUSE[verdict]}.",
        "",
        *_incidents(facts),
        "## Checks",
        "",
        *_table(["check", "verdict", "counted"], [(one.title, one.verdict.value, _counts(one)) for one in checks]),
        *(line for check in checks for line in _check(check)),
        "## Changed by hand",
        "",
        *_listed(
            ["UTC", "by", "what", "why"],
            [(_at(one.at), one.by, one.what, one.why) for one in facts.changes],
            "Nobody changed anything by hand.",
        ),
        "## Replayed",
        "",
        *_listed(
            ["plan", "cause", "asked by", "approved by", "started by", "jobs", "became", "end"],
            list(_replayed(facts)),
            "Nothing was replayed.",
        ),
        "## Timeline",
        "",
        f"![severity, cap, switches and redrives]({PICTURE})",
        "",
        *_listed(
            ["UTC", "", "what", "by"],
            [(_at(one.at), one.kind, one.what, one.by) for one in timeline],
            "Nothing was written down in this time.",
        ),
        "## Logs that were read",
        "",
        *_listed(["group", "lines"], [(name, f"{count:,}") for name, count in facts.lines.items()], "None."),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _incidents(facts: Facts) -> Iterator[str]:
    if not facts.incidents:
        yield from ("## Incident", "", "None is on record for this time.", "")
    for incident in facts.incidents:
        yield f"## Incident {incident.incident_id}: {_cell(incident.why)}"
        yield ""
        rows = [
            (_at(event.at), event.kind, event.by, str(event.detail.get("cause" if event.kind == CLOSED else "why", "")))
            for event in incident.events
        ]
        yield from _table(["UTC", "", "by", "what"], rows)
        yield "It is still open." if incident.open else f"Root cause: {_cell(incident.cause or 'none given')}"
        yield ""


def _check(check: Check) -> Iterator[str]:
    if not (check.violations or check.unchecked or check.notes):
        return
    yield from (f"### {check.title}: {check.verdict.value}", "")
    for one in check.violations[:LISTED]:
        todo = f" → {one.todo}" if one.todo else ""
        yield f"- **{one.code}** {_line(one.where)}: {_line(one.what)}{_line(todo)}"
    if len(check.violations) > LISTED:
        yield f"- … and {len(check.violations) - LISTED:,} more, all in report.json"
    yield from (f"- not checked: {_line(one)}" for one in check.unchecked)
    yield from (f"- {_line(one)}" for one in check.notes)
    yield ""


def _replayed(facts: Facts) -> Iterator[tuple[str, ...]]:
    for plan_id, replay in facts.replays.items():
        plan, ended = replay.plan, replay.progress.ended
        became = ", ".join(f"{count:,} {fate}" for fate, count in replay.progress.counts.items())
        end = ended.ending.value if ended is not None and ended.ending is not None else plan.state.value
        people = (plan.requester, plan.approver or "nobody", plan.started_by or "nobody")
        yield (plan_id, plan.cause, *people, f"{plan.count:,}", became or "nothing yet", end)


def _counts(check: Check) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in check.counts.items())


def _listed(head: Sequence[str], rows: Sequence[Sequence[str]], none: str) -> Iterator[str]:
    if not rows:
        yield from (none, "")
        return
    yield from _table(head, rows[:LISTED])
    if len(rows) > LISTED:
        yield from (f"… and {len(rows) - LISTED:,} more, all in report.json", "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(map(_cell, row))} |" for row in rows)
    yield ""


def _line(text: str) -> str:
    """One line, whatever somebody wrote."""
    return "".join(ch if ch.isprintable() else " " for ch in text)


def _cell(text: str) -> str:
    """Text as it is: nothing in it makes a table, a link or a line of its own."""
    return _line(text).translate({ord(ch): f"\\{ch}" for ch in "\\|[]<>`*"})


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}Z"
