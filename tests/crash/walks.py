"""The ways through the system that are recorded and then disturbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from typing import Any

from functions.support.tasks import TASKS as SUPPORT
from shared.adapters.memory.faults import Plan
from shared.adapters.memory.vendor import MemoryVendor, Says
from shared.core.account import AccountSpec
from shared.core.effects import Lookup
from shared.core.job import Job
from shared.core.message import message_of
from shared.core.ports import Clock
from shared.core.rate import us_of
from shared.core.routing import Routing
from shared.usecases.enqueue import Enqueue
from tests.builders import ROUTING, a_lane, an_account
from tests.processes import PERIODS
from tests.vendors_and_tasks import TASKS, VendorKind, a_vendor
from tests.world import World


class ProbedVendor(MemoryVendor):
    """Notes whether anybody asked what it can do; until then a run is the same with every kind of vendor."""

    asked = False
    _abilities: tuple[timedelta | None, Lookup] = (None, Lookup.NONE)

    @property
    def dedupes_by_key(self) -> timedelta | None:
        self.asked = True
        return self._abilities[0]

    @dedupes_by_key.setter
    def dedupes_by_key(self, window: timedelta | None) -> None:
        self._abilities = (window, self._abilities[1])

    @property
    def lookup(self) -> Lookup:
        self.asked = True
        return self._abilities[1]

    @lookup.setter
    def lookup(self, lookup: Lookup) -> None:
        self._abilities = (self._abilities[0], lookup)


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """One way through the system."""

    name: str
    task: str = "reply"
    says: tuple[Says, ...] = ()
    """What the vendor answers to the first effects."""
    calls_say: tuple[Says, ...] = ()
    not_before_s: float | None = None
    throttled_receives: int = 0
    """Receives that reach no worker, as under a throttle: after ten the message is dead."""
    message_lost: bool = False
    """The first message never arrives: only the auditor can find the job."""
    from_message: bool = False
    """Begin with the message already in the queue: the send path alone."""
    account: AccountSpec | None = None
    """The vendor account its sends are paid from."""
    window_s: int | None = None
    """How long a vendor that deduplicates remembers our key, where that ends within the walk."""
    replayed_after_s: float | None = None
    """What failed is replayed by a plan, so long after its end."""
    spent_s: float = 0
    """So much of the account's time is spent beforehand: the first to ask is refused and waits for its turn."""
    call_reply: Mapping[str, Any] | None = None
    """What calls are answered with."""
    payload: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else its world is made of."""
    completes: bool = True
    """Ends `completed` when nothing goes wrong."""

    @property
    def waits_s(self) -> float:
        """What its lane lets a job wait between two tries beyond what any walk's does."""
        lane = self.options.get("lane")
        return 0 if lane is None else max(0, sum(lane.backoff_s) - sum(a_lane().backoff_s))

    @property
    def vendor_loses_answers(self) -> bool:
        """The vendor itself leaves an outcome open."""
        return bool({Says.ACCEPTED_BUT_UNKNOWN, Says.UNKNOWN, Says.FAIL} & {*self.says})

    def world(self, kind: VendorKind, plan: Plan, **options: Any) -> World:
        """The world of this walk, ready to run."""

        def vendor(clock: Clock) -> MemoryVendor:
            window = {} if self.window_s is None else {"dedupes_by_key": timedelta(seconds=self.window_s)}
            ends = window if kind is VendorKind.DEDUPES else {}
            made = a_vendor(kind, clock, of=ProbedVendor, script=self.says, call_reply=self.call_reply, **ends)
            made.call_script.extend(self.calls_say)
            return made

        ports = options.pop("fresh_ports", dict)()
        world = World(vendor=vendor, plan=plan, more_ports=ports, account=self.account, **self.options, **options)
        if self.account is not None and self.spent_s:
            world.budgets.spent(self.account, us_of(world.clock.now() + timedelta(seconds=self.spent_s)))
        if self.from_message:
            self._send(world)
        else:
            later = self.not_before_s
            at = None if later is None else world.clock.now() + timedelta(seconds=later)
            more = {} if self.payload is None else {"payload": self.payload}
            world.enqueue(self.task, not_before=at, **more)
        if self.message_lost:
            world.run_until_sent()
            for received in world.queues.receive(world.lane.name):
                world.queues.delete(world.lane.name, received.receipt)
            # Nothing but idle sweeps until the audit is near.
            world.clock.advance(PERIODS["auditor"] - PERIODS["dispatcher"])
        if self.throttled_receives:
            world.run_until_sent()
            for _ in range(self.throttled_receives):
                world.queues.receive(world.lane.name)
                world.clock.advance(world.lane.visibility_s)
            world.queues.receive(world.lane.name)
        world.last_fault_at = world.clock.now()
        return world

    def _send(self, world: World) -> None:
        """Job, text and message as the real walk leaves them, without walking it again each time."""
        job, request, data = _enqueued(self.task)
        world.requests[job.job_id] = request
        world.jobs.put(job)
        if job.payload_ref is not None:
            world.content.put(job.payload_ref, data)
        world.queues.send([message_of(job)])
        world.reader.commit(world.reader.read())


