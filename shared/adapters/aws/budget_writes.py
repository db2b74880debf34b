"""The conditional writes of a vendor account, each computed from the row as it was last seen.

What was seen only chooses the branches: every branch is a condition of its own write, so a write computed from an old
row is refused, never applied wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shared.adapters import attributes
from shared.adapters.attributes import Attribute, Item
from shared.adapters.aws import conditions
from shared.adapters.budget_rows import (
    ARRIVAL,
    BACKLOG,
    DAY,
    LINE,
    SPENT,
    SUM,
    TERMS,
    USED,
    VERSION,
    hold_attribute,
    hold_name,
    terms_attribute,
)
from shared.core import rate
from shared.core.account import DAILY, HELD, PACED, AccountSpec, Limit
from shared.core.budget import SECOND, Budget, Hold, Terms, Want, day_of
from shared.core.rate import Arrivals

REMOVED_AT_ONCE = 100
"""Dead holders that one write removes: an expression has its bounds."""


@dataclass(slots=True)
class Write:
    """One conditional update, put together part by part."""

    sets: list[str] = field(default_factory=list)
    removes: list[str] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    values: Item = field(default_factory=dict)

    def put(self, name: str, to: str, **values: int | Attribute) -> None:
        """SET an attribute to an expression with these values."""
        self.sets.append(f"#{name} = {to}")
        self.value(**values)
        self.names[f"#{name}"] = name

    def only(self, clause: str, name: str, **values: int | Attribute) -> None:
        """One more condition, on this attribute."""
        self.clauses.append(conditions.on(clause, name))
        self.value(**values)
        self.names.setdefault(f"#{name}", name)

    def value(self, **values: int | Attribute) -> None:
        """Values for the expressions."""
        self.values |= {
            f":{name}": attributes.whole(value) if isinstance(value, int) else value for name, value in values.items()
        }

    def add(self, name: str, amount: int) -> None:
        """SET a count that may not be there yet to so much more."""
        self.put(name, f"if_not_exists(#{name}, :zero) + :{name}_more", zero=0, **{f"{name}_more": amount})

    def remove(self, name: str, attribute: str) -> None:
        """REMOVE an attribute; `name` stands for it in the expressions."""
        self.removes.append(f"#{name}")
        self.names[f"#{name}"] = attribute

    @property
    def update(self) -> str:
        """The update's expression; empty when nothing changes."""
        parts = [f"{word} {', '.join(part)}" for word, part in (("SET", self.sets), ("REMOVE", self.removes)) if part]
        return " ".join(parts)

    @property
    def condition(self) -> str:
        """Every clause is true."""
        return conditions.all_of(*self.clauses)


def take(
    spec: AccountSpec,
    seen: Budget,
    want: Want,
    now_us: int,
    *,
    hold: str,
    hold_s: float,
    told_us: Arrivals | None = None,
    ahead_us: int = 0,
) -> Write:
    """Take `want` if it fits now or within `ahead_us`, under the terms that were seen, and on top of what the vendor's
    count tells."""
    write = Write()
    _under(write, seen.terms.version)
    for limit in PACED:
        most, name = rate.limit_of(spec, seen.terms, limit, now_us), ARRIVAL[limit]
        if most is None:
            continue
        cost_us = rate.cost_us(want.of(limit), most)
        latest_us = now_us + ahead_us + max(rate.burst_at(spec, seen.terms, now_us + ahead_us), cost_us) - cost_us
        from_us = max(now_us, (told_us or {}).get(limit, 0))
        _pace(write, name, seen.arrival_us.get(limit, 0), cost_us, from_us, latest_us=latest_us)
    write.add(SPENT, rate.configured_us(spec, want))
    _count(write, spec, seen, want, now_us)
    _hold(write, spec, seen, want, now_us, hold=hold, hold_s=hold_s)
    return write


def give_back(spec: AccountSpec, seen: Budget, want: Want, now_us: int, *, hold: str) -> Write:
    """Return what was not used, charge what was used beyond the estimate, and let `hold` hold nothing."""
    write = Write()
    for limit in PACED:
        most, name, amount = rate.limit_of(spec, seen.terms, limit, now_us), ARRIVAL[limit], want.of(limit)
        if most is None:
            continue
        if amount < 0:
            _pace(write, name, seen.arrival_us.get(limit, 0), rate.cost_us(-amount, most), now_us)
        elif amount and limit in seen.arrival_us:
            write.only(conditions.EVER_SPENT, name)
            write.put(name, f"#{name} - :{name}_back", **{f"{name}_back": rate.back_us(amount, most)})
    if write.update:
        write.add(SPENT, -rate.configured_us(spec, want))
    _uncount(write, spec, seen, want, now_us)
    if hold:
        _let_go(write, hold, seen.holds.get(hold))
    return write


def reserve(seen: Budget, span_us: int, not_before_us: int, backlog_us: int) -> Write:
    """Promise a start behind every earlier one."""
    write = Write()
    if seen.line_us > not_before_us:
        write.only(conditions.LINE_AHEAD, LINE, not_before=not_before_us)
        write.put(LINE, f"#{LINE} + :span", span=span_us)
    else:
        write.only(conditions.LINE_PASSED, LINE, not_before=not_before_us)
        write.put(LINE, ":line", line=not_before_us + span_us)
    if backlog_us:
        write.put(BACKLOG, ":backlog", backlog=backlog_us)
    return write


def change(seen: Terms, after: Terms) -> Write:
    """Put `after` in the place of the terms that were seen."""
    write = Write()
    clause = conditions.SAME_TERMS if seen.version else conditions.NO_TERMS_YET
    write.only(clause, VERSION, version=seen.version)
    write.put(VERSION, ":next_version", next_version=after.version)
    write.put(TERMS, ":terms", terms=terms_attribute(after))
    return write


