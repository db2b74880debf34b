"""The catalogue of planted faults keeps up with the code it plants them in."""

from __future__ import annotations

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import ROOT, Mutant
from tests.proof import known


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_fault_still_finds_its_line(mutant: Mutant) -> None:
    """Its line stands in its file exactly once, and its numbers are on the lists."""
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1
    assert set(mutant.reqs) <= set(known("req"))
    assert set(mutant.faults) <= set(known("fault"))
    assert mutant.numbers, "it proves nothing"


def test_names_are_unique() -> None:
    """A mutant is asked for by its name."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
