"""Planted faults in roles, second voices, small payloads and their cost."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

WHO_AND_WHAT_FOR: tuple[Mutant, ...] = ()
