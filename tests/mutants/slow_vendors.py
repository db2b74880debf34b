"""Planted faults in pacing for slow and strict vendors."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SLOW_VENDORS: tuple[Mutant, ...] = ()
