"""The report at the end of a test run: which requirement and which failure row is proven, by which tests.

A number counts as proven when a passing test carries it and `tests/mutants` holds a fault that a test with
this number kills; a number that only a test carries is listed as claimed.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
LISTS = {"req": ROOT / "docs" / "requirements.md", "fault": ROOT / "docs" / "failures.md"}
MUTANTS = ROOT / "tests" / "mutants"


def known(kind: str) -> dict[str, str]:
    """Number → its sentence, from the project's own list."""
    page = LISTS[kind]
    if not page.exists():
        return {}
    rows = re.findall(r"^\| ([A-Z]\d+) \| (.+?) \|", page.read_text(), re.MULTILINE)
    return dict(rows)


def not_applicable() -> dict[str, str]:
    """Failure rows that the list marks as not applicable, with the sentence why."""
    page = LISTS["fault"]
    if not page.exists():
        return {}
    rows = re.findall(r"^\| ([A-Z]\d+) \| .*\| (not applicable.*?) \|$", page.read_text(), re.MULTILINE)
    return dict(rows)


def with_mutant() -> dict[str, set[str]]:
    """Numbers for which a planted fault exists."""
    try:
        from tests.mutants.catalogue import MUTANTS as planted
    except ImportError:
        return {"req": set(), "fault": set()}
    return {
        "req": {number for mutant in planted for number in mutant.reqs},
        "fault": {row for mutant in planted for row in mutant.faults},
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--proves req:R8 --proves fault:A3`: only tests that carry one of these numbers."""
    parser.addoption("--proves", action="append", default=[], metavar="NUMBER", help="only tests with this number")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Carry each test's numbers into its report, so that they arrive from every worker process."""
    wanted = set(config.getoption("--proves"))
    if wanted:
        chosen = [item for item in items if wanted & set(_numbers(item))]
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = chosen
    for item in items:
        for kind in LISTS:
            for mark in item.iter_markers(kind):
                for number in mark.args:
                    item.user_properties.append((kind, number))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the report and keep it as a file."""
    proofs: dict[str, dict[str, set[str]]] = {kind: defaultdict(set) for kind in LISTS}
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, ()):
            for kind, number in report.user_properties:
                if kind in proofs and (outcome == "passed" or report.when == "call"):
                    proofs[kind][number].add(report.nodeid if outcome == "passed" else "")
    if not any(proofs.values()):
        return
    planted = with_mutant()
    document: dict[str, Any] = {}
    terminalreporter.section("what is proven", sep="-")
    for kind, title in (("req", "requirements"), ("fault", "failure rows")):
        numbers = known(kind)
        # A failing test takes its numbers off the list, whatever else passed.
        held = {number: tests for number, tests in proofs[kind].items() if "" not in tests}
        proven = sorted((n for n in held if n in planted[kind]), key=_order)
        claimed = sorted((n for n in held if n not in planted[kind]), key=_order)
        aside = not_applicable() if kind == "fault" else {}
        open_ = sorted((n for n in numbers if n not in held and n not in aside), key=_order)
        terminalreporter.write_line(f"{title}: {len(proven)} proven: {' '.join(proven)}")
        terminalreporter.write_line(f"  {len(claimed)} claimed, no planted fault yet: {' '.join(claimed)}")
        terminalreporter.write_line(f"  {len(open_)} open: {' '.join(open_)}")
        for number in sorted(aside, key=_order):
            terminalreporter.write_line(f"  {number} {aside[number]}")
        document[kind] = {
            "proven": {n: sorted(held[n]) for n in proven},
            "claimed": {n: sorted(held[n]) for n in claimed},
            "open": open_,
        }
    target = ROOT / "build" / "reports" / "proof.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(document, indent=1))
    terminalreporter.write_line(f"by which tests: {target.relative_to(ROOT)}, or `make report`")


def _numbers(item: pytest.Item) -> list[str]:
    """`req:R8` or `fault:A3`: rows and requirements share letters."""
    return [f"{kind}:{number}" for kind in LISTS for mark in item.iter_markers(kind) for number in mark.args]


def _order(number: str) -> tuple[str, int]:
    return number[0], int(number[1:])
