"""Planted faults in roles, second voices, small payloads and their cost."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

PEOPLE = "tests/unit/core/test_people.py"
RULES = "tests/infra/test_rules.py"

WHO_AND_WHAT_FOR: tuple[Mutant, ...] = (
    Mutant(
        name="any_role_names_a_person",
        file="shared/core/people.py",
        old='(session["role"].startswith(IDENTITY_CENTER) or session["role"] in self.roles)',
        new='session["role"]',
        faults=("J9",),
        tests=(PEOPLE,),
    ),
    Mutant(
        name="a_person_for_each_role",
        file="shared/core/people.py",
        old="        if self.named(asked) == self.named(agrees):",
        new="        if asked == agrees:",
        faults=("J9",),
        tests=(PEOPLE,),
    ),
    Mutant(
        name="two_people_by_upper_case",
        file="shared/core/people.py",
        old='            return session["name"].casefold()',
        new='            return session["name"]',
        faults=("J9",),
        tests=(PEOPLE,),
    ),
    Mutant(
        name="who_asked_may_be_anybody",
        file="shared/core/people.py",
        old="        if self.named(asked) is None:",
        new="        if not asked:",
        faults=("J9",),
        tests=(PEOPLE,),
    ),
    Mutant(
        name="a_plan_is_approved_by_a_chosen_name",
        file="shared/usecases/approve_redrive.py",
        old="    if plan.count > alone_up_to:\n        people",
        new="    if not plan.count:\n        people",
        faults=("J9",),
        tests=("tests/unit/usecases/test_redrive.py",),
    ),
    Mutant(
        name="an_outcome_is_confirmed_by_a_chosen_name",
        file="shared/usecases/resolve_unknown.py",
        old="            if not alone:\n                self.people",
        new="            if asked.confirmer:\n                self.people",
        faults=("J9",),
        tests=("tests/unit/usecases/test_resolve_unknown.py",),
    ),
    Mutant(
        name="a_request_of_whomever",
        file="shared/adapters/aws/resolutions.py",
        old="    conditions.SAME_REQUESTER,\n",
        new="",
        faults=("J9",),
        tests=("tests/contract/test_plans.py",),
    ),
    Mutant(
        name="prod_takes_free_names",
        file="shared/core/stage.py",
        old="    if spec.name == PROD and spec.free_session_names:",
        new="    if not spec.name and spec.free_session_names:",
        faults=("J9",),
        tests=("tests/unit/core/test_stage_config.py",),
    ),
    Mutant(
        name="a_role_under_any_name",
        file="infra/person.py",
        old='PINNED = {"StringEquals": {"sts:RoleSessionName": "${aws:username}"}}',
        new='PINNED = {"StringLike": {"sts:RoleSessionName": "*"}}',
        faults=("J9",),
        tests=("tests/infra/test_people.py",),
    ),
    Mutant(
        name="a_pin_that_is_not_looked_at",
        file="infra/rules/people.py",
        old='.get("StringEquals", {}).get(NAME) != OWN_NAME:',
        new='.get("StringEquals", {}).get(NAME, OWN_NAME) != OWN_NAME:',
        faults=("J9",),
        tests=(RULES,),
    ),
    Mutant(
        name="a_secret_for_who_looks",
        file="infra/grants.py",
        old='"secretsmanager", "DescribeSecret", "whether',
        new='"secretsmanager", "DescribeSecret GetSecretValue", "whether',
        faults=("J7",),
        tests=("tests/infra/test_people.py",),
    ),
    Mutant(
        name="a_producer_of_messages",
        file="infra/rules/people.py",
        old='        if who == "producer" and action not in PRODUCES:',
        new='        if who == "producer" and action.startswith("kms:") and action not in PRODUCES:',
        faults=("J7",),
        tests=(RULES,),
    ),
)
