"""Many strange executions, by several processes, going on where the last run stopped: `make night`."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.collector import look_seldom
from tests.strange import coverage
from tests.strange.execution import execute

STATE = Path(__file__).resolve().parent.parent.parent / "build" / "night.json"
EXECUTIONS, BLOCK = 1_000_000, 500


@dataclass(slots=True)
class Block:
    """What some executions in a row showed."""

    first: int
    count: int
    seen: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    found: dict[int, list[str]] = field(default_factory=dict)
    cpu_s: float = 0.0


def run_block(first: int, count: int, *, until_found: bool = False) -> Block:
    """Seeds `first` to `first + count - 1`, all of them or until something is found."""
    began = time.process_time()
    block = Block(first, count)
    for seed in range(first, first + count):
        done = execute(seed)
        block.seen.update(done.seen)
        block.ends.update(done.ends)
        if done.problems:
            block.found[seed] = done.problems
            if until_found:
                break
    block.cpu_s = time.process_time() - began
    return block


@dataclass(slots=True)
class State:
    """How far it came; kept after every block, in the order of the seeds."""

    done: int = 0
    cpu_s: float = 0.0
    seen: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    found: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> State:
        """The state of the last run; a new one where there is none."""
        if not path.exists():
            return cls()
        kept = json.loads(path.read_text())
        return cls(kept["done"], kept["cpu_s"], Counter(kept["seen"]), Counter(kept["ends"]), kept["found"])

    def take(self, block: Block) -> None:
        """One block more."""
        self.done = block.first + block.count
        self.cpu_s += block.cpu_s
        self.seen.update(block.seen)
        self.ends.update(block.ends)
        self.found |= {str(seed): problems for seed, problems in block.found.items()}

    def write(self, path: Path) -> None:
        """Whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {name: getattr(self, name) for name in ("done", "cpu_s", "seen", "ends", "found")}
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(document, indent=1))
        beside.replace(path)


def night(executions: int, jobs: int, path: Path) -> State:
    """Go on until so many have run; a stop loses the blocks under way and nothing else."""
    look_seldom()
    state = State.read(path)
    firsts = range(state.done, executions, BLOCK)
    blocks = [(first, min(BLOCK, executions - first)) for first in firsts]
    began, before = time.monotonic(), state.done
    with ExitStack() as stack:
        # A fresh interpreter each: what this one has running stays out of it.
        fresh = multiprocessing.get_context("spawn")
        each = map if jobs == 1 else stack.enter_context(fresh.Pool(jobs, look_seldom)).imap
        for block in each(_run, blocks):
            state.take(block)
            state.write(path)
            for seed, problems in block.found.items():
                print(f"seed {seed}: {problems[0]}  (python -m tests.strange {seed})", flush=True)
            rate = (state.done - before) / (time.monotonic() - began)
            left_min = (executions - state.done) / rate / 60
            print(
                f"{state.done:,} of {executions:,} executions, seeds {block.first} to {state.done - 1},"
                f" {len(state.found)} with a finding, {rate:.0f} a second, {left_min:.0f} min left",
                flush=True,
            )
    return state


def _run(block: tuple[int, int]) -> Block:
    return run_block(*block)


def main(arguments: list[str]) -> int:
    """1 when anything was found or a kind was never drawn."""
    parser = argparse.ArgumentParser(prog="make night", description=__doc__)
    parser.add_argument("--executions", type=int, default=EXECUTIONS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--state", type=Path, default=STATE, help="where to go on from; remove it to begin anew")
    asked = parser.parse_args(arguments)
    state = night(asked.executions, asked.jobs, asked.state)
    print("\n".join(coverage.lines(state.seen)))
    absent = coverage.missing(state.seen)
    print(f"{state.done:,} executions in {state.cpu_s:,.0f} CPU s: {len(state.found)} with a finding; ends:")
    print(", ".join(f"{end} {count:,}" for end, count in state.ends.most_common()))
    if absent:
        print(f"never drawn: {', '.join(absent)}")
    return 1 if state.found or absent else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
