"""Strange tasks: what a task does differs by attempt, as it does when a model is asked or a release changes the code.

A script has one variant or several. Each attempt takes one, by a model's answer or by how often the job was tried; an
answer may be kept before the first effect, after it, or not at all. A *point* is a place where a customer sees one
thing: two names, targets or vendors at one point are the same thing twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum

from shared.core.effects import Call, Effect, Sent, Withheld
from shared.core.job import Category, Job
from shared.core.outcome import Defer, Done, Fail, Outcome, Retry
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context, Task
from shared.usecases.ending import EndAttempt

VENDORS = ("helpdesk", "mailer")
MODEL = "model"
TASK = "strange"
MAX_POINTS = 4


class Strangeness(StrEnum):
    """How a variant differs from the first one."""

    RENAMED = "renamed"
    REORDERED = "reordered"
    MORE = "more"
    FEWER = "fewer"
    OTHER_VENDOR = "other_vendor"
    OTHER_ACTION = "other_action"
    OTHER_TARGET = "other_target"
    OTHER_VISIBILITY = "other_visibility"
    OTHER_END = "other_end"


class Decider(StrEnum):
    """What an attempt takes its variant by."""

    MODEL = "model"
    ATTEMPT = "attempt"
    CLAIM = "claim"


class Keeping(StrEnum):
    """When the task keeps what it decided."""

    NEVER = "never"
    FIRST = "first"
    LATE = "late"


class End(StrEnum):
    """How the task ends once its effects are made."""

    DONE = "done"
    RETRY = "retry"
    FAIL = "fail"
    DEFER = "defer"
    RAISE = "raise"
    NOTHING = "nothing"


class Temper(StrEnum):
    """What the task makes of whatever is raised at it."""

    CALM = "calm"
    SWALLOWS = "swallows"
    TRIES_AGAIN = "tries_again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One effect asked for."""

    point: int
    name: str
    vendor: str
    action: str = "reply"
    target: str = "customer"
    visible: bool = True
    asks: bool = False
    """The model is asked something just before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """What one attempt does."""

    steps: tuple[Step, ...]
    end: End = End.DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One job's task."""

    variants: tuple[Variant, ...]
    strange: frozenset[Strangeness]
    decider: Decider
    keeping: Keeping
    paid: bool
    temper: Temper = Temper.CALM

    @property
    def points(self) -> Mapping[str, int]:
        """Name of an effect → the point it stands at."""
        return {step.name: step.point for variant in self.variants for step in variant.steps}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What `ctx.effect` gave back to a task."""

    key: str
    fence: int
    step: Step
    made: Sent | Withheld


@dataclass(slots=True)
class Cast:
    """The scripts of a world's jobs, and what their tasks were told."""

    scripts: dict[str, Script] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    note: Callable[[str], None] = lambda text: None

    def tasks(self) -> Mapping[str, Task]:
        """The one task there is: it plays the script of its job."""
        return {TASK: self.play}

    def play(self, job: Job, ctx: Context) -> Outcome:
        """One attempt."""
        script = self.scripts[job.key]
        number = _decided(script, job, ctx)
        if number is None:
            return Done("withheld")
        variant = script.variants[number % len(script.variants)]
        self.note(f"{job.key}: attempt of claim {job.fence} plays variant {number % len(script.variants)}")
        withheld = False
        for position, step in enumerate(variant.steps):
            if step.asks:
                ctx.call(Call(vendor=MODEL, action="ask", body=Sensitive({}), paid=False))
            made = _made(script.temper, step, job, ctx)
            if made is None:
                continue
            self.told.append(Told(key=job.key, fence=job.fence, step=step, made=made))
            withheld = withheld or isinstance(made, Withheld)
            if position == 0 and script.keeping is Keeping.LATE:
                ctx.keep("decision", b"%d" % number)
        return _ended(variant.end, ctx, withheld)


def _made(temper: Temper, step: Step, job: Job, ctx: Context) -> Sent | Withheld | None:
    """What became of a step; None where the task goes on as if nothing had been raised."""
    if temper is Temper.CALM:
        return ctx.effect(step.name, effect_of(step, job))
    for _ in range(2 if temper is Temper.TRIES_AGAIN else 1):
        with suppress(Exception, EndAttempt):
            return ctx.effect(step.name, effect_of(step, job))
    return None


def effect_of(step: Step, job: Job) -> Effect:
    """The request of a step."""
    return Effect(
        vendor=step.vendor,
        action=step.action,
        target=f"{job.key}/{step.target}",
        body=Sensitive({}),
        customer_visible=step.visible,
    )


