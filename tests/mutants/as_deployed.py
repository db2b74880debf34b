"""Planted faults in what AWS is given: environments, guards, releases, rules."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

AS_DEPLOYED: tuple[Mutant, ...] = ()
