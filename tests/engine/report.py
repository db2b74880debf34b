"""The closing line about AWS's own DynamoDB engine: used by how many tests, or why not. Never a silent skip.

A plugin: `pytest_plugins = ["tests.engine.report"]`.
"""

from __future__ import annotations

import re
from typing import Any

from tests.engine import dynamodb

SUITE = "tests/contract/"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print it when a contract suite ran."""
    ran = {
        report.nodeid
        for outcome in ("passed", "failed")
        for report in terminalreporter.stats.get(outcome, ())
        if getattr(report, "when", "") == "call" and report.nodeid.startswith(SUITE)
    }
    if not ran:
        return
    used = sum(dynamodb.KIND in re.split(r"[][-]", nodeid) for nodeid in ran)
    why_not = dynamodb.why_not()
    terminalreporter.section("AWS's own DynamoDB engine", sep="-")
    terminalreporter.write_line(f"not used: {why_not}" if why_not else f"used by {used:,} tests")
