"""Messages a second of one Lambda environment when every AWS and vendor call takes five milliseconds."""

from __future__ import annotations

from ops.bench.environment import OURS, SEQUENTIAL, THREADED, Environment, Run
from ops.bench.table import Measured, Row
from ops.bench.workload import BATCH, REPLIED, ROUTED

GROUP = "jobs/s of one environment, 5 ms a call"
DELAY_S = 0.005
PROMISED = {ROUTED: 4.0, REPLIED: 3.0}
WHAT = {ROUTED: "without an effect", REPLIED: "with one effect"}


def throughput(environments: dict[str, Environment], *, runs: int, jobs: int) -> Measured:
    """The best of `runs` of each way, the ways taking turns."""
    best: dict[tuple[str, str], Run] = {}
    for _ in range(runs):
        for kind in (ROUTED, REPLIED):
            for way in (OURS, SEQUENTIAL, THREADED):
                run = environments[way].run(kind, delay_s=DELAY_S, jobs=jobs)
                known = best.get((way, kind))
                best[way, kind] = run if known is None or run.wall_s < known.wall_s else known
    rows: list[Row] = []
    for kind, what in WHAT.items():
        for way, beside in ((SEQUENTIAL, "standard sequential"), (THREADED, "standard on ten threads")):
            rows.append(
                Row(
                    group=GROUP,
                    what=f"{what}, beside {beside}",
                    ours=best[OURS, kind].jobs_per_s,
                    standard=best[way, kind].jobs_per_s,
                    times_at_least=PROMISED[kind] if way == SEQUENTIAL else None,
                )
            )
    return Measured(
        rows=tuple(rows),
        notes=(
            f"Wall time of {jobs} messages in batches of {BATCH}, best of {runs} runs, the ways taking turns; the "
            "stub sleeps 5 ms in each call. Powertools' processor takes one record after the other; on ten threads "
            "its record handler runs in a pool of our own making, which it does not offer. All are bound by one "
            "interpreter's processor time: the faster the machine, the larger the ratio.",
        ),
    )
