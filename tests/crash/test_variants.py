"""The exploration is only worth something if it notices an engine that doubles: two of those are run through it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.crash.explore import explore, must_hold, pairs, singles
from tests.crash.report import LESSER, PROPERTY
from tests.crash.variants import fresh_leases, lease_style, naive
from tests.crash.walks import SEND_PATHS
from tests.processes import Process
from tests.vendors_and_tasks import VendorKind
from tests.world import RunBatch

pytestmark = pytest.mark.crash


@pytest.mark.parametrize("engine", [naive, lease_style])
def test_the_exploration_finds_the_duplicates_of_a_lesser_engine(
    engine: Callable[[Process], RunBatch], record_property: Callable[[str, object], None]
) -> None:
    """Sending without an intent, or under a record that expires and is deleted, is caught singly and in pairs."""
    for title, explored in (("one fault", singles), ("two faults", pairs)):
        run = explored(SEND_PATHS[0], (VendorKind.NEITHER,), engine=engine, fresh_ports=fresh_leases)
        tally = explore(run, must_hold)
        record_property(PROPERTY, json.dumps({"title": f"{title}, {engine.__name__}{LESSER}", **tally.document()}))
        assert tally.duplicates > 0, f"{engine.__name__}: no duplicate found in {tally.executions} executions"
        assert any(problem.startswith("sent twice") for problem in tally.wrong)


def test_the_exploration_finds_a_job_that_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that acknowledges what it could not finish loses jobs, and the judge says so."""
    from shared.usecases import run_batch as module
    from shared.usecases.run_attempt import Answer

    monkeypatch.setattr(module, "Answer", type("Answer", (), {"RETURN": object(), "ACKNOWLEDGE": Answer.ACKNOWLEDGE}))
    tally = explore(singles(SEND_PATHS[0], (VendorKind.NEITHER,)), must_hold)
    assert tally.wrong
