"""Rules that every synthesized stage must meet: small functions over templates, each with its reason.

They cover what cdk-nag and cfn-lint cannot know. `check` runs them all; app.py fails on any finding; each is
proven by a planted mistake in tests/infra.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from infra.rules.assembly import Assembly

Rule = Callable[[Assembly], Iterable[str]]
"""Yields one sentence per mistake: where, and what to do."""

MODULES = ("queues", "functions", "doors", "schedules", "stores", "access", "calls", "people", "watching", "limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A rule that is not met."""

    rule: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.sentence}"


RULES: dict[str, Rule] = {}


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register a rule under its number."""

    def register(function: Rule) -> Rule:
        if name in RULES:
            raise ValueError(f"two rules are called {name}")
        RULES[name] = function
        return function

    return register


def check(assembly: Assembly) -> list[Finding]:
    """Every finding of every rule."""
    for module in MODULES:
        importlib.import_module(f"infra.rules.{module}")
    return [Finding(rule=name, sentence=sentence) for name, look in RULES.items() for sentence in look(assembly)]