def _under(write: Write, version: int) -> None:
    """Every take names the version it was computed under, and writes it: an update is never empty."""
    write.only(conditions.SAME_TERMS if version else conditions.NO_TERMS_YET, VERSION, version=version)
    write.put(VERSION, ":version")


def _pace(
    write: Write, name: str, arrival_us: int, cost_us: int, from_us: int, *, latest_us: int | None = None
) -> None:
    """Move an arrival on by a cost, from `from_us` at the earliest: within `latest_us`, or however far it goes."""
    write.value(**{f"{name}_from": from_us})
    if arrival_us <= from_us and (latest_us is None or from_us <= latest_us):
        write.only(conditions.IDLE, name)
        write.put(name, f":{name}_next", **{f"{name}_next": from_us + cost_us})
        return
    if latest_us is None:
        write.only(conditions.BUSY, name)
    else:
        write.only(conditions.FITS_WHILE_BUSY, name, **{f"{name}_latest": latest_us})
    write.put(name, f"#{name} + :{name}_cost", **{f"{name}_cost": cost_us})


def _count(write: Write, spec: AccountSpec, seen: Budget, want: Want, now_us: int) -> None:
    """Count a request today, or begin today's counts with it."""
    counted = rate.counted(spec, seen.terms, now_us)
    if not counted:
        return
    if seen.day < day_of(now_us):
        _new_day(write, {limit: want.of(limit) for limit in counted}, now_us)
        return
    write.only(conditions.SAME_DAY, DAY, today=day_of(now_us))
    for limit in counted:
        name, amount = USED[limit], want.of(limit)
        room = int(rate.limit_of(spec, seen.terms, limit, now_us) or 0) - amount
        write.only(conditions.HAS_ROOM, name, **{f"{name}_room": room})
        write.add(name, amount)


def _uncount(write: Write, spec: AccountSpec, seen: Budget, want: Want, now_us: int) -> None:
    """Take a return off today's counts. What comes back after midnight was yesterday's; a charge is today's."""
    changes = {limit: want.of(limit) for limit in rate.counted(spec, seen.terms, now_us) if want.of(limit)}
    if not changes:
        return
    if seen.day < day_of(now_us):
        if min(changes.values()) < 0:
            _new_day(write, {limit: max(0, -amount) for limit, amount in changes.items()}, now_us)
        return
    write.only(conditions.SAME_DAY, DAY, today=day_of(now_us))
    for limit, amount in changes.items():
        name = USED[limit]
        if amount < 0:
            write.add(name, -amount)
        elif seen.used.get(limit, 0) >= amount:
            write.only(conditions.COUNTED_ENOUGH, name, **{f"{name}_back": amount})
            write.put(name, f"#{name} - :{name}_back")
        else:
            write.only(conditions.COUNTED_LESS, name, **{f"{name}_back": amount})
            write.put(name, ":zero", zero=0)


def _new_day(write: Write, counts: dict[Limit, int], now_us: int) -> None:
    write.only(conditions.NEW_DAY, DAY, today=day_of(now_us))
    write.put(DAY, ":today")
    for limit in DAILY:
        if limit in counts:
            write.put(USED[limit], f":{USED[limit]}_more", **{f"{USED[limit]}_more": counts[limit]})
        else:
            write.remove(USED[limit], USED[limit])


def _hold(write: Write, spec: AccountSpec, seen: Budget, want: Want, now_us: int, *, hold: str, hold_s: float) -> None:
    """Put the holder in, take the dead ones out, and change the sums by exactly that."""
    holding = any(want.of(limit) for limit in HELD)
    before = seen.holds.get(hold) if holding else None
    gone = [seen.holds[name] for name in _remove_dead(write, seen, now_us, spare=hold if holding else None)]
    if holding:
        mine = Hold(slots=want.slots, batch_tokens=want.batch_tokens, until_us=now_us + int(hold_s * SECOND))
        _as_seen(write, "hold", hold, before)
        write.sets.append("#hold = :hold")
        write.value(hold=hold_attribute(mine))
    freed = [*gone, *([] if before is None else [before])]
    for limit in HELD:
        back, most = sum(held.of(limit) for held in freed), rate.limit_of(spec, seen.terms, limit, now_us)
        if want.of(limit) and most is not None:
            write.only(conditions.HAS_ROOM, SUM[limit], **{f"{SUM[limit]}_room": int(most) - want.of(limit) + back})
        if want.of(limit) != back:
            write.add(SUM[limit], want.of(limit) - back)


def _remove_dead(write: Write, seen: Budget, now_us: int, *, spare: str | None) -> Iterable[str]:
    dead = [name for name in seen.expired(now_us) if name != spare][:REMOVED_AT_ONCE]
    for number, name in enumerate(dead):
        _as_seen(write, f"dead{number}", name, seen.holds[name])
        write.remove(f"dead{number}", hold_name(name))
    return dead


def _let_go(write: Write, hold: str, before: Hold | None) -> None:
    _as_seen(write, "hold", hold, before)
    # One who holds nothing is removed all the same: the update is not empty, and its condition is asked.
    write.remove("hold", hold_name(hold))
    for limit in HELD:
        if before is not None and before.of(limit):
            write.add(SUM[limit], -before.of(limit))


def _as_seen(write: Write, name: str, holder: str, seen: Hold | None) -> None:
    """The condition that a holder holds what it was seen to hold."""
    write.names[f"#{name}"] = hold_name(holder)
    if seen is None:
        write.only(conditions.NO_HOLD, name)
    else:
        write.only(conditions.SAME_HOLD, name, **{f"{name}_seen": hold_attribute(seen)})
