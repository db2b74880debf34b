"""Planted faults in what a refusal, an end and late evidence say of an open intent."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

NEVER_TWICE: tuple[Mutant, ...] = ()
