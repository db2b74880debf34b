"""`python -m ops.lifecycle_picture`: draws docs/lifecycle.md from the one transition table.

With `--check` nothing is written: 1 when the page is not what the table says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from shared.core.job import Status
from shared.core.lifecycle import CLAIM_CONDITION, MOVES, VERSION, MoveRule

PAGE = Path(__file__).resolve().parent.parent / "docs" / "lifecycle.md"

STATES = {
    Status.QUEUED: "exists and has not started; deferred is queued with a time and a reason",
    Status.PROCESSING: "one worker owns it, by its fence",
    Status.BATCH_SUBMITTED: "a provider has it in a batch",
    Status.COMPLETED: "done; final",
    Status.FAILED: "no worker will touch it; an operator decides by its category",
    Status.CANCELED: "withdrawn; final",
}


def picture() -> str:
    """The whole page."""
    lines = [
        "<!-- Drawn by `python -m ops.lifecycle_picture` from shared/core/lifecycle.py; a test compares. -->",
        "# The life of a job",
        "",
        f"Version {VERSION} of the lifecycle. Every move a job can make stands in one table in",
        "`shared/core/lifecycle.py`; the core refuses any other, and the store writes a move only if the row is",
        "still as it was read. Changing the table or the claim's condition raises the version's major number.",
        "",
        "```mermaid",
        *_diagram(MOVES),
        "```",
        "",
        "## States",
        "",
        "| state | what it means |",
        "|---|---|",
        *(f"| `{status}` | {STATES[status]} |" for status in Status),
        "",
        "## Moves",
        "",
        "| from | to | word in the history | when |",
        "|---|---|---|---|",
        *(f"| `{rule.was}` | `{rule.to}` | `{rule.reason}` | {rule.when} |" for rule in MOVES),
        "",
        f"A claim accepts a job when `{CLAIM_CONDITION}`. It sets who and when and raises the fence;",
        "every later write of that attempt names the fence, so a worker that lost its claim can write nothing.",
        "",
    ]
    return "\n".join(lines)


def _diagram(moves: Iterable[MoveRule]) -> list[str]:
    """One arrow for each pair of states, labelled with every word that takes it."""
    arrows: dict[tuple[Status, Status], list[str]] = {}
    for rule in moves:
        arrows.setdefault((rule.was, rule.to), []).append(rule.reason)
    lines = ["stateDiagram-v2", "    [*] --> queued: enqueue"]
    lines += [f"    {was} --> {to}: {', '.join(reasons)}" for (was, to), reasons in arrows.items()]
    left = {was for was, to in arrows if was is not to}
    return [*lines, *(f"    {status} --> [*]" for status in Status if status not in left)]


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page, or compare it."""
    wanted = picture()
    if "--check" in (sys.argv[1:] if argv is None else argv):
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted
        print("docs/lifecycle.md is up to date" if same else "run: python -m ops.lifecycle_picture")
        return 0 if same else 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(wanted, encoding="utf-8")
    print("wrote docs/lifecycle.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
