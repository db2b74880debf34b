"""Planted faults in dead letters, plans, releases and resolutions."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE, USECASES, CONTRACT = "tests/unit/core", "tests/unit/usecases", "tests/contract/test_plans.py"
LAW, CONDITIONS = "shared/core/redrive.py", "shared/adapters/aws/conditions.py"

REDRIVE: tuple[Mutant, ...] = (
    Mutant(
        name="authors_approve_their_own_plans",
        file=CONDITIONS,
        old='SOMEBODY_ELSE = "(#requester <> :me OR #count <= :alone)"',
        new='SOMEBODY_ELSE = "(#requester <> :me OR #requester = :me OR #count <= :alone)"',
        reqs=("C9",),
        faults=("J6",),
        tests=(CONTRACT,),
    ),
    Mutant(
        name="a_lane_with_two_plans",
        file=CONDITIONS,
        old='LANE_FREE = "(attribute_not_exists(#plan_id) OR #plan_id = :mine OR #plan_id = :over)"',
        new='LANE_FREE = "(attribute_not_exists(#plan_id) OR #plan_id <> :mine OR #plan_id = :over)"',
        faults=("F2",),
        tests=(CONTRACT,),
    ),
    Mutant(
        name="no_canary",
        file=LAW,
        old="WAVES = (1, 11)",
        new="WAVES = (11, 11)",
        reqs=("C10",),
        faults=("F5",),
        tests=(CORE, USECASES),
    ),
    Mutant(
        name="a_replay_does_not_look_at_the_queue",
        file=LAW,
        old="    idle = view.lane.baseline * view.lane.parallel - busy",
        new="    idle = view.lane.baseline * view.lane.parallel",
        reqs=("C11",),
        faults=("F5",),
        tests=(CORE,),
    ),
    Mutant(
        name="a_replay_takes_the_whole_pace",
        file=LAW,
        old="    return int(SHARE * most * look_s / 60 / rate.want_of(job).requests)",
        new="    return int(most * look_s / 60 / rate.want_of(job).requests)",
        reqs=("C11",),
        tests=(CORE,),
    ),
    Mutant(
        name="a_relapse_goes_on",
        file=LAW,
        old="    if relapsed:",
        new="    if relapsed > 1:",
        faults=("F5",),
        tests=(CORE, USECASES),
    ),
    Mutant(
        name="no_effect_horizon",
        file=LAW,
        old="    if oldest is not None and now - oldest > timedelta(days=REPLAY_HORIZON_DAYS):",
        new="    if oldest is not None and now - oldest > timedelta(days=REPLAY_HORIZON_DAYS + 30):",
        faults=("F3", "C5"),
        tests=(CORE, USECASES),
    ),
    Mutant(
        name="an_unknown_outcome_is_replayed",
        file=LAW,
        old="        if row.open:",
        new="        if row.open and row.fence < 0:",
        reqs=("C9",),
        faults=("A1", "F6"),
        tests=(CORE, USECASES),
    ),
    Mutant(
        name="a_release_keeps_the_fence",
        file="shared/core/lifecycle.py",
        old="        detail=plan_id,\n        fence=job.fence + 1,",
        new="        detail=plan_id,\n        fence=job.fence,",
        faults=("F2", "F7"),
        tests=(CORE, USECASES),
    ),
    Mutant(
        name="a_moved_letter_is_forgotten",
        file="shared/usecases/run_attempt.py",
        old="    if job.status is not Status.FAILED or job.waits or not envelope.is_dead_letter(delivery.body):",
        new="    if job.status is not Status.FAILED or envelope.is_dead_letter(delivery.body):",
        reqs=("C9",),
        faults=("F4",),
        tests=(USECASES,),
    ),
    Mutant(
        name="not_sent_while_its_worker_sends",
        file="shared/usecases/resolve_unknown.py",
        old="        certain = max(row.intent_at for row in rows) + timedelta(seconds=self._lane(job).visibility_s)",
        new="        certain = max(row.intent_at for row in rows) + timedelta(seconds=0)",
        faults=("A4",),
        tests=(USECASES,),
    ),
    Mutant(
        name="dead_letters_expire_without_a_word",
        file="shared/core/cohort.py",
        old="    return job.expires_at is not None and job.expires_at - now <= timedelta(days=WARN_DAYS)",
        new="    return job.expires_at is not None and job.expires_at <= now",
        reqs=("M8",),
        tests=(CORE,),
    ),
    Mutant(
        name="every_error_is_a_cohort_of_its_own",
        file="shared/core/cohort.py",
        old="(category, signature_of(job), job.tenant if by_tenant else None)",
        new="(category, job.last_error or '', job.tenant if by_tenant else None)",
        reqs=("C8",),
        tests=(CORE,),
    ),
    Mutant(
        name="an_export_with_the_producers_key",
        file="ops/cli/dlq.py",
        old='        "task": job.task,\n        "category"',
        new='        "task": job.key,\n        "category"',
        reqs=("C10",),
        faults=("I5",),
        tests=("tests/unit/ops/cli/test_dlq.py",),
    ),
)
