"""Planted faults in what an incident and a learnt limit do to a pace."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

NIGHTS: tuple[Mutant, ...] = ()
