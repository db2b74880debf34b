"""What an incident leaves behind, in memory: jobs answered once, an incident closed, a switch and a redrive by two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.logs import MemoryLogs
from shared.adapters.memory.plans import MemoryPlanStore
from shared.adapters.memory.queues import MemoryDeadLetterQueues, MemoryLaneQueues
from shared.adapters.memory.stores import MemoryEffectStore, MemoryHistory, MemoryJobStore
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.memory.vendor import MemoryVendor
from shared.core.effects import Effect, EffectRow, EffectState, Lookup, effect_id_of
from shared.core.history import HistoryEvent
from shared.core.job import Category, Job, Status
from shared.core.lane import LaneSpec
from shared.core.plan import Ending, Fate, Plan, Step, entry_of, manifest_hash
from shared.core.routing import Routing
from shared.core.sensitive import Sensitive
from shared.core.switches import Level
from shared.core.validation import judged, overall
from shared.core.validation_facts import Check, Facts, Verdict, Violation
from shared.usecases.audit import Auditor
from shared.usecases.keep_incident import close_incident, note_incident, open_incident
from shared.usecases.steer import note
from shared.usecases.validate import Validator
from tests.builders import ROUTING, a_job, a_lane

ADA, BOB = "arn:ada", "arn:bob"
WORKER, ENGINE = "/aws/lambda/support-worker", "/aws/lambda/governor"
BILLING = {"intent": "billing", "team": "billing", "tier_0": False, "by": "model"}
LEGAL = {"intent": "legal", "team": "specialists", "tier_0": True, "by": "rules"}
LINE = (
    '{"level":"INFO","message":"attempt_settled","job_id":"%s","timestamp":"2026-01-01 00:10:00,123+0000",'
    '"took_us":1767225600123456}'
)


class Aftermath:
    """A lane an hour after its incident; everything is in order until a test plants something."""

    def __init__(self, **lane: Any) -> None:
        routing = Routing.from_mapping("lanes.support.routing", ROUTING)
        self.lane: LaneSpec = a_lane(**{"routing": routing, "accounts": (), **lane})
        self.lanes: Mapping[str, LaneSpec] = {"support": self.lane}
        self.clock = VirtualClock()
        self.jobs = MemoryJobStore(lanes=self.lanes, clock=self.clock)
        self.effects, self.history, self.plans = MemoryEffectStore(), MemoryHistory(), MemoryPlanStore()
        self.logs = MemoryLogs()
        self.vendor = MemoryVendor(clock=self.clock, lookup=Lookup.EXACT)
        self.since = self.clock.now()
        self.clock.advance(60)
        open_incident("support", by=ADA, why="help desk answers 429", history=self.history, clock=self.clock)
        self.switch(Level.ROUTE_ONLY, "replies are wrong")
        self.decide("severe", 4, 700)
        self.answered = [self.answer(f"event-{n}") for n in range(3)]
        self.routed = self.answer("event-legal", route=LEGAL, effects=("add_tag", "assign"))
        self.clock.advance(300)
        self.replayed = self.answer("event-replayed", plan=self.redrive("event-replayed"))
        note_incident("support", by=BOB, text="vendor is back", history=self.history, clock=self.clock)
        self.clock.advance(1)
        self.decide("normal", 2, 0)
        self.switch(Level.NORMAL, "the exit checklist holds")
        close_incident("support", by=ADA, cause="the token had expired", history=self.history, clock=self.clock)
        self.logs.write(ENGINE, self.clock.now(), LINE % "-")
        self.clock.advance(600)

    # -------------------------------------------------------------------------------------- what happened
    def answer(
        self,
        key: str,
        *,
        route: Mapping[str, Any] | None = BILLING,
        effects: tuple[str, ...] = ("add_tag", "assign", "reply"),
        plan: str | None = None,
        **more: Any,
    ) -> Job:
        """A job that completed, its effects accepted and recorded, its line in the worker's log."""
        now = self.clock.now()
        job = a_job(
            key=key,
            status=Status.COMPLETED,
            created_at=now,
            updated_at=now,
            completed_at=now,
            routing_decision=route,
            **({"plan_id": plan, "replay_count": 1} if plan else {}),
            **more,
        )
        self.jobs.put(job)
        for name in effects:
            self.effect(job, name)
        self.logs.write(WORKER, now, LINE % job.job_id)
        return job

    def effect(self, job: Job, name: str, state: EffectState = EffectState.ACCEPTED, *, sent: bool = True) -> EffectRow:
        """One effect: at the vendor if it was sent, and in a row that says so or not."""
        now, effect_id = self.clock.now(), effect_id_of(job.job_id, name)
        row = EffectRow(
            effect_id=effect_id,
            job_id=job.job_id,
            name=name,
            vendor="helpdesk",
            state=EffectState.INTENT,
            fence=1,
            first_intent_at=now,
            intent_at=now,
            customer_visible=name not in ("add_tag", "assign"),
        )
        self.effects.intend(row)
        vendor_id = self.send(effect_id, name) if sent else None
        if state is not EffectState.INTENT:
            given = vendor_id or ("helpdesk-lost" if state is EffectState.ACCEPTED else None)
            self.effects.record(row, replace(row, state=state, recorded_at=now, vendor_id=given))
        return row

    def send(self, effect_id: str, action: str = "reply") -> str:
        """The vendor accepts something under a key."""
        effect = Effect(vendor="helpdesk", action=action, target="c-1", body=Sensitive({}), customer_visible=True)
        self.vendor.perform(effect, key=effect_id, timeout_s=1)
        return self.vendor.accepts[-1].vendor_id

    def switch(self, level: Level, why: str, by: str = ADA) -> None:
        detail = {"level": level.word, "automation_enabled": True, "why": why}
        note("switch/lane/support", "switch", by, detail, self.history, self.clock)

    def decide(self, severity: str, cap: int, age_s: int) -> None:
        detail = {"severity": severity, "toCapacity": cap, "queueAgeSeconds": age_s, "reasonCode": "calm"}
        note("capacity/support", "decision", "governor", detail, self.history, self.clock)

    def redrive(self, key: str, *, approver: str | None = BOB, ended: bool = True) -> str:
        """A plan of one that was asked for, approved, started and ended."""
        job, now = a_job(key=key, status=Status.FAILED, category=Category.AUTH), self.clock.now()
        manifest = (entry_of(job),)
        plan = Plan(
            plan_id=f"plan-{key}",
            lane="support",
            requester=ADA,
            cause="the token had expired; it was renewed",
            count=1,
            hash=manifest_hash(manifest),
            created_at=now,
            valid_until=now + timedelta(hours=24),
        )
        self.plans.put(plan, manifest)
        if approver is not None:
            plan = self.plans.approve(plan, by=approver, now=now, alone_up_to=1)
            self.plans.start(plan, by=ADA, now=now)
        for kind, by in (("planned", ADA), ("approved", approver or ADA), ("started", ADA)):
            note("redrive/support", kind, by, {"plan": plan.plan_id}, self.history, self.clock)
        if ended:
            fates = {job.job_id: Fate.COMPLETED}
            self.plans.add_step(plan.plan_id, Step(number=0, at=now, tried=1, fates=fates, ending=Ending.FINISHED))
            note("redrive/support", "finished", "redriver", {"plan": plan.plan_id}, self.history, self.clock)
        return plan.plan_id

    def happened(self, subject: str, kind: str, by: str, at: datetime | None = None, **detail: Any) -> None:
        """Something in the history, at any time."""
        event = HistoryEvent(
            subject=subject, event_id=f"e-{subject}-{kind}", at=at or self.clock.now(), kind=kind, by=by, detail=detail
        )
        self.history.append(event)

    # ------------------------------------------------------------------------------------------- validation
    def facts(self, **options: Any) -> Facts:
        auditor = Auditor(
            lanes=self.lanes,
            jobs=self.jobs,
            effects=self.effects,
            queues=MemoryLaneQueues(
                clock=self.clock, lanes=self.lanes, dead_letters=MemoryDeadLetterQueues(clock=self.clock)
            ),
            dead_letters=MemoryDeadLetterQueues(clock=self.clock),
            clock=self.clock,
            telemetry=MemoryTelemetry(),
        )
        parts: dict[str, Any] = {
            "vendors": {"helpdesk": self.vendor},
            **{name: options.pop(name) for name in ("vendors", "per_minute", "threads", "logs") if name in options},
        }
        validator = Validator(
            lane=self.lane,
            jobs=self.jobs,
            effects=self.effects,
            history=self.history,
            plans=self.plans,
            groups=(WORKER, ENGINE),
            auditor=auditor,
            clock=self.clock,
            **{"logs": self.logs, **parts},
        )
        return validator.facts(options.pop("since", self.since), options.pop("until", self.clock.now()), **options)

    def checks(self, **options: Any) -> dict[str, Check]:
        return {check.name: check for check in judged(self.facts(**options))}

    def verdict(self, **options: Any) -> Verdict:
        return overall(self.checks(**options).values())

    def violations(self, **options: Any) -> list[Violation]:
        return [one for check in self.checks(**options).values() for one in check.violations]

    def codes(self, **options: Any) -> set[str]:
        return {one.code for one in self.violations(**options)}
