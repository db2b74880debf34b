"""The exploration's closing table: executions and shares by end, per kind of vendor and per fault.

A plugin: `pytest_plugins = ["tests.crash.report"]`. What a test explored travels in its report, so the table is
complete however many processes shared the work.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

PROPERTY = "crash_exploration"
LESSER = ", a lesser engine"
"""How the titles of engines end that are there to be caught: one line each is enough."""
TARGET = Path(__file__).resolve().parent.parent.parent / "build" / "reports" / "crash.json"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the table and keep it as a file, when anything was explored."""
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
    merged = merge(documents)
    terminalreporter.section("crash exploration", sep="-")
    for line in lines(merged):
        terminalreporter.write_line(line)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(json.dumps(merged, indent=1))
    terminalreporter.write_line(f"in full: {TARGET.relative_to(TARGET.parent.parent.parent)}")


def merge(documents: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """One document per engine and exploration, counts added up."""
    merged: dict[str, Any] = {}
    for document in documents:
        into = merged.setdefault(
            document["title"],
            {"executions": 0, "runs": 0, "duplicates": 0, "lost": 0, "slowest_s": 0.0, "ends": {}, "by_fault": {}},
        )
        for name in ("executions", "runs", "duplicates", "lost"):
            into[name] += document[name]
        into["slowest_s"] = max(into["slowest_s"], document["slowest_s"])
        for table in ("ends", "by_fault"):
            for row, end, count in document[table]:
                counts = into[table].setdefault(row, {})
                counts[end] = counts.get(end, 0) + count
    return merged


def lines(merged: Mapping[str, Any]) -> Iterable[str]:
    """The table, as text."""
    for title, found in sorted(merged.items()):
        yield (
            f"{title}: {found['executions']:,} executions, {found['duplicates']} with a duplicate,"
            f" {found['lost']} with a loss; at the latest {found['slowest_s']:g} s after the last fault"
        )
        if title.endswith(LESSER):
            continue
        for heading, table in (("vendor", found["ends"]), ("fault", found["by_fault"])):
            for row, counts in sorted(table.items()):
                total = sum(counts.values())
                shares = ", ".join(
                    f"{end} {count / total:.1%}" for end, count in Counter(counts).most_common() if count
                )
                yield f"  {heading} {row:<19}{total:>7,}  {shares}"
