"""A redrive on production's own lane beside live traffic. `make simulate` runs it at full size."""

from __future__ import annotations

import pytest

from ops.simulator.redrive import ABORTED, BASELINE, KILLED, NOBODY, Night, run
from ops.simulator.redrive_report import missed, times_quiet
from shared.core.plan import Ending

DEAD = 600


@pytest.mark.slow
@pytest.mark.req("C11")
@pytest.mark.fault("F5")
def test_live_jobs_wait_no_longer_beside_a_redrive() -> None:
    """Replays hold a quarter of the baseline's slots: the live jobs' p99 wait grows by a tenth at most; and every dead
    letter is replayed once."""
    done = [run(NOBODY, DEAD), run(BASELINE, DEAD)]
    times = times_quiet(done[1], done)
    assert times is not None
    assert times <= 1.1
    assert (done[1].ending, done[1].completed, done[1].twice) == (Ending.FINISHED, DEAD, 0)
    assert missed(done) == []


@pytest.mark.req("C10")
@pytest.mark.fault("F5")
def test_an_abort_stops_within_a_tick() -> None:
    """No dead letter is released a tick after the abort; those under way end like any other job."""
    done = run(ABORTED, 200)
    assert done.ending is Ending.ABORTED
    assert 0 < done.replayed < 200
    assert done.released_after_abort == 0
    assert done.stops_after_s <= 60
    assert done.lost == 0


@pytest.mark.fault("F2")
@pytest.mark.fault("F7")
def test_killed_again_and_again_each_is_replayed_once() -> None:
    """The executor dies at one port call in fifty, before or after it is applied, and the next minute's goes on: each
    dead letter released once, sent once, none left."""
    done = Night(dead=40, cap=8, seed=3).redrive(KILLED, kill_one_in=50)
    assert done.kills >= 5
    assert (done.ending, done.completed) == (Ending.FINISHED, 40)
    assert (done.twice, done.duplicates, done.lost) == (0, 0, 0)