def _decided(script: Script, job: Job, ctx: Context) -> int | None:
    """The number of this attempt's variant; None when a switch forbids to ask."""
    if script.keeping is not Keeping.NEVER:
        kept = ctx.kept("decision")
        if kept is not None:
            return int(kept)
    match script.decider:
        case Decider.ATTEMPT:
            number = job.attempt_count
        case Decider.CLAIM:
            number = job.fence
        case Decider.MODEL:
            answer = ctx.call(Call(vendor=MODEL, action="decide", body=Sensitive({}), paid=script.paid))
            if isinstance(answer, Withheld):
                return None
            number = answer.reveal()["number"]
    if script.keeping is Keeping.FIRST:
        ctx.keep("decision", b"%d" % number)
    return number


def _ended(end: End, ctx: Context, withheld: bool) -> Outcome:
    match end:
        case End.RETRY:
            return Retry("strange_retry")
        case End.FAIL:
            return Fail(Category.VENDOR_PERMANENT, "strange_fail")
        case End.DEFER:
            return Defer(ctx.now + timedelta(seconds=300), "strange_defer")
        case End.RAISE:
            raise ValueError("strange")
        case End.NOTHING:
            return None  # type: ignore[return-value]
    return Done("withheld" if withheld else "made")


# ------------------------------------------------------------------------------------------------ drawing
def drawn_script(rng: random.Random) -> Script:
    """A first variant of a few effects, and up to two more that differ from it."""
    count = rng.choice((1, 1, 1, 2, 2, 3))
    steps = tuple(_drawn_step(rng, point) for point in range(count))
    first = Variant(steps=steps, end=_drawn_end(rng, 0.9))
    strange: set[Strangeness] = set()
    variants = [first]
    if rng.random() < 0.8:
        for number in range(1, rng.choice((2, 2, 3))):
            variants.append(_differing(rng, first, number, strange))
    # Drawn beside the rest: what else a seed draws does not depend on it.
    beside = random.Random()
    beside.setstate(rng.getstate())
    decider = rng.choice((Decider.MODEL, Decider.MODEL, Decider.ATTEMPT, Decider.CLAIM))
    return Script(
        variants=tuple(variants),
        strange=frozenset(strange),
        decider=decider,
        keeping=rng.choice((Keeping.NEVER, Keeping.NEVER, Keeping.FIRST, Keeping.LATE)),
        paid=rng.random() < 0.5,
        temper=beside.choices(tuple(Temper), (6, 1, 1))[0],
    )


def _drawn_step(rng: random.Random, point: int) -> Step:
    return Step(
        point=point,
        name=f"effect_{point}",
        vendor=VENDORS[0] if rng.random() < 0.7 else VENDORS[1],
        visible=rng.random() < 0.8,
        asks=rng.random() < 0.15,
    )


def _drawn_end(rng: random.Random, well: float) -> End:
    return End.DONE if rng.random() < well else rng.choice([end for end in End if end is not End.DONE])


def _differing(rng: random.Random, first: Variant, number: int, strange: set[Strangeness]) -> Variant:
    steps, end = list(first.steps), first.end
    for what in rng.sample(list(Strangeness), rng.choice((1, 1, 2))):
        at = rng.randrange(len(steps)) if steps else None
        match what:
            case Strangeness.REORDERED if len(steps) > 1:
                before = list(steps)
                while steps == before:
                    rng.shuffle(steps)
            case Strangeness.MORE if len(steps) < MAX_POINTS:
                more = _drawn_step(rng, MAX_POINTS + number)
                steps.insert(rng.randint(0, len(steps)), more)
            case Strangeness.FEWER if at is not None:
                del steps[at]
            case Strangeness.OTHER_END:
                end = _drawn_end(rng, 0.0) if end is End.DONE else End.DONE
            case _ if at is not None and what not in (Strangeness.REORDERED, Strangeness.MORE):
                steps[at] = _other(what, steps[at], number)
            case _:
                continue
        strange.add(what)
    return Variant(steps=tuple(steps), end=end)


def _other(what: Strangeness, step: Step, number: int) -> Step:
    match what:
        case Strangeness.RENAMED:
            return replace(step, name=f"{step.name}_as_{number}")
        case Strangeness.OTHER_VENDOR:
            return replace(step, vendor=VENDORS[1] if step.vendor == VENDORS[0] else VENDORS[0])
        case Strangeness.OTHER_ACTION:
            return replace(step, action=f"action_{number}")
        case Strangeness.OTHER_TARGET:
            return replace(step, target=f"customer_{number}")
        case _:
            return replace(step, visible=not step.visible)
