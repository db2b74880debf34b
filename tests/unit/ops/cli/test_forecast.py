"""`penstock forecast`: an answer in one sentence, and what another cap would change."""

from __future__ import annotations

from typing import Any

import pytest

from ops.cli.forecast import cap_of
from ops.cli.stage import Stage
from shared.core.errors import BadInput
from shared.core.switches import Level
from tests.builders import a_job, a_switch


def test_an_empty_lane(penstock: Any, deployed: Stage) -> None:
    """Nothing waits, in both forms."""
    assert "Nothing waits" in penstock("forecast", "support").out
    assert penstock("forecast", "support", "--json").document["forecast"]["outlook"] == "cleared"


def test_a_backlog_with_a_time_and_what_if(penstock: Any, deployed: Stage) -> None:
    """It clears by a time; the cap that was asked about is told."""
    for number in range(30):
        deployed.jobs.put(a_job(key=f"event-{number}", due=deployed.clock.now()))
    assert "Clears by" in penstock("forecast", "support").out
    document = penstock("forecast", "support", "--what-if", "cap=3", "--json").document
    assert (document["cap"], document["forecast"]["backlog"]) == (3, 30)


def test_a_stalled_lane_names_what_holds_it(penstock: Any, deployed: Stage) -> None:
    """A closed switch: no time, but the scope."""
    deployed.jobs.put(a_job(due=deployed.clock.now()))
    deployed.control.set_switch(a_switch("lane/support", Level.HALT))
    assert "Stalled: switches:lane/support" in penstock("forecast", "support").out


@pytest.mark.parametrize("text", ["12", "cap=", "cap=-1", "cap=x", "slots=3"])
def test_a_what_if_that_is_none_is_refused(text: str) -> None:
    """The sentence shows the form."""
    with pytest.raises(BadInput, match="cap=12"):
        cap_of(text)


def test_a_cap_above_the_ceiling_is_refused(penstock: Any, deployed: Stage) -> None:
    """What cannot be set is not foreseen."""
    deployed.jobs.put(a_job(due=deployed.clock.now()))
    assert "ceiling" in penstock("forecast", "support", "--what-if", "cap=900", code=1).err