@cache
def _enqueued(task: str) -> tuple[Job, Enqueue, bytes]:
    world = World()
    job_id = world.enqueue(task)
    world.run_until_sent()
    job = world.job(job_id)
    return job, world.requests[job_id], world.content.get(job.payload_ref or "") or b""


ONE_EFFECT = Walk(name="one effect")
TWO_EFFECTS = Walk(name="two effects", task="reply_and_tag")
EVENT = Walk(
    name="an event handled in full",
    task="handle_event",
    payload={"conversation_id": "tenant-1/event-1", "text": "Where is my invoice?"},
    call_reply={"choices": [{"finish_reason": "stop", "message": {"content": '{"intent": "billing", "sure": true}'}}]},
    options={
        "tasks": SUPPORT,
        "lane": a_lane(
            tasks=tuple(SUPPORT), vendors=("helpdesk", "openai"), routing=Routing.from_mapping("routing", ROUTING)
        ),
    },
)
"""The real task of lane `support`: the model is asked, its answer is kept, and three effects follow."""
ACCOUNT = an_account()
WHOLE_WALKS = (
    ONE_EFFECT,
    TWO_EFFECTS,
    EVENT,
    Walk(name="deferred by a 429", says=(Says.REFUSE_RATE,)),
    Walk(name="retried after a call", task="ask_and_reply", calls_say=(Says.UNKNOWN,)),
    Walk(name="given a time", not_before_s=90),
    Walk(name="accepted, answer lost", says=(Says.ACCEPTED_BUT_UNKNOWN,)),
    Walk(name="refused for good", says=(Says.REFUSE_PERMANENT,), completes=False),
    Walk(name="dead before any claim", throttled_receives=10, completes=False),
    Walk(name="message lost", message_lost=True),
    Walk(name="paid from an account", task="ask_and_reply", account=ACCOUNT),
    Walk(name="refused by a spent account", account=ACCOUNT, spent_s=30),
    Walk(name="a 429 from a paid vendor", says=(Says.REFUSE_RATE,), account=ACCOUNT),
    Walk(name="credentials refused", says=(Says.REFUSE_AUTH,), account=ACCOUNT),
)
"""Together they pass every call of enqueue, stream consumer, worker, dispatcher, triage and auditor."""
SEND_PATHS = (
    Walk(name="send path, one effect", from_message=True),
    Walk(name="send path, two effects", task="reply_and_tag", from_message=True),
)
WINDOW_S, BEYOND_S = 400, 600
"""A second request falls into the window; a third one, after the longest backoff, finds it closed."""
REFUSALS = (
    *(Says.REFUSE_AUTH, Says.FORBID, Says.REFUSE_PERMANENT, Says.REFUSE_RATE, Says.REFUSE_RATE_UNTOLD),
    *(Says.UNREACHABLE, Says.UNSENT, Says.FAIL, Says.UNKNOWN, Says.ACCEPTED_BUT_UNKNOWN),
)
WINDOWS = tuple(
    Walk(
        name=f"accepted, answer lost, then {then}, and the window ends",
        says=(Says.ACCEPTED_BUT_UNKNOWN, then),
        from_message=True,
        window_s=WINDOW_S,
        replayed_after_s=86_400,
        completes=False,
        options={"lane": a_lane(tasks=tuple(sorted(TASKS)), retry_backoff_s=(5, BEYOND_S, BEYOND_S, BEYOND_S))},
    )
    for then in REFUSALS
)
"""Every answer there is, to a request whose predecessor nobody knows the end of."""
