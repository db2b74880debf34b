"""What feeds workers: every way in which a lane stands still behind open gates is a sentence."""

from __future__ import annotations

import pytest

from shared.core.capacity import EventSource
from shared.core.feeding import Feeding, feed_trouble

RUNS = EventSource(state="Enabled", cap=2)


def test_workers_that_are_fed_are_no_trouble() -> None:
    """Nor is a reserve, or a source that a halt disabled before it was enabled again."""
    for fed in (Feeding(source=RUNS), Feeding(source=RUNS, reserved=2)):
        assert feed_trouble(fed, on_purpose=False) is None
        assert feed_trouble(fed, on_purpose=True) is None


@pytest.mark.fault("B10")
@pytest.mark.parametrize(
    ("fed", "on_purpose", "said", "stops"),
    [
        (Feeding(source=None), False, "nothing feeds its workers", True),
        (Feeding(source=EventSource(state="Disabled", cap=2)), False, "disabled by somebody", True),
        (Feeding(source=EventSource(state="Disabled", cap=2)), True, "by a halt or a pin of 0", True),
        (Feeding(source=RUNS, reserved=0), False, "reserved concurrency is 0", True),
        (Feeding(source=RUNS, throttled=1234), False, "refused 1,234 starts in the last 5 minutes", False),
        *(
            (Feeding(source=EventSource(state=state)), purpose, f"is {state.lower()}", False)
            for state in ("Creating", "Enabling", "Disabling", "Updating", "Deleting", "unknown")
            for purpose in (False, True)
        ),
    ],
)
def test_workers_that_are_not_fed_are_explained(fed: Feeding, on_purpose: bool, said: str, stops: bool) -> None:
    """What is wrong, whether anything starts at all, and what to do; rest on purpose is said to be that."""
    trouble = feed_trouble(fed, on_purpose=on_purpose)
    assert trouble is not None
    assert said in trouble.sentence
    assert trouble.stops is stops
