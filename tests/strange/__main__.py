"""Run strange executions again: `python -m tests.strange SEED` tells the story of one."""

from __future__ import annotations

import sys

from tests.strange.execution import execute


def main(arguments: list[str]) -> int:
    """1 when anything was found."""
    found = 0
    for argument in arguments:
        done = execute(int(argument), tell=True)
        print("\n".join(done.story))
        for problem in done.problems:
            print(f"FOUND {problem}")
        found += len(done.problems)
        print(f"seed {done.seed}: {dict(done.ends)}, {len(done.problems)} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
