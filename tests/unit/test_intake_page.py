"""docs/intake.md tells a sender the truth: its example is run, its limits are the code's."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from functions.intake.handler import STATUS
from shared.core.job import MAX_KEY_PART
from shared.core.lane import KNOWN_EVENTS_DAYS
from shared.core.webhook import LIVE_KEYS, MAX_BODY_BYTES, MIN_KEY_BYTES, WINDOW_S, Authenticity, authenticity
from shared.usecases.receive_event import Reception

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "intake.md").read_text(encoding="utf-8")
KEY = "a-key-of-at-least-thirty-two-characters"


@pytest.mark.fault("J1")
def test_the_example_signs_what_the_intake_verifies() -> None:
    """With the standard library alone, over the bytes that are sent."""
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    told: dict[str, Any] = {}
    exec(compile(example, "docs/intake.md", "exec"), told)
    request = told["signed"]("https://example.com/events/acme", KEY, {"id": "evt-1", "data": {"text": "é"}})
    headers = {name.lower(): value for name, value in request.header_items()}
    found = authenticity(
        body=request.data,
        timestamp=headers["penstock-timestamp"],
        signature=headers["penstock-signature"],
        keys=[KEY.encode()],
        now=datetime.now(UTC),
    )
    assert (found, request.get_method()) == (Authenticity.VERIFIED, "POST")


def test_every_answer_is_on_the_page() -> None:
    """Status and word, as the handler gives them; 503 stands with the other 5xx."""
    told = dict(re.findall(r"^\| (\d{3}) \| `(\w+)` \|", PAGE, re.MULTILINE))
    given = {str(status): reception.value for reception, status in STATUS.items()}
    assert given.pop("503") == Reception.UNAVAILABLE
    assert told == given


def test_its_numbers_are_the_codes() -> None:
    """A limit that is changed is changed there, too."""
    assert f"at most {MAX_KEY_PART}" in PAGE
    assert f"at most {MAX_BODY_BYTES // 1024} KB" in PAGE
    assert f"at least {MIN_KEY_BYTES} characters" in PAGE
    assert (LIVE_KEYS, WINDOW_S, KNOWN_EVENTS_DAYS) == (2, 300, 6)


def test_every_reason_is_on_the_page() -> None:
    """What an operator finds in the log is explained."""
    for reason in (*Authenticity, "bad_input", "enqueue_conflict"):
        assert reason == Authenticity.VERIFIED or f"`{reason}`" in PAGE
