"""The law of a redrive: who may be replayed, how many at a time, and when it stops itself. Pure.

    canary of 1 → its end → 10 → their end → the rest, a little at a time

A replay is never urgent: whatever the lane has to do for others comes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.core import rate
from shared.core.account import AccountSpec, Limit
from shared.core.admission import View, admit
from shared.core.effects import REPLAY_HORIZON_DAYS, EffectRow
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.plan import Fate
from shared.core.run import COLLECTED_BY, TAKEN_BY, Mode

WAVES = (1, 11)
"""Jobs released before the next wave may begin: one, then ten more; each wave waits for the end of the one before."""
MOST_OPEN = 100
"""Released and not ended, at most: so many are looked at each time, and so many could go wrong unseen."""
SHARE, SLOTS = 0.5, 0.25
"""The part of an account's pace, and of the slots at the baseline cap, that replays may use; the rest is for others."""
LOOK_S = 1.0
"""Between two looks."""
GROWTH = 10
"""More dead letters than this above the fewest seen since the start: something fails beside the plan."""
OTHERWISE_SHARE = 0.1
"""More than this part of the released jobs failing with other errors than before: the cause is another one."""
QUIET_LOOKS = 60
"""So many looks in a row at which an account is quiet after a 429 are a spike, not a hiccup."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """All that a decision needs, as it stands now."""

    left: int
    """Jobs that had no turn yet."""
    open: int
    """Released and under way."""
    fates: Mapping[Fate, int]
    letters: int
    fewest_letters: int
    quiet_looks: int = 0
    room: int = 0
    """How many more the lane and its accounts can take now."""
    held_by: str = ""
    """What takes the room, in a word, when there is none."""
    shut: str | None = None
    """An account that takes no calls."""


@dataclass(frozen=True, slots=True)
class Release:
    """So many jobs may go now."""

    count: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nobody goes now; look again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Nobody goes any more: what the plan was made for does not hold."""

    reason: str


@dataclass(frozen=True, slots=True)
class Finish:
    """Everybody had a turn and has ended."""


Decision = Release | Wait | Stop | Finish


def decide(look: Look) -> Decision:
    """What the executor does next."""
    stop = stop_of(look)
    if stop is not None:
        return stop
    if look.left == 0:
        return Wait("jobs under way") if look.open else Finish()
    ended = sum(count for fate, count in look.fates.items() if fate.released)
    released = ended + look.open
    goal = next((wave for wave in WAVES if ended < wave), released + MOST_OPEN - look.open)
    wanted = min(goal - released, MOST_OPEN - look.open, look.left)
    if wanted <= 0:
        return Wait("canary" if goal == WAVES[0] else "jobs under way")
    if look.room <= 0:
        return Wait(look.held_by or "room")
    return Release(min(wanted, look.room))


