"""How many seeds a second of processor time runs: `python -m tests.simulation.speed [SEEDS]`."""

from __future__ import annotations

import sys
import time

from tests.collector import look_seldom
from tests.simulation.seeds import run_seed

SEEDS = 1000


def seeds_a_second(seeds: int) -> float:
    """Seeds 0, 1, 2 … by the processor's clock: what else runs on the machine counts little."""
    run_seed(0)
    look_seldom()
    began = time.process_time()
    for seed in range(seeds):
        run_seed(seed)
    return seeds / (time.process_time() - began)


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS
    print(f"{seeds_a_second(asked):.1f} seeds a CPU second (seeds 0 to {asked - 1})")
