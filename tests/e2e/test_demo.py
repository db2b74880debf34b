"""The demo, headless: what a newcomer is shown is what is tested."""

from __future__ import annotations

import pytest
from rich.console import Console

from ops.local import demo, night
from tests.e2e.paths import VENDOR, LocalStage


@pytest.mark.req("C1", "F9")
@pytest.mark.fault("A1", "A10", "K3")
def test_the_demo_ends_with_nothing_doubled_and_nothing_lost(stage: LocalStage) -> None:
    """A burst, duplicates, a bad vendor and a worker process killed inside its vendor call, then a night with a backlog
    and a replay that two people agreed to: 0 duplicates, 0 lost."""
    stage.vendor.configure(VENDOR, script=[])
    console = Console(width=120, force_terminal=False, record=True)
    try:
        closing = demo.run(name=stage.state.name, headless=True, keep=True, console=console)
    finally:
        stage.vendor.configure(VENDOR, latency_s=0, error_429_share=0, error_5xx_share=0, drop_after_accept_share=0)
    told = console.export_text()
    assert (closing.duplicates, closing.lost) == (0, 0), told
    assert closing.enqueued == closing.completed + sum(closing.failed.values()), told
    assert closing.failed == {"malformed": 2}, told
    assert closing.recovered >= 1, "no job was taken over from the killed worker"
    assert closing.repeated > 0
    assert closing.deferred + closing.retried > 0, "the bad vendor left no trace"
    assert "jobs why" in told
    assert closing.replayed == night.LOCKED, told
    for line in (
        "Incident of support is open.",
        "backlog; the oldest job waits",
        "back to baseline",
        "somebody else must approve",
        "bob$",
    ):
        assert line in told, told
    assert "is finished" in told
    assert "Incident of support is closed." in told
