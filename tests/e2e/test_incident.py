"""An incident in fast time: a backlog, a vendor that goes bad and comes back, and a governor on a real event source."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from threading import Event, Thread

import pytest

from ops.local.arrivals import arriving
from ops.local.errors import LocalStackError
from ops.local.judge import judge
from ops.local.peaks import peaks
from shared.adapters.aws.history import DynamoDbHistory
from shared.contract import names
from shared.core.capacity import Reason
from shared.core.effects import effect_id_of
from shared.core.history import HistoryEvent
from shared.core.job import Status
from shared.core.switches import Level
from tests.e2e.paths import LANE, STAGE, VENDOR, LocalStage, lane_level, tripping
from tests.waiting import PATIENCE_S, until

JOBS = 400
"""So many stand there until the cap is at its ceiling."""
LATENCY_S = 1.5
F5 = ("timestamp", "fromCapacity", "toCapacity", "reasonCode", "guardrailState", "operatorOverrideActive")
WORKER = names.function(STAGE, names.worker(LANE))
GOOD = {"latency_s": 0, "error_429_share": 0, "error_5xx_share": 0, "drop_after_accept_share": 0, "script": []}


@dataclass(slots=True, kw_only=True)
class Watch:
    """Ticks the governor, and keeps what is seen after each: the cap asked for, and the peak between two ticks."""

    stage: LocalStage
    began: float = field(default_factory=time.monotonic)
    caps: list[int] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    seen: dict[int, int] = field(default_factory=dict)
    """Cap → the most invocations under way at once while it stood."""

    def tick(self) -> HistoryEvent:
        """One look of the governor; what it decided."""
        assert time.monotonic() < self.began + PATIENCE_S, (self.caps, self.seen, self.decisions()[-5:])
        time.sleep(0.7)  # minutes have to pass for it: two seconds each
        self.look()
        self.stage.run("governor")
        return self.decisions()[-1]

    def look(self) -> bool:
        """The most at once since the last look: never more than a cap that stood meanwhile, or than were under way when
        it was lowered. Whether there were as many as the cap allows."""
        before = self.cap()
        peak = peaks(self.stage.state.endpoint).get(WORKER, 0)
        cap = self.cap()
        assert peak <= max([before, cap, *self.caps[-2:], *self.peaks[-1:]]), f"{peak} at once under a cap of {cap}"
        if {before, cap} == set(self.caps[-1:]):
            self.seen[cap] = max(self.seen.get(cap, 0), peak)
        self.caps.append(cap)
        self.peaks.append(peak)
        return self.seen.get(cap, 0) >= cap

    def follow(self) -> None:
        """Wait until the emulator has as many under way as the cap allows."""
        until(self.look, "as many at once as the cap allows")

    def cap(self) -> int:
        """What the event source really has."""
        return int(self.stage.source()["ScalingConfig"]["MaximumConcurrency"])

    def decisions(self) -> list[HistoryEvent]:
        """All of them, oldest first."""
        table = names.table(STAGE, "history")
        history = DynamoDbHistory(client=self.stage.clients.of("dynamodb"), table_name=table)
        return [one for one in history.of(f"capacity/{LANE}", limit=500) if one.kind == "decision"][::-1]

    def until(self, *reasons: Reason) -> HistoryEvent:
        """Tick until a decision has one of these reasons."""
        before = {one.event_id for one in self.decisions()}
        while True:
            self.tick()
            # The governor has its own schedule, too: what was decided between two ticks counts.
            for one in self.decisions():
                if one.event_id not in before and one.detail["reasonCode"] in reasons:
                    return one


@contextmanager
def dispatching(stage: LocalStage) -> Iterator[None]:
    """Dispatcher runs that follow one another: no minute is waited for where a minute has two seconds."""
    over = Event()

    def run() -> None:
        while not over.wait(0.2):
            with suppress(LocalStackError):  # its schedule was there first, and does the same
                stage.run("dispatcher")

    Thread(target=run, daemon=True).start()  # a run stays a while for what may come back: nobody waits for its end
    try:
        yield
    finally:
        over.set()


@pytest.mark.req("C4", "C5", "C6", "C7", "C13", "F5")
def test_an_incident_from_the_first_job_that_waits_to_the_baseline(stage: LocalStage) -> None:
    """The cap climbs by steps to the ceiling and the emulator is seen to follow; a bad vendor brings it down and closes
    the lane; when all is calm it is back at the baseline. Nobody is answered twice and nobody is lost."""
    lane, burst = stage.lanes[LANE], f"night-{uuid.uuid4().hex[:8]}"
    watch = Watch(stage=stage)
    already = len(watch.decisions())
    stage.vendor.configure(VENDOR, **{**GOOD, "latency_s": LATENCY_S})
    peaks(stage.state.endpoint)  # from here on
    try:
        while watch.tick().detail["toCapacity"] != lane.baseline:
            pass
        watch.caps.clear()
        watch.seen.clear()
        job_ids: list[str] = []

        def event(number: int) -> None:
            job_ids.append(stage.enqueue(f"{burst}-{number}", tenant=f"t-{number % 12}"))

        with arriving(standing=lambda: standing(stage, burst), level=JOBS, enqueue=event):
            watch.follow()
            while watch.tick().detail["reasonCode"] != Reason.AT_CEILING:
                watch.follow()
            watch.follow()  # the last step and the look after it may both be of the governor's own schedule
            climb, rising = sorted(watch.seen), watch.seen
            watch.seen = {}
            assert {lane.baseline, lane.ceiling} <= set(climb) <= set(range(lane.baseline, lane.ceiling + 1, 2)), rising

            with dispatching(stage), tripping(stage):
                stage.vendor.configure(VENDOR, error_429_share=0.7, retry_after_s=1)
                lowered = watch.until(Reason.VENDOR_429_SPIKE, Reason.VENDOR_UNSTABLE)
                assert lowered.detail["toCapacity"] == lane.ceiling // 2
                while lane_level(stage) is not Level.ROUTE_ONLY:
                    watch.tick()
        with dispatching(stage):
            stage.vendor.configure(VENDOR, **GOOD)
            while watch.tick().detail["toCapacity"] != lane.baseline or standing(stage, burst):
                pass
        assert lane_level(stage) is Level.ROUTE_ONLY, "nobody but a person opens a lane"
    finally:
        stage.vendor.configure(VENDOR, **GOOD)
        stage.switch(Level.NORMAL)

    mine = [job for job in stage.rows() if job.key.startswith(burst)]
    closing = judge(job_ids, mine, stage.vendor.accepted_keys(VENDOR))
    results = Counter(job.result for job in mine)
    print(f"caps {watch.caps}, peaks while rising {rising}, results {dict(results)}")
    assert (closing.duplicates, closing.lost) == (0, 0)
    assert Counter(job.status for job in mine) == {Status.COMPLETED: len(job_ids)}
    assert set(results) == {"replied", "withheld"}
    accepted = set(stage.vendor.accepted_keys(VENDOR))
    assert not [job for job in mine if job.result == "withheld" and effect_id_of(job.job_id, "reply") in accepted]
    assert all(peak <= cap for cap, peak in rising.items()), rising
    assert [rising[cap] for cap in climb] == sorted(set(rising.values())), f"the emulator did not follow: {rising}"
    assert_told(watch.decisions()[already:])


def assert_told(decisions: list[HistoryEvent]) -> None:
    """Every look left its decision, in the words everybody knows, each from where the one before ended."""
    assert {tuple(name for name in F5 if name in one.detail) for one in decisions} == {F5}
    assert {one.detail["correlationId"] for one in decisions} == {one.event_id for one in decisions}
    pairs = [(one.detail["fromCapacity"], one.detail["toCapacity"]) for one in decisions]
    assert all(after[0] == before[1] for before, after in pairwise(pairs)), pairs
    assert all(to - of <= 2 for of, to in pairs), pairs
    said = {str(one.detail["reasonCode"]) for one in decisions}
    assert {Reason.BACKLOG, Reason.WAITS_FOR_INTERVAL, Reason.AT_CEILING, Reason.BACK_TO_BASELINE} <= said


def standing(stage: LocalStage, burst: str) -> int:
    return sum(not job.status.ended for job in stage.rows() if job.key.startswith(burst))
