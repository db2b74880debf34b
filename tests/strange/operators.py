"""What people do to a system under way, each act one step: switches, resets, cancels, resolutions, redrives.

Their evidence is the vendors' own record: they say *accepted* when it is there, and *not sent* when it is not.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import StrEnum

from shared.adapters.memory.plans import MemoryResolutionStore
from shared.core.cohort import Chosen
from shared.core.effects import EffectRow
from shared.core.errors import PenstockError
from shared.core.job import Job, Status
from shared.core.plan import Finding
from shared.core.switches import Level, Switch, Switches
from shared.usecases import steer
from shared.usecases.approve_redrive import approve_redrive
from shared.usecases.dismiss import dismiss
from shared.usecases.plan_redrive import plan_redrive
from shared.usecases.resolve_unknown import Resolver
from shared.usecases.start_redrive import start_redrive
from tests.builders import FREELY_NAMED
from tests.strange.scripts import TASK, VENDORS
from tests.strange.vendors import StrangeVendor
from tests.world import World


class Act(StrEnum):
    """One thing a person may do at any moment."""

    CLOSE = "close"
    OPEN = "open"
    RESET = "reset"
    CANCEL = "cancel"
    DISMISS = "dismiss"
    RESOLVE = "resolve"
    CONFIRM = "confirm"
    REPLAY = "replay"


class Operators:
    """Ada asks and Bob agrees. What the verbs refuse is refused: they try again some other time."""

    def __init__(self, world: World, rng: random.Random, seen: Callable[[str], None]) -> None:
        self._world, self._rng, self._seen = world, rng, seen
        self.note: Callable[[str], None] = lambda text: None
        self.replays = 0
        self._resolver = Resolver(
            jobs=world.jobs,
            effects=world.effects,
            resolutions=MemoryResolutionStore(),
            history=world.history,
            lanes=world.lanes,
            people=FREELY_NAMED,
            clock=world.clock,
        )

    def act(self, what: Act, job_id: str | None = None) -> bool:
        """Do it, to one job where it is about one. True when it was done and not refused."""
        job_id = job_id or self._rng.choice(list(self._world.requests))
        try:
            done = self._do(what, job_id)
        except PenstockError as refused:
            self.note(f"{what} {job_id[:8]}: refused, {refused}")
            return False
        if done:
            self._seen(f"act:{what}")
            self.note(f"{what} {job_id[:8]}")
        return done

    def _ask_again(self, what: Act, job_id: str) -> None:
        self.act(what, job_id)

    def open_everything(self) -> None:
        """The incident is over."""
        for scope in list(self._world.control.switches().entries):
            self._set(scope, Level.NORMAL)

    def _do(self, what: Act, job_id: str) -> bool:
        world, said = self._world, {"by": "ada", "why": "an incident"}
        stores = {"jobs": world.jobs, "effects": world.effects, "history": world.history, "clock": world.clock}
        job = world.jobs.get(job_id)
        if what is Act.CLOSE:
            scope = self._rng.choice(self._scopes())
            level = self._rng.choice((*Level, Level.ROUTE_ONLY, Level.HALT))
            self._set(scope, level, paid=self._rng.random() < 0.8)
            self.note(f"{scope} is set to {level.word}")
            return True
        if what is Act.OPEN:
            closed = list(world.control.switches().entries)
            if closed:
                self._set(self._rng.choice(closed), Level.NORMAL)
            return bool(closed)
        if job is None:
            return False
        if what is Act.RESET:
            steer.reset_to_pending(job_id, self._rng.choice((0, 5, 60)), **said, **stores)
        elif what is Act.CANCEL:
            held = steer.cancel(job_id, **said, **stores, lanes=world.lanes)
            if held.again_at is not None and not held.begun and self._rng.random() < 0.7:
                # Most who were told to ask again do.
                again_s = (held.again_at - world.clock.now()).total_seconds()
                world.later(again_s, lambda: self._ask_again(what, job_id))
        elif what is Act.DISMISS:
            dismiss(job_id, **said, **stores, lanes=world.lanes)
        elif what is Act.REPLAY:
            return self._replay(Chosen(lane=world.lane.name, job_id=job_id))
        else:
            return self._resolve(job, what)
        return True

    def _resolve(self, job: Job, what: Act) -> bool:
        """Say what its vendor shows of an effect that is open, of one after the other."""
        rows = [row for row in self._world.effects.of_job(job.job_id) if row.open]
        if job.status is not Status.FAILED or not rows:
            return False
        evidence, effect = self._evidence(rows[0]), rows[0].name
        finding = Finding.NOT_SENT if evidence is None else Finding.ACCEPTED
        more = finding is Finding.ACCEPTED and _has_more(job.job_id)
        said = (job.job_id, finding, evidence or "nothing-there")
        if what is Act.RESOLVE:
            self._resolver.request(*said, by="ada", more_to_do=more, effect=effect)
        else:
            self._resolver.confirm(*said, by="bob", more_to_do=more, effect=effect)
        return True

    def _evidence(self, row: EffectRow) -> str | None:
        for vendor in self._world.vendors.values():
            if isinstance(vendor, StrangeVendor) and (found := vendor.has(row.effect_id)):
                return found
        return None

    def _replay(self, chosen: Chosen) -> bool:
        world = self._world
        parts = {"plans": world.plans, "history": world.history, "clock": world.clock}
        stores = {"jobs": world.jobs, "effects": world.effects}
        planned = plan_redrive(chosen, cause="an incident", by="ada", **stores, **parts)
        plan_id = planned.plan.plan_id
        approve_redrive(plan_id, by="bob", people=FREELY_NAMED, **parts)
        start_redrive(plan_id, by="ada", lane=world.lane, switches=Switches(), **stores, **parts)
        self.replays += 1
        return True

    def replay_all(self) -> bool:
        """Everything that failed and may be replayed."""
        try:
            done = self._replay(Chosen(lane=self._world.lane.name))
        except PenstockError as refused:
            self.note(f"replay of all: refused, {refused}")
            return False
        self.note("replay of all")
        return done

    def _scopes(self) -> list[str]:
        lane = self._world.lane.name
        return ["all", f"lane/{lane}", f"task/{lane}/{TASK}", f"tenant/{lane}/tenant-1", f"vendor/{VENDORS[0]}"]

    def _set(self, scope: str, level: Level, *, paid: bool = True) -> None:
        at = self._world.clock.now()
        switch = Switch(scope=scope, level=level, automation_enabled=paid, by="ada", why="an incident", at=at)
        self._world.control.set_switch(switch)


def _has_more(job_id: str) -> bool:
    """The same for ever for one job, and for half of all."""
    return int(job_id[:2], 16) % 2 == 0
