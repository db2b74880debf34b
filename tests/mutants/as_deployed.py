"""Planted faults in what AWS is given: environments, guards, releases, rules."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

INFRA = "tests/infra"

AS_DEPLOYED = (
    Mutant(
        name="settings_in_the_environment",
        file="infra/environment.py",
        old="    told = {env.STAGE: arns.stage.name}",
        new="    told = {env.STAGE: arns.stage.name, env.LANE: ' '.join(arns.stage.lanes)}",
        faults=("K6",),
        tests=("tests/infra/test_many_lanes.py",),
    ),
    Mutant(
        name="a_table_that_is_not_told",
        file="infra/environment.py",
        old='    Resource.WAITING: (env.JOBS_TABLE, "jobs"),\n',
        new="",
        faults=("J7",),
        tests=("tests/infra/test_functions.py",),
    ),
    Mutant(
        name="parts_of_two_texts",
        file="shared/contract/parts.py",
        old="    if _digest(text) != head.get(WHOLE):",
        new="    if not head.get(WHOLE):",
        faults=("K6",),
        tests=("tests/unit/contract/test_parts.py", "tests/unit/adapters/test_lanes.py"),
    ),
    Mutant(
        name="one_part_too_few",
        file="shared/contract/parts.py",
        old="for number in range(1, count + 1))",
        new="for number in range(1, count))",
        faults=("K6",),
        tests=("tests/unit/contract/test_parts.py",),
    ),
    Mutant(
        name="one_watch_for_all_lanes",
        file="infra/rules/limits.py",
        old="            if has > most:",
        new="            if has > 10 * most:",
        faults=("K6",),
        tests=("tests/infra/test_rules.py",),
    ),
    Mutant(
        name="the_version_on_everything",
        file="infra/application.py",
        old=', include_resource_types=["AWS::Lambda::Function"])',
        new=")",
        faults=("K5",),
        tests=("tests/infra/test_rules.py",),
    ),
    Mutant(
        name="any_first_value_will_do",
        file="infra/guards.py",
        old='        path="SecretString",\n        weaker=_differs,',
        new='        path="SecretString",\n        weaker=_is_given_up,',
        faults=("K5",),
        tests=("tests/infra/test_diff.py",),
    ),
    Mutant(
        name="less_is_as_good",
        file="infra/guards.py",
        old="float(new) < float(old))\n\n\ndef _is_another",
        new="float(new) < 0)\n\n\ndef _is_another",
        faults=("K5",),
        tests=("tests/infra/test_diff.py",),
    ),
    Mutant(
        name="a_release_is_recorded_again",
        file="infra/diff.py",
        old="release.order(version) <= release.order(recorded)",
        new="release.order(version) < release.order(recorded)",
        faults=("K5",),
        tests=("tests/infra/test_release.py",),
    ),
    Mutant(
        name="a_guard_that_is_only_told",
        file="infra/diff.py",
        old='        yield f"weaker: {sentence}", True',
        new='        yield f"weaker: {sentence}", False',
        faults=("K5",),
        tests=("tests/infra/test_diff.py",),
    ),
    Mutant(
        name="prod_goes_with_its_stack",
        file="shared/core/stage.py",
        old="    if spec.name in KEPT_STAGES and not spec.retain:",
        new='    if spec.name == "stage" and not spec.retain:',
        faults=("K5",),
        tests=("tests/infra/test_synth.py",),
    ),
    Mutant(
        name="customers_are_served_by_an_example",
        file="infra/stage.py",
        old="    if spec.name not in KEPT_STAGES:\n        return\n",
        new='    if spec.name != "stage":\n        return\n',
        faults=("E5",),
        tests=("tests/infra/test_synth.py",),
    ),
    Mutant(
        name="a_token_in_an_address",
        file="shared/core/vendor.py",
        old='    if set("@?#") & set(self.base_url):',
        new='    if set("@#") & set(self.base_url):',
        faults=("E5",),
        tests=("tests/infra/test_synth.py",),
    ),
    Mutant(
        name="new_by_its_name_alone",
        file="infra/control.py",
        old='_NEW_ROW = {table.PK: {"S": [{"exists": False}]}}',
        new='_NEW_ROW = {"no_such_attribute": {"S": [{"exists": False}]}}',
        faults=("B12",),
        tests=("tests/infra/test_control.py",),
    ),
)
