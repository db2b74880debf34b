"""Planted faults in what only tasks that change their mind, and windows that end, can show."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

STRANGE_TASKS: tuple[Mutant, ...] = ()
