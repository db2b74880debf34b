"""The closing table of strange executions: how many, how they ended, and how often each kind was drawn.

A plugin: `pytest_plugins = ["tests.strange.report"]`. What a test ran travels in its report, so that the table is
complete however many processes shared the work.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.strange import coverage

PROPERTY = "strange_executions"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the table when anything was run."""
    documents = [
        json.loads(value)
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if not documents:
        return
    ends, seen = (coverage.summed(Counter(document[part]) for document in documents) for part in ("ends", "seen"))
    count, found = (sum(document[part] for document in documents) for part in ("count", "found"))
    terminalreporter.section("strange executions", sep="-")
    terminalreporter.write_line(f"{count:,} executions, {found} with a finding; {len(coverage.required())} kinds drawn")
    terminalreporter.write_line("  " + ", ".join(f"{end} {many:,}" for end, many in ends.most_common()))
    for line in coverage.lines(seen):
        terminalreporter.write_line(line)
