"""Planted faults in scheduled runs, the batches they keep, the router, and who starts a run by hand."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

REWRITE, RUN, LIFECYCLE = "shared/core/rewrite.py", "shared/core/run.py", "shared/core/lifecycle.py"
TAKE, KEEP, SUBMIT = (
    "shared/usecases/take_run.py",
    "shared/usecases/keep_batches.py",
    "shared/usecases/submit_batches.py",
)
COLLECT, AUDIT, DOOR = ("shared/usecases/collect_batches.py", "shared/usecases/audit.py", "shared/runtime/run_door.py")
START, RUNS, PAGES = "shared/usecases/start_run.py", "ops/cli/runs.py", "ops/cli/run_pages.py"
CORE, USECASES = "tests/unit/core", "tests/unit/usecases"
DOORS, CLI, CLI_LANE = (
    "tests/functions/test_run_door.py",
    "tests/unit/ops/cli/test_runs.py",
    "tests/unit/ops/cli/test_run_lane.py",
)
LANE = "tests/unit/usecases/test_run_lane.py"

RUN_FAULTS: tuple[Mutant, ...] = (
    # ------------------------------------------------------------------------------------- record and router
    Mutant(
        name="a_record_without_its_attempts",
        file=REWRITE,
        old='        "attempt_count": job.attempt_count,\n',
        new="",
        reqs=("R2",),
        tests=(CORE,),
    ),
    Mutant(
        name="facts_may_hold_one_field_more",
        file=REWRITE,
        old="        if len(values) > len(known):",
        new="        if len(values) > len(known) + 1:",
        reqs=("R3",),
        tests=(CORE,),
    ),
    Mutant(
        name="the_router_takes_the_last_rule",
        file=REWRITE,
        old="    for rule in policy.rules:\n        if all(",
        new="    for rule in reversed(policy.rules):\n        if all(",
        reqs=("R12",),
        tests=(CORE,),
    ),
    Mutant(
        name="languages_share_a_batch",
        file=REWRITE,
        old='        locales=f"{facts.language_pair.source}>{facts.language_pair.target}",',
        new='        locales="any",',
        reqs=("R12",),
        tests=(USECASES,),
    ),
    # ------------------------------------------------------------------------------------------------- taking
    Mutant(
        name="a_run_takes_one_more",
        file=TAKE,
        old="        if claimed - len(spared) >= run.max_jobs_per_run:",
        new="        if claimed - len(spared) > run.max_jobs_per_run:",
        reqs=("R7",),
        tests=(USECASES,),
    ),
    Mutant(
        name="a_run_reads_the_whole_backlog",
        file=TAKE,
        old="        LOOK_AHEAD * run.max_jobs_per_run,",
        new="        1_000_000,",
        reqs=("R7",),
        tests=(USECASES,),
    ),
    Mutant(
        name="the_order_is_always_by_due_time",
        file=RUN,
        old="        return sorted(waiting, key=_created if self.order is Order.CREATED else _due)",
        new="        return sorted(waiting, key=_due)",
        reqs=("R6",),
        tests=(CORE,),
    ),
    Mutant(
        name="a_run_of_early_jobs_passes_a_switch",
        file=TAKE,
        old="    if standing.closes_admission:\n        return standing.scope",
        new="    if standing.closes_admission and not lane.run:\n        return standing.scope",
        reqs=("R6",),
        tests=(USECASES,),
    ),
    Mutant(
        name="overflow_uses_an_attempt",
        file=LIFECYCLE,
        old='"overflow", now, detail=reason, not_before_at=until, **free,',
        new='"overflow", now, detail=reason, not_before_at=until, attempt_count=job.attempt_count + 1, **free,',
        reqs=("R7", "R17"),
        tests=(USECASES,),
    ),
    Mutant(
        name="a_refused_batch_is_at_fault",
        file=SUBMIT,
        old="        if answer.permanent:",
        new="        if answer.permanent or answer.limited or answer.auth:",
        reqs=("R17",),
        tests=(USECASES,),
    ),
    # ------------------------------------------------------------------------------------------------- batches
    Mutant(
        name="a_lost_answer_is_never_looked_for",
        file=KEEP,
        old="        if found:\n",
        new="        if found and self.clock.now() < batch.intent_at:\n",
        reqs=("R8",),
        faults=("B8",),
        tests=(USECASES, "tests/crash/test_batches.py"),
    ),
    Mutant(
        name="a_line_without_an_end_costs_nothing",
        file=LIFECYCLE,
        old='        "resubmit",\n        now,\n        detail=error,\n        not_before_at=decision.at,\n'
        "        attempt_count=decision.attempt_count,",
        new='        "resubmit",\n        now,\n        detail=error,\n        not_before_at=decision.at,\n'
        "        attempt_count=job.attempt_count,",
        reqs=("R10", "R11"),
        tests=(USECASES,),
    ),
    Mutant(
        name="a_job_whose_batch_is_gone_is_in_order",
        file=AUDIT,
        old="                if (seen.job_id, seen.fence) in kept:",
        new="                if (seen.job_id, seen.fence) in kept or not kept:",
        reqs=("R10",),
        faults=("B8",),
        tests=(LANE,),
    ),
    # ---------------------------------------------------------------------------------------------------- runs
    Mutant(
        name="a_run_does_not_look_first",
        file=DOOR,
        old="            if does.pending():",
        new="            if does.pending() or True:",
        reqs=("R5",),
        tests=(DOORS,),
    ),
    Mutant(
        name="a_request_needs_no_id",
        file=DOOR,
        old="    if asked is None:\n        return None",
        new="    if not isinstance(asked, str) or len(asked) != 4:\n        return None",
        reqs=("R4",),
        tests=(DOORS,),
    ),
    Mutant(
        name="a_run_is_started_before_it_is_kept",
        file=START,
        old='    note(subject_of(schedule), ASKED, by, {"why": reason, "request": request_id}, history, clock)\n'
        "    answer = invoke(request_id)",
        new="    answer = invoke(request_id)\n"
        '    note(subject_of(schedule), ASKED, by, {"why": reason, "request": request_id}, history, clock)',
        reqs=("R4",),
        tests=(CLI,),
    ),
    Mutant(
        name="anybody_can_be_named_as_starter",
        file=RUNS,
        old='    if by is not None and by not in (caller, caller.rpartition("/")[2]):',
        new='    if by is not None and not by and by not in (caller, caller.rpartition("/")[2]):',
        reqs=("R4",),
        tests=(CLI,),
    ),
    Mutant(
        name="a_run_forgets_its_models",
        file=TAKE,
        old="            if model:\n",
        new="            if model and not name:\n",
        reqs=("R13",),
        tests=(DOORS,),
    ),
    Mutant(
        name="models_are_cut_at_their_first_point",
        file=PAGES,
        old='        model, _, what = name.rpartition(".")',
        new='        model, _, what = name.partition(".")',
        reqs=("R13",),
        tests=(CLI,),
    ),
    Mutant(
        name="why_forgets_the_schedule",
        file="shared/usecases/explain.py",
        old="        if earliest is not None and turn is not None:",
        new="        if earliest is not None and turn is not None and not turn.schedule:",
        reqs=("F9",),
        tests=(LANE,),
    ),
    Mutant(
        name="more_are_replayed_than_a_run_takes",
        file="shared/core/redrive.py",
        old="    return lane.baseline * lane.parallel if lane.run is None else lane.run.max_jobs_per_run",
        new="    return lane.baseline * lane.parallel if lane.run is None else 10 * lane.run.max_jobs_per_run",
        reqs=("X9",),
        tests=(LANE,),
    ),
)
