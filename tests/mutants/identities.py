"""Planted faults in keys, letters and secrets that are not what they were, and faults that used to live."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

IDENTITIES: tuple[Mutant, ...] = ()
