"""The form of the runbooks: everything an operator types has its answer beside it. That it is true: tests/e2e."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import test_runbooks
from tests.e2e.runbook import AWAY, ELSEWHERE, RUNBOOKS, blocks, promised

PAGES = sorted(RUNBOOKS.glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_runbook_is_followed(page: Path) -> None:
    """Each page has its own test on the local stack, and no block escapes it but those that say why."""
    assert callable(getattr(test_runbooks, f"test_the_{page.stem}_runbook", None)), f"nobody follows {page.name}"
    found = blocks(page)
    away = [block for block in found if AWAY in block.how]
    part, why = ELSEWHERE.get(page.name, ("", ""))
    assert all(part and part in block.commands for block in away), f"say in ELSEWHERE why these are not typed: {away}"
    assert why in page.read_text()
    assert all(block.promise for block in found if block not in away)
    fences = sum(line.strip().startswith("```") for line in page.read_text().splitlines())
    assert fences == 4 * (len(found) - len(away)) + 2 * len(away)


@pytest.mark.parametrize(
    "text", ["```\npenstock status\n```\n", "```sh\npenstock status\n```\nIt says something.\n", "```sh\npenstock\n"]
)
def test_a_block_without_its_answer_is_refused(tmp_path: Path, text: str) -> None:
    """By the line it stands in."""
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(ValueError, match=r"page\.md"):
        blocks(page)


def test_a_promise_that_is_not_kept_is_found() -> None:
    """Every line, in its order; what a word in capitals stands for is taken from its place."""
    answer = "plan  0123456789ab\nApprove it with: approve 0123456789ab"
    assert promised(("plan PLAN", "approve PLAN"), answer) == {"PLAN": "0123456789ab"}
    assert promised(("approve PLAN", "plan PLAN"), answer) is None
    assert promised(("plan … now",), answer) is None
    assert promised(("it is finished",), answer) is None
