"""A backlog, a vendor at a quarter and the real governor on virtual time. `make simulate` runs it at full size."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest

from ops.simulator import __main__ as simulator
from ops.simulator import hindsight, incident_report, lane_support
from ops.simulator.governing import direction_changes
from ops.simulator.incident import OURS, UNTOLD, WAYS, Handled, Incident, ours
from shared.core.capacity import CONSERVATIVE, RAMP

pytestmark = pytest.mark.slow
INCIDENT = Incident(jobs=2_400, trouble_s=(700.0, 1_000.0))
"""Production's own intervals; the vendor is at a quarter when the cap is at six, more than a quarter needs."""


@pytest.fixture(scope="module", autouse=True)
def from_two() -> Iterator[None]:
    """Production's lane with a baseline of two: a small incident shows the steps only from far below."""
    real = lane_support.lane
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lane_support, "lane", lambda **changes: real(**{"baseline": 2, **changes}))
        yield


@pytest.fixture(scope="module")
def handled() -> Handled:
    return ours(INCIDENT)


def test_a_row_is_the_mean_of_its_seeds_and_the_most_of_what_is_a_rule(handled: Handled) -> None:
    """Times are averaged, with the worst beside them; a rule that one seed broke is broken; who never ended has no
    mean."""
    slower = replace(
        handled, seed=2, drained_s=2 * handled.fastest_s, duplicates=1, caps=((0.0, 2), (60.0, 4), (659.0, 8))
    )
    [row] = incident_report.rows([handled, slower])
    assert row["times_fastest"] == pytest.approx(((handled.times_fastest or 0) + 2) / 2, abs=0.001)
    assert (row["seeds"], row["worst_times_fastest"], row["duplicates"]) == ([1, 2], 2.0, 1)
    assert (row["largest_rise"], row["rises_too_soon"], row["last_cap"]) == (4, 1, 8)
    assert incident_report.rows([replace(handled, drained_s=None)])[0]["times_fastest"] is None
    missed = " ".join(incident_report.missed([handled, slower]))
    assert all(figure in missed for figure in ("times_fastest", "largest_rise", "rises_too_soon", "last_cap"))
    assert handled.rises[0][0] == math.inf


@pytest.mark.req("C4")
def test_the_cap_rises_by_its_step_and_no_sooner(handled: Handled) -> None:
    """Two at a time, ten minutes after any change and hardly later, to the end of the drain, which comes close to the
    fastest that this rule allows."""
    rises = [(two[0] - one[0], two[1] - one[1]) for one, two in pairwise(handled.caps) if two[1] > one[1]]
    assert len(rises) >= 2
    assert all(step <= 2 for _, step in rises)
    assert all(600 <= apart_s <= 605 for apart_s, _ in rises[1:])
    assert handled.times_fastest is not None
    assert handled.times_fastest <= 1.1


@pytest.mark.req("C5")
@pytest.mark.fault("E7")
def test_no_retry_storm_and_no_swing(handled: Handled) -> None:
    """A vendor at a quarter meets hardly a call in vain; the cap turns three times at most; once each, nobody lost."""
    assert handled.calls_per_accept <= 1.05
    assert handled.refused_share <= 0.01
    assert handled.changes <= 3
    assert (handled.duplicates, handled.lost) == (0, 0)


@pytest.mark.req("C4")
@pytest.mark.req("C16")
@pytest.mark.fault("E7")
def test_a_vendor_that_tells_nothing_is_found_out_without_a_halving() -> None:
    """Its 429s are few enough to be no spike: the cap rises by its steps to the end of the drain, which comes as close
    to the fastest as with limits that are told."""
    silent = ours(INCIDENT, UNTOLD, tells=False)
    assert silent.drained_s is not None
    assert all(later > sooner for (_, sooner), (at_s, later) in pairwise(silent.caps) if at_s < silent.drained_s)
    assert all(apart_s >= 600 and step <= 2 for apart_s, step in silent.rises)
    assert silent.times_fastest is not None
    assert silent.times_fastest <= 1.1
    assert silent.refused_share <= 0.01
    assert (silent.duplicates, silent.lost) == (0, 0)


