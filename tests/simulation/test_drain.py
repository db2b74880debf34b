"""A backlog against a vendor in trouble: the real use cases on virtual time. `make simulate` runs it at full size."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ops.simulator import __main__ as simulator
from ops.simulator.drain import ACCOUNT, LANE, WAYS, Drained, full_jitter, naive_retry, ours, static_bucket
from ops.simulator.engine import Engine
from ops.simulator.hub import Hub
from ops.simulator.vendor import Counting, LimitedVendor, Weather, ideal_s
from shared.core.message import message_of
from shared.core.rate import us_of

pytestmark = pytest.mark.slow
JOBS = 9_000
WEATHER = Weather(limits=((0, 3_000), (60, 1_500), (120, 3_000)), outage=(150, 170))
"""Halved, raised, lost for a while: in four minutes what the full run has in twenty."""
LOSSES_S = 16
"""What a drain loses whatever its length: the first seconds, four changes of the vendor's, the last jobs. A twentieth
of the full run's ideal is 58 s."""


@pytest.fixture(scope="module")
def told() -> Drained:
    return ours(jobs=JOBS, weather=WEATHER, tells=True)


@pytest.fixture(scope="module")
def untold() -> Drained:
    return ours(jobs=JOBS, weather=WEATHER, tells=False)


@pytest.mark.req("X9")
@pytest.mark.req("R17")
def test_limits_in_headers_are_followed(told: Drained) -> None:
    """All complete close to the ideal; hardly a refusal, few calls into the outage, and full pace soon after it."""
    assert (told.completed, told.failed) == (JOBS, 0)
    assert told.seconds <= told.ideal_s + LOSSES_S
    assert told.refused_share <= 0.003
    assert told.wasted <= 200
    assert told.recovery_s is not None
    assert told.recovery_s <= 2


@pytest.mark.req("X9")
def test_a_limit_that_nobody_tells_is_found(untold: Drained) -> None:
    """Without headers refusals are the only teacher: few are needed."""
    assert (untold.completed, untold.failed) == (JOBS, 0)
    assert untold.seconds <= untold.ideal_s + 2 * LOSSES_S
    assert untold.refused_share <= 0.015


@pytest.mark.req("X4")
def test_waiting_is_cheap(told: Drained, untold: Drained) -> None:
    """Deferrals and writes of a job stay within what is promised, also in a short run with much trouble."""
    for one in (told, untold):
        assert one.mean_deferrals <= 1.2
        assert one.p99_deferrals <= 3
        assert one.writes is not None
        assert one.writes / one.jobs <= 5.5


def test_a_vendor_that_counts_a_sliding_minute() -> None:
    """The strictest kind of limit, met at exactly its pace: nothing fails, and refusals stay rare."""
    done = ours(jobs=JOBS, weather=WEATHER, tells=True, counting=Counting.SLIDING)
    assert (done.completed, done.failed) == (JOBS, 0)
    assert done.refused_share <= 0.015


def test_the_usual_ways_do_worse(told: Drained) -> None:
    """The comparison is one: naive retry storms, backoff wastes half of its calls, a bucket that hears nothing is
    refused whenever the limit falls."""
    naive = naive_retry(jobs=JOBS, weather=WEATHER)
    assert not naive.drained
    jitter = full_jitter(jobs=JOBS, weather=WEATHER)
    assert jitter.refused_share > 0.2
    assert jitter.times_ideal > told.times_ideal
    assert static_bucket(jobs=JOBS, weather=WEATHER).refused_share > 10 * max(told.refused_share, 0.001)


@pytest.mark.req("X4")
def test_a_thousand_jobs_refused_in_one_second_start_one_after_the_other() -> None:
    """All messages arrive at workers while the account is spent: no later second starts more than three times the
    mean, and no job is refused over and over."""
    hub = Hub()
    weather = Weather(limits=((0, 3_000),), outage=(10_000, 10_001))
    vendor = LimitedVendor(clock=hub.clock, weather=weather, tells=True)
    engine = Engine(hub, lane=LANE, accounts=(ACCOUNT,), vendors=(vendor,))
    engine.budgets.spent(ACCOUNT, us_of(hub.clock.now()) + 5_000_000)
    engine.enqueue(1_000)
    # As if admission had seen an empty account: every message is there at once.
    engine.queues.send([message_of(job) for job in map(engine.jobs.get, engine.job_ids) if job is not None])
    engine.start(until_ended=1_000, behind=False)
    hub.run(until_s=600)
    assert engine.ends() == {"completed": 1_000}
    starts = Counter(int(at) for at in vendor.seen.accepted_at)
    seconds = max(starts) - min(starts) + 1
    assert max(starts.values()) <= 3 * 1_000 / seconds
    assert not vendor.seen.refused_at
    assert max(engine.deferrals.values()) <= 3


def test_a_simulation_replays_identically() -> None:
    """The same seed gives the same calls at the same milliseconds."""
    weather = Weather(limits=((0, 600), (20, 300)), outage=(30, 35))
    one, two = (ours(jobs=300, weather=weather, tells=True, seed=3) for _ in range(2))
    assert one.seen == two.seen
    assert one.writes == two.writes


def test_the_ideal_is_what_the_vendor_gives() -> None:
    """At ten a second with a burst of sixty: a hundred and ten calls need five seconds and one call's time."""
    weather = Weather(limits=((0, 600),), outage=(1_000, 1_001), takes_s=(0.5, 0.5))
    assert ideal_s(weather, 110) == pytest.approx(5.5, abs=0.2)
    down = Weather(limits=((0, 600),), outage=(2, 12), takes_s=(0.5, 0.5))
    assert ideal_s(down, 110) == pytest.approx(12.5, abs=0.2)


def test_the_command_prints_a_table_and_keeps_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row a way, a report to read on, a picture to look at; a backlog of nothing is refused."""
    monkeypatch.setattr(simulator, "REPORTS", tmp_path)
    assert simulator.main(["drain", "--jobs", "200"]) == 0
    printed = capsys.readouterr().out
    assert all(way.split(",")[0] in printed for way in WAYS)
    assert len(json.loads((tmp_path / "drain.json").read_text())["ways"]) == len(WAYS)
    assert (tmp_path / "drain.svg").read_text().startswith("<?xml")
    assert simulator.main(["--jobs", "0"]) == 2
    assert simulator.main(["redrive", "--picture", "night.svg"]) == 2
