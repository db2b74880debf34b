"""Planted faults in the validation report: each would let something wrong pass."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

LAW, GATHER, PERSONAL = "shared/core/validation.py", "shared/usecases/validate.py", "shared/core/personal.py"
TESTS = ("tests/unit/usecases/test_validate.py",)
SHAPES = ("tests/unit/core/test_personal.py", *TESTS)

VALIDATING: tuple[Mutant, ...] = (
    Mutant(
        name="twice_is_once",
        file=LAW,
        old="        case Found(times=times) if times is not None and times > 1:",
        new="        case Found(times=times) if times is not None and times > 2:",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="a_lost_effect_is_no_fault",
        file=LAW,
        old="        case Absent() if row.state is EffectState.ACCEPTED:",
        new="        case Absent() if row.state is EffectState.REFUSED:",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="an_uncounted_accept_is_one",
        file=LAW,
        old="        case Found(times=None):",
        new="        case Found(times=-1):",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="tier_0_as_its_row_says_alone",
        file=LAW,
        old='    return route.get("tier_0") is True or route.get("intent") in tier_0',
        new='    return route.get("tier_0") is True',
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="an_open_incident_is_documented",
        file=LAW,
        old="        if incident.open:",
        new="        if incident.open and not incident.opened_by:",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="a_change_in_no_incident_is_fine",
        file=LAW,
        old="        if not any(_covers(incident, change.at) for incident in facts.incidents):",
        new="        if not facts.incidents:",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="a_replay_needs_no_plan",
        file=LAW,
        old="    replayed = [job for job in facts.jobs if job.replay_count > 0]",
        new="    replayed = [job for job in facts.jobs if job.replay_count > 0 and job.plan_id in facts.replays]",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="what_was_not_checked_passes",
        file=LAW,
        old="    return next((one for one in (Verdict.FAIL, Verdict.INCOMPLETE) if one in verdicts), Verdict.PASS)",
        new="    return next((one for one in (Verdict.FAIL,) if one in verdicts), Verdict.PASS)",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="a_log_that_cannot_be_read_is_clean",
        file="shared/usecases/sweep_logs.py",
        old='        return count, seen, [f"{group} could not be read ({exc.reason})"]',
        new="        return count, seen, [exc.reason][:0]",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="a_silent_vendor_says_yes",
        file=LAW,
        old='    return f"{row.vendor} gave no answer ({answer.reason})"',
        new="    return None",
        reqs=("C12",),
        tests=TESTS,
    ),
    Mutant(
        name="canaries_in_small_letters_only",
        file=PERSONAL,
        old="    folded = text.casefold()",
        new="    folded = text",
        reqs=("C12", "R14"),
        tests=SHAPES,
    ),
    Mutant(
        name="every_sum_is_a_card",
        file=PERSONAL,
        old="    return _ISSUED.fullmatch(digits) is not None and sum(doubled) % 10 == 0",
        new="    return _ISSUED.fullmatch(digits) is not None and sum(doubled) % 10 == 11",
        reqs=("C12", "R14"),
        tests=SHAPES,
    ),
    Mutant(
        name="the_vendors_count_is_not_read",
        file="shared/adapters/vendors/http.py",
        old="    return Found(_vendor_id(content), times=times if told else None)",
        new="    return Found(_vendor_id(content), times=1 if told else None)",
        reqs=("C12",),
        tests=("tests/unit/vendors/test_helpdesk.py",),
    ),
    Mutant(
        name="nobody_looks_again",
        file=GATHER,
        old="        jobs, looked = self._again(jobs, looked)",
        new="        jobs, looked = self._again(jobs, looked[:0])[0], looked",
        reqs=("C12",),
        tests=TESTS,
    ),
)
