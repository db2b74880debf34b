"""Lane `support` with a help desk and a model in memory, for the tests of its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from shared.adapters.memory.vendor import Accept
from shared.core.account import AccountSpec
from shared.core.job import Job
from shared.core.ports import Clock
from shared.core.routing import Routing
from shared.core.switches import Level
from tests.builders import ROUTING
from tests.functions.stage import Stage, a_stage, sqs_record
from tests.model import SimulatedModel
from tests.vendors_and_tasks import VendorKind

THE = Routing.from_mapping("routing", ROUTING)
SAFE, UNPAID = "route_only", "automation off"
MODES: dict[str, tuple[Level, bool]] = {
    "normal": (Level.NORMAL, True),
    SAFE: (Level.ROUTE_ONLY, True),
    UNPAID: (Level.NORMAL, False),
    "both": (Level.ROUTE_ONLY, False),
}
NOT_ANSWERS = {
    "prose": "Sure! It is about billing.",
    "nothing": "",
    "not listed": '{"intent": "weather", "sure": true}',
    "unclear": '{"intent": "unclear", "sure": true}',
    "doubtful": '{"intent": "billing", "sure": false}',
    "sure of nothing": '{"intent": null, "sure": true}',
    "half of it": '{"intent": "billing"',
    "more than asked": '{"intent": "billing", "sure": true, "reply": "Dear customer"}',
    "twice": '{"intent": "legal", "intent": "billing", "sure": true}',
    "a list": '["billing", true]',
    "cut off": '{"intent": "billing", "sure": true' + " " * 1000 + "}",
}


class Support:
    """A stage of the lane, and what came of its events."""

    def __init__(self, stage: Stage, model: SimulatedModel | None) -> None:
        self.stage, self._model, self.count = stage, model, 0

    @property
    def model(self) -> SimulatedModel:
        assert self._model is not None
        return self._model

    def answers(self, content: str) -> None:
        """From now on the model answers this, whatever it is asked."""
        self.model.accounts.configure("openai", canned_answers=[{"contains": "", "content": content}])

    def event(self, text: str | None = "Where is my billing statement?", **more: Any) -> Job:
        """An event, not yet handled."""
        self.count += 1
        payload = {"conversation_id": f"c-{self.count}", **({} if text is None else {"text": text}), **more}
        ref = self.stage.desk.enqueue("handle_event", key=f"event-{self.count}", payload=payload)
        return self.stage.desk.job(ref.job_id)

    def ran(self, job: Job) -> Job:
        """The job after one invocation, due again if it waits."""
        assert self.stage.invoke("support", {"Records": [sqs_record(job)]}) == {"batchItemFailures": []}
        after = self.stage.desk.job(job.job_id)
        if after.not_before_at is not None:
            self.stage.desk.clock.advance_to(max(self.stage.desk.clock.now(), after.not_before_at))
        return after

    def handled(self, text: str | None = "Where is my billing statement?", **more: Any) -> Job:
        return self.ran(self.event(text, **more))

    def done(self, job: Job) -> list[str]:
        """What the help desk was made to do, in order."""
        conversation = f"c-{job.key.removeprefix('event-')}"
        return [one.action for one in self.accepts if one.target == conversation]

    @property
    def accepts(self) -> list[Accept]:
        return self.stage.desk.vendor.accepts

    def switch(self, mode: str) -> None:
        level, automation = MODES[mode]
        self.stage.desk.close("lane/support", level, automation_enabled=automation)


@contextmanager
def supporting(
    kind: VendorKind = VendorKind.NEITHER, account: AccountSpec | None = None, **limits: Any
) -> Iterator[Support]:
    """A stage with a help desk and a model."""
    made: list[SimulatedModel] = []

    def model(clock: Clock) -> SimulatedModel:
        made.append(SimulatedModel(clock, **limits))
        return made[0]

    with a_stage(kind, model=model, account=account) as stage:
        yield Support(stage, made[0])