@pytest.mark.req("C6")
def test_the_cap_goes_back_when_all_is_well(handled: Handled) -> None:
    """To the baseline, after a quarter of an hour of calm and not before."""
    back_s, cap = handled.caps[-1]
    assert cap == lane_support.lane().baseline
    assert handled.drained_s is not None
    assert handled.drained_s + 900 - 60 <= back_s <= handled.drained_s + 900 + 300


@pytest.mark.req("C5")
def test_without_budgets_429s_lower_the_cap() -> None:
    """Where nobody paces the vendor, the cap is what answers its 429s: halved, and held for ten minutes."""
    lane = replace(lane_support.lane(), trip_on_unstable=False)
    alone = ours(Incident(jobs=1_800, trouble_s=(700.0, 1_000.0)), budgets=False, lane=lane)
    falls = [(one, two) for one, two in pairwise(alone.caps) if two[1] < one[1] and two[0] < (alone.drained_s or 0)]
    assert [(one[1], two[1]) for one, two in falls] == [(6, 3)]
    assert 700 < falls[0][1][0] <= 700 + 240
    assert all(two[0] >= falls[0][1][0] + 600 for _, two in pairwise(alone.caps) if two[0] > falls[0][1][0])
    assert (alone.duplicates, alone.lost) == (0, 0)


@pytest.mark.req("C7")
def test_the_hurried_policy_stays_below_the_ceiling() -> None:
    """A step larger than the ceiling: never more at once than it, and a lane that asks for all of it."""
    ramp = ours(Incident(jobs=500, trouble_s=(60.0, 120.0)), policy=RAMP, lane=lane_support.lane(ceiling=5))
    assert (ramp.peak, ramp.most_at_once) == (5, 5)
    assert ramp.lost == 0


def test_nobody_beats_hindsight() -> None:
    """Of all schedules that obey the step rule none drains sooner than the one that rises whenever it may; and in the
    engine that schedule comes close to its bound: a slot whose call comes before its moment waits for it, while the
    vendor allows little more than the slots can send."""
    small = Incident(jobs=1_500, trouble_s=(300.0, 900.0))
    policy = small.policy
    for choices in product((-2, 0, 2), repeat=4):
        caps, cap = [], policy.baseline
        for number, choice in enumerate(choices):
            cap = max(policy.floor, min(policy.ceiling, cap + choice))
            caps.append((float(number * policy.interval_s), cap))
        assert hindsight.drain_s(small.jobs, caps, small.weather) >= small.fastest_s
    done = ours(small, policy=None, caps=small.fastest_caps)
    assert done.times_fastest is not None
    assert 1 <= done.times_fastest <= 1.07
    assert done.lost == 0


def test_the_step_rule_is_productions() -> None:
    """What is simulated is what is deployed, but for where it begins: one job an invocation, two more every ten
    minutes, up to twenty."""
    policy, lane = INCIDENT.policy, lane_support.lane()
    assert (lane.policy, lane.batch_size, lane.parallel) == (CONSERVATIVE, 1, 1)
    assert (policy.step_up, policy.interval_s, policy.ceiling) == (2, 600, 20)
    assert lane_support.stage().lanes["support"].baseline == 8


def test_a_turn_is_counted_once() -> None:
    """Up, up, down, down, up: two turns."""
    assert direction_changes([(0, 2), (1, 4), (2, 6), (3, 3), (4, 2), (5, 4)]) == 2
    assert direction_changes([(0, 2)]) == 0


def test_the_command_tells_every_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A row a way, the figures as JSON, a picture; where the vendor tells nothing, ten seeds and their mean."""
    monkeypatch.setattr(simulator, "REPORTS", tmp_path)
    assert simulator.main(["incident", "--jobs", "40", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["way"] for row in told["rows"]] == list(WAYS)
    assert told["rows"][0]["way"] == OURS
    assert {row["way"]: row["seeds"] for row in told["rows"]}[UNTOLD] == list(range(1, 11))
    assert [one["seed"] for one in told["ways"] if one["way"] == UNTOLD] == list(range(1, 11))
    assert (tmp_path / "incident.svg").read_text().startswith("<?xml")
