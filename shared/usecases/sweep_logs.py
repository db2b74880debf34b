"""Sweep logs for canaries and for the shapes of personal data. What is found is named by its place, never repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from shared.core.errors import Unavailable
from shared.core.logs import Logs
from shared.core.personal import MARK, forms, marker_of, sightings
from shared.core.validation_facts import Seen

MOST_LINES = 2_000_000
"""Lines read of one group; more is said, not read."""
MOST_SEEN = 100
"""Places told of one group: whoever mends these looks again."""
TOLD_EVERY = 5_000


@dataclass(slots=True)
class Swept:
    """What was read, what was seen, and what could not be read."""

    lines: dict[str, int] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)


def sweep_logs(
    groups: Iterable[str],
    *,
    since: datetime,
    until: datetime,
    now: datetime,
    logs: Logs,
    markers: Iterable[str] = (),
    threads: int = 1,
    tell: Callable[[str], None] = lambda text: None,
) -> Swept:
    """Read every line of every group once."""
    marked = tuple(form for word in (MARK, *map(marker_of, markers)) for form in forms(word))
    swept = Swept()

    def sweep(group: str) -> tuple[str, int, list[Seen], list[str]]:
        return group, *_group(group, since, until, now, logs, marked, tell)

    with ThreadPoolExecutor(max_workers=max(1, threads)) as pool:
        for group, count, seen, gaps in pool.map(sweep, groups):
            swept.lines[group] = count
            swept.seen += seen
            swept.gaps += gaps
    return swept


def unread(lines: Mapping[str, int], group: str, claimed: int) -> list[str]:
    """A group that must hold something and does not was not swept, it was missed."""
    if claimed and not lines.get(group):
        return [f"{group} holds no line, and {claimed:,} jobs ran: is its retention shorter, or is it another group?"]
    return []


def _group(
    group: str,
    since: datetime,
    until: datetime,
    now: datetime,
    logs: Logs,
    marked: tuple[str, ...],
    tell: Callable[[str], None],
) -> tuple[int, list[Seen], list[str]]:
    count, seen = 0, list[Seen]()
    try:
        for line in logs.lines(group, since=since, until=until):
            if count == MOST_LINES:
                return count, seen, [f"{group} holds more than {MOST_LINES:,} lines: ask for a shorter time"]
            count += 1
            if count % TOLD_EVERY == 0:
                tell(f"{group}: {count:,} lines read")
            for one in sightings(line.text, marked):
                seen.append(Seen(group=group, stream=line.stream, at=line.at, offset=one.offset, kind=one.kind))
            if len(seen) >= MOST_SEEN:
                gap = f"{group} was read only up to the {MOST_SEEN}th finding: mend what writes it, then look again"
                return count, seen[:MOST_SEEN], [gap]
        days = logs.kept_days(group)
    except Unavailable as exc:
        return count, seen, [f"{group} could not be read ({exc.reason})"]
    if days is not None and since < now - timedelta(days=days):
        return count, seen, [f"{group} keeps its lines for {days} days: what it held before is gone"]
    return count, seen, []
