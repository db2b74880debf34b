"""What somebody complained about, and what was made of it: found in the content store alone, however a run ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from shared.core.batch import Answered, Declined, NotTaken, NoWord, Unreadable
from shared.core.sensitive import Sensitive
from shared.runtime.telemetry import PowertoolsTelemetry
from tests.leaks.sweep import CANARY, holds, sweeping
from tests.model import SimulatedModel
from tests.unit.usecases.rewriting import RewriteDesk

WAYS = ("answered", "declined", "cut", "empty", "too_long", "unreadable", "refused", "silent", "unusable")


class Provider:
    """A provider whose every answer holds the words, in one of the ways it can answer."""

    def __init__(self, inner: Any, way: str) -> None:
        self._inner, self._way = inner, way

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def submit(self, tag: str, requests: Any, *, timeout_s: float) -> Any:
        if self._way == "refused":
            return NotTaken(CANARY, permanent=True)
        taken = self._inner.submit(tag, requests, timeout_s=timeout_s)
        return NoWord(CANARY) if self._way == "silent" else taken

    def results(self, over: Any, *, timeout_s: float) -> Any:
        for line in self._inner.results(over, timeout_s=timeout_s):
            name = line.custom_id
            match self._way:
                case "declined":
                    yield Declined(custom_id=name, reason=CANARY)
                case "cut":
                    yield Answered(custom_id=name, text=Sensitive(CANARY), cut=True)
                case "empty":
                    yield Answered(custom_id=name, text=Sensitive(" "))
                case "too_long":
                    yield Answered(custom_id=name, text=Sensitive(CANARY * 5000))
                case "unreadable":
                    yield Unreadable(custom_id=name)
                case _:
                    yield Answered(custom_id=name, text=Sensitive(CANARY))


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I6")
@pytest.mark.parametrize("way", WAYS)
def test_a_rewrite_stays_in_the_content_store(tmp_path: Path, way: str) -> None:
    """Submitter, collector, worker and sweeper, whatever the provider answers: no log, metric, row, batch or count of a
    run holds a word of the sender's or of the rewritten text."""
    desk = RewriteDesk()
    canned: Any = [{"contains": "", "content": CANARY}]
    with sweeping(tmp_path) as sweep:
        desk.telemetry = PowertoolsTelemetry("rewrite_batch_submitter", stage="dev")  # type: ignore[assignment]
        desk.provider = Provider(desk.provider, way)  # type: ignore[assignment]
        desk.vendors = {"openai": SimulatedModel(desk.clock, canned_answers=canned)}
        text = CANARY * 5000 if way == "unusable" else CANARY
        for number, surface in enumerate(("weekly_harmony", "direct_message", "weekly_harmony")):
            desk.enqueue(number, text=text, surface=surface)
        counts = []
        for _ in range(3):
            counts += [desk.submit(), desk.work(), desk.collect()]
            desk.sweep()
            desk.clock.advance(8000)
        desk.telemetry.flush()
        sweep.look_at(
            tables={
                "jobs": [desk.jobs.item(job.job_id) for job in desk.rows()],
                "batches": [*desk.batches.under_way("rewrite"), *desk.batches.ended("rewrite", limit=50)],
                "runs": counts,
            },
            queues={},
        )
        assert sweep.hits() == []
        assert not any(holds(ref) for ref in desk.content.refs())
    held = {ref.split("/")[0] for ref in desk.content.refs() if _held(desk, ref)}
    # The async job is answered whatever becomes of batches; a text that cannot be used is never asked about.
    assert held == ({"payload"} if way == "unusable" else {"text", "result"})


def _held(desk: RewriteDesk, ref: str) -> bool:
    return holds(json.dumps((desk.content.get(ref) or b"").decode().replace("\\n", "\n")))
