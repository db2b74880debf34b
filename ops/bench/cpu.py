"""Processor time per message, with every HTTP call answered in process at once."""

from __future__ import annotations

from ops.bench.environment import OURS, SEQUENTIAL, Environment, Run
from ops.bench.table import Measured, Row
from ops.bench.workload import BATCH, REPLIED, ROUTED

GROUP = "CPU per message"


def cpu(environments: dict[str, Environment], *, runs: int, jobs: int) -> Measured:
    """The best of `runs`, the ways taking turns."""
    best: dict[tuple[str, str], Run] = {}
    for _ in range(runs):
        for kind in (ROUTED, REPLIED):
            for way in (OURS, SEQUENTIAL):
                run = environments[way].run(kind, delay_s=0, jobs=jobs)
                known = best.get((way, kind))
                best[way, kind] = run if known is None or run.cpu_s < known.cpu_s else known
    rows = tuple(
        Row(
            group=GROUP,
            what=what,
            ours=best[OURS, kind].cpu_ms_per_job,
            standard=best[SEQUENTIAL, kind].cpu_ms_per_job,
            unit="ms",
            digits=2,
        )
        for kind, what in ((ROUTED, "without an effect"), (REPLIED, "with one effect"))
    )
    calls = {key: run.calls / run.jobs for key, run in best.items()}
    return Measured(
        rows=rows,
        notes=(
            f"process_time of a warm worker process, batches of {BATCH}, best of {runs} runs of {jobs} messages, the "
            "ways taking turns. The SDK builds, signs and parses every request; only the wire is left out. AWS and "
            f"vendor calls a message: {calls[OURS, ROUTED]:.0f} and {calls[SEQUENTIAL, ROUTED]:.0f} without an "
            f"effect, {calls[OURS, REPLIED]:.0f} and {calls[SEQUENTIAL, REPLIED]:.0f} with one: ours claims, "
            "settles, and writes intent and record; the standard way keeps one idempotency record. "
            "Both read the text from S3.",
        ),
    )
