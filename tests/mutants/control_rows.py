"""Planted faults in switches, caps and scopes that are not what they seem."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SETTING = "shared/usecases/set_switch.py"
NAMED = ("tests/unit/usecases/test_set_switch.py", "tests/unit/ops/cli/test_control_names.py")
CORRUPT = ("tests/contract/test_control_corrupt.py", "tests/unit/ops/cli/test_control_mended.py")
FED = ("tests/unit/core/test_feeding.py", "tests/unit/ops/cli/test_feeding.py")
TENANTS = ("tests/unit/core/test_tenants.py", "tests/unit/test_client.py", "tests/functions/test_intake.py")

CONTROL_ROWS: tuple[Mutant, ...] = (
    Mutant(
        name="a_stop_at_a_name_that_nobody_has",
        file=SETTING,
        old="        if anyway or _stands(switch.scope, control):",
        new="        if True:",
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_halt_that_waits_for_the_lanes",
        file=SETTING,
        old="        if switch.level is Level.HALT or anyway:",
        new="        if anyway:",
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_task_of_any_name",
        file="shared/core/scopes.py",
        old="    if scope in known:",
        new='    if scope in known or kind == "task":',
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_checklist_of_nothing",
        file="shared/usecases/examine.py",
        old="            check_known(scope, self.lanes)",
        new="            pass",
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_tenant_with_nothing_goes_unnoticed",
        file="ops/cli/control.py",
        old="    if found is not None and not found.at_least:",
        new="    if found is None:",
        faults=("E8",),
        tests=NAMED,
    ),
    Mutant(
        name="a_cap_without_bounds",
        file="shared/adapters/capacity_rows.py",
        old='        cap=fields.whole("cap", least=0, most=_MOST_CAP),',
        new='        cap=fields.whole("cap"),',
        faults=("E9",),
        tests=CORRUPT,
    ),
    Mutant(
        name="a_mended_cap_at_an_old_version",
        file="shared/usecases/pin_cap.py",
        old="    after = CapacityState(cap=lane.baseline, version=us_of(clock.now()))",
        new="    after = CapacityState(cap=lane.baseline, version=1)",
        faults=("E9",),
        tests=CORRUPT,
    ),
    Mutant(
        name="a_halt_that_opens_the_rest",
        file=SETTING,
        old='        control.reset_switches(replace(switch, scope="all"), switch)',
        new="        control.reset_switches(switch)",
        faults=("E8",),
        tests=CORRUPT,
    ),
    Mutant(
        name="an_empty_map_in_a_row_that_lost_its_own",
        file="shared/adapters/aws/control.py",
        old="                ConditionExpression=conditions.NO_ROW_YET,",
        new='                ConditionExpression="attribute_not_exists(#pk) OR attribute_exists(#pk)",',
        faults=("E8",),
        tests=CORRUPT,
    ),
    Mutant(
        name="a_halt_beside_a_corrupt_entry_is_not_felt",
        file="shared/usecases/switchboard.py",
        old="            return self._seen if isinstance(exc, Unavailable) else self._seen.tightened(exc.readable)",
        new="            return self._seen",
        faults=("E8",),
        tests=CORRUPT,
    ),
    Mutant(
        name="a_scope_there_cannot_be_is_skipped_unseen",
        file="shared/adapters/switch_rows.py",
        old="        check_scope(scope)",
        new="        pass",
        faults=("E9",),
        tests=CORRUPT,
    ),
    Mutant(
        name="a_reset_throws_readable_switches_away",
        file="shared/usecases/reset_switches.py",
        old="    except UnreadableRow as exc:\n        problem = exc.problem\n    else:",
        new="    except UnreadableRow as exc:\n        problem = exc.problem\n    if not control:",
        faults=("E9",),
        tests=CORRUPT,
    ),
    Mutant(
        name="a_moment_beyond_all_calendars",
        file="shared/adapters/budget_rows.py",
        old="        return value if type(value) is int and abs(value) <= _MOST_US else self._bad(name)",
        new="        return value if type(value) is int else self._bad(name)",
        faults=("E9",),
        tests=CORRUPT,
    ),
    Mutant(
        name="a_disabled_source_goes_untold",
        file="shared/core/feeding.py",
        old='    if source.state == "Disabled":',
        new='    if source.state == "Off":',
        faults=("B10",),
        tests=FED,
    ),
    Mutant(
        name="a_job_whose_workers_get_nothing_runs_now",
        file="shared/usecases/explain.py",
        old="        fed = self.trouble is None or not self.trouble.stops",
        new="        fed = True",
        faults=("B10",),
        tests=FED,
    ),
    Mutant(
        name="a_new_job_of_a_tenant_with_a_slash",
        file="shared/usecases/enqueue.py",
        old="    job_id = job_id_of(lane.name, new_tenant(request.tenant), request.task, request.key)",
        new="    job_id = job_id_of(lane.name, request.tenant, request.task, request.key)",
        faults=("J7",),
        tests=TENANTS,
    ),
    Mutant(
        name="a_new_document_in_anothers_room",
        file="shared/core/job.py",
        old='    if "/" in tenant:',
        new='    if tenant.endswith("/"):',
        faults=("J7",),
        tests=TENANTS,
    ),
    Mutant(
        name="an_answer_of_aws_that_leaves_as_it_came",
        file="shared/adapters/aws/access.py",
        old="    if (action := denied(exc)) is not None:",
        new="    if (action := denied(exc)) is not None and isinstance(exc, BotoCoreError):",
        faults=("I1",),
        tests=("tests/unit/test_client.py",),
    ),
    Mutant(
        name="an_id_that_anybody_can_make",
        file="docs/enqueue.md",
        old="    digest = hmac.new(secret, address.strip().lower().encode(), hashlib.sha256).digest()",
        new="    digest = hashlib.sha256(address.strip().lower().encode()).digest()",
        faults=("I8",),
        tests=("tests/unit/test_enqueue_page.py",),
    ),
    Mutant(
        name="a_part_of_an_export_stays",
        file="ops/cli/dlq.py",
        old="        to.unlink(missing_ok=True)",
        new="        pass",
        reqs=("C10",),
        tests=("tests/unit/ops/cli/test_answers.py",),
    ),
)
