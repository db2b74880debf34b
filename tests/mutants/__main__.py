"""`make test-mutants`: plant each fault in a copy of the project and show the test that kills it.

python -m tests.mutants [NAME ...]
"""

from __future__ import annotations

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.mutants.catalogue import MUTANTS
from tests.mutants.mutant import Killed, Mutant, copy_tree, hunt


def main(names: list[str]) -> int:
    """0 when every number of every mutant is killed by a test that carries it."""
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    if names and len(chosen) != len(set(names)):
        print(f"unknown mutant; there are: {', '.join(mutant.name for mutant in MUTANTS)}")
        return 2
    survivors = 0
    with ThreadPoolExecutor(max_workers=2) as pool:
        for mutant, results in zip(chosen, pool.map(_one, chosen), strict=True):
            for result in results:
                survivors += not result.killed
                print(f"{'killed' if result.killed else 'SURVIVED':9}{mutant.name:38}{result.number:11}{result.by}")
    numbers = sum(len(mutant.numbers) for mutant in chosen)
    print(f"{len(chosen)} mutants, {numbers} numbers, {numbers - survivors} killed, {survivors} survived")
    return 1 if survivors else 0


def _one(mutant: Mutant) -> list[Killed]:
    tree = copy_tree()
    try:
        mutant.plant(tree)
        return hunt(mutant, tree)
    finally:
        shutil.rmtree(tree, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