def stop_of(look: Look) -> Stop | None:
    """Why nobody may go any more; None while all is well."""
    failed, relapsed = look.fates.get(Fate.FAILED, 0), look.fates.get(Fate.RELAPSED, 0)
    ended = sum(count for fate, count in look.fates.items() if fate.released)
    if relapsed:
        return Stop("relapse: a replayed job failed with the same error again")
    if failed and (ended < WAVES[-1] or failed > OTHERWISE_SHARE * ended):
        return Stop("failures: replayed jobs fail with other errors")
    if look.letters > look.fewest_letters + GROWTH:
        return Stop("dead_letters: more of the lane's jobs fail meanwhile")
    if look.shut is not None:
        return Stop(f"shut: account {look.shut} takes no calls")
    if look.quiet_looks >= QUIET_LOOKS:
        return Stop("rate_limited: the vendor answers 429 again and again")
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How many more the lane can take within one look, and what limits it."""

    count: int
    held_by: str = ""
    shut: str | None = None
    quiet: bool = False


def room(job: Job, view: View, now: datetime, look_s: float, *, backlog: bool, busy: int, under_way: int = 0) -> Room:
    """What the lane has to spare for replays like `job`, by the same admission that the engine asks.

    A share of the slots at the baseline cap, whatever the present one is, so that whoever comes next finds a free one
    (in a lane with runs, of what one run takes), and of those only what stands idle; nothing while a backlog waits; and
    a share of each account's pace. `busy`: jobs that run or wait for a worker; `under_way`: replays not yet ended.
    """
    now_us = rate.us_of(now)
    for account in view.accounts:
        terms = account.budget.terms
        if not rate.enforced(account.spec, terms):
            continue
        if terms.shut is not None:
            return Room(count=0, held_by=f"budget:{account.spec.name}", shut=account.spec.name)
        if terms.quiet_until_us > now_us:
            return Room(count=0, held_by=f"budget:{account.spec.name}", quiet=True)
    verdict = admit(job, view, now)
    if verdict.blocked is not None:
        return Room(count=0, held_by=verdict.reason or "")
    if backlog:
        return Room(count=0, held_by="backlog")
    idle = slots_of(view.lane) - busy
    if idle <= 0:
        return Room(count=0, held_by=f"capacity:{view.lane.name}")
    spare = min(idle, replay_slots(view.lane) - under_way)
    if spare <= 0:
        return Room(count=0, held_by="replays under way")
    for account in view.accounts:
        spare = min(spare, _paced(account.spec, account.budget, job, now_us, look_s))
    return Room(count=max(1, spare))


def slots_of(lane: LaneSpec) -> int:
    """Jobs that the lane has under way at once without hurry: at its baseline cap, or in one of its runs."""
    return lane.baseline * lane.parallel if lane.run is None else lane.run.max_jobs_per_run


def replay_slots(lane: LaneSpec) -> int:
    """How many replays may be under way at once; one at the least."""
    return max(1, int(SLOTS * slots_of(lane)))


def rounds(count: int, lane: LaneSpec) -> int:
    """How many runs of a lane have to end one after the other for so many replays: one for each wave, then the rest."""
    waves = sum(count > done for done in (0, *WAVES[:-1]))
    return waves + math.ceil(max(0, count - WAVES[-1]) / min(MOST_OPEN, replay_slots(lane)))


def drain_s(count: int, lane: LaneSpec, accounts: Iterable[AccountSpec]) -> float:
    """How long so many replays take at the least: by their share of the baseline cap, and of each account's pace. In a
    lane with runs, by the runs they wait for."""
    if lane.run is None:
        times = [count * max(LOOK_S, lane.expected_job_s) / replay_slots(lane)]
    else:
        # The first may end at once; from one end to the next is a period of whichever run ends jobs.
        ends = [period for role, period in lane.runs.items() if role in (COLLECTED_BY, TAKEN_BY[Mode.ASYNC])]
        times = [(rounds(count, lane) - 1) * float(min(ends, default=0))]
    times += [
        count * 60 / (most * SHARE)
        for account in accounts
        if account.enforced and (most := account.configured(Limit.REQUESTS)) is not None
    ]
    return max(times)


def _paced(spec: AccountSpec, budget: rate.Budget, job: Job, now_us: int, look_s: float) -> int:
    most = rate.limit_of(spec, budget.terms, Limit.REQUESTS, now_us)
    if most is None or not rate.enforced(spec, budget.terms):
        return MOST_OPEN
    return int(SHARE * most * look_s / 60 / rate.want_of(job).requests)


def obstacle(job: Job, effects: Sequence[EffectRow], now: datetime) -> str | None:
    """Why a failed job must not be replayed, as the end of a sentence; None when it may be."""
    for row in effects:
        if row.open:
            return f"nobody knows whether {row.vendor} has its effect {row.name}: `penstock jobs resolve` it first"
    oldest = min((row.first_intent_at for row in effects), default=None)
    if oldest is not None and now - oldest > timedelta(days=REPLAY_HORIZON_DAYS):
        return (
            f"its first effect was begun more than {REPLAY_HORIZON_DAYS} days ago and is soon forgotten, so it could be"
            " sent twice: make a new job for what is still wanted, and dismiss this one"
        )
    return None
