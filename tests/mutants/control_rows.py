"""Planted faults in switches, caps and scopes that are not what they seem."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CONTROL_ROWS: tuple[Mutant, ...] = ()
