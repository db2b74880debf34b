"""Planted faults in lane `rewrite` as it is configured and deployed."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

RUNS = ("tests/infra/test_runs.py",)

REWRITING: tuple[Mutant, ...] = (
    Mutant(
        name="dev_takes_six",
        file="config/dev.yaml",
        old="      max_jobs_per_run: 5\n",
        new="      max_jobs_per_run: 6\n",
        reqs=("R16",),
        tests=RUNS,
    ),
    Mutant(
        name="the_submitter_comes_twice_as_often",
        file="config/parameter_defaults.yaml",
        old="      batch_submitter: 900\n",
        new="      batch_submitter: 480\n",
        reqs=("R4",),
        tests=RUNS,
    ),
    Mutant(
        name="a_run_without_time_is_taken_for_one",
        file="shared/core/lane.py",
        old="run.max_runtime_seconds < max(LEAST_RUN_S, spec.job_timeout_s + 1)",
        new="run.max_runtime_seconds < LEAST_RUN_S",
        reqs=("R6",),
        tests=RUNS,
    ),
    Mutant(
        name="whoever_waits_is_batched_too",
        file="config/parameter_defaults.yaml",
        old="          use: {execution_mode: async}\n",
        new="          use: {execution_mode: batch}\n",
        reqs=("R12",),
        tests=RUNS,
    ),
    Mutant(
        name="a_provider_is_quoted",
        file="shared/core/batch.py",
        old="    if said.reason and not is_code(said.reason):",
        new="    if said.reason and len(said.reason) > 1000:",
        reqs=("R14",),
        faults=("I1", "I6"),
        tests=("tests/leaks/test_canary_rewrite.py",),
    ),
)
