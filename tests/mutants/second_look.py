"""Planted faults where rules, switches and checks meet: what is passed by, overruled or opened unseen."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ROUTING, TASKS = "shared/core/routing.py", "functions/support/tasks.py"
SETTING, RECORDS = "shared/usecases/set_switch.py", "shared/adapters/memory/records.py"
LANE, OPEN = ("tests/functions/test_support.py",), ("tests/unit/usecases/test_open_switch.py",)
NATIVE = ("tests/unit/usecases/test_native_redrive.py",)

SECOND_LOOK: tuple[Mutant, ...] = (
    Mutant(
        name="a_subject_is_not_searched",
        file=TASKS,
        old="routing.mentioned_in(subject, text, topic)",
        new="routing.mentioned_in(text, topic)",
        reqs=("C2",),
        tests=LANE,
    ),
    Mutant(
        name="a_topic_is_not_searched",
        file=TASKS,
        old="routing.mentioned_in(subject, text, topic)",
        new="routing.mentioned_in(subject, text)",
        reqs=("C2",),
        tests=LANE,
    ),
    Mutant(
        name="a_topic_nobody_listed_is_answered",
        file=ROUTING,
        old="    return route if route.tier_0 or topic is None else replace(route, reply=True)",
        new="    return route if route.tier_0 else replace(route, reply=True)",
        reqs=("C2",),
        tests=LANE,
    ),
    Mutant(
        name="a_native_move_goes_on_under_a_closed_switch",
        file="shared/core/native.py",
        old="    if look.held_by:",
        new="    if False:",
        reqs=("C10",),
        faults=("F5",),
        tests=NATIVE,
    ),
    Mutant(
        name="a_moved_letter_passes_closed_admission",
        file="shared/usecases/run_attempt.py",
        old="    if switches.standing(switches.entries).closes_admission:",
        new="    if False:",
        reqs=("C10",),
        tests=NATIVE,
    ),
    Mutant(
        name="closing_needs_every_entry_to_be_readable",
        file=SETTING,
        old="        if closes and control.trip(switch):",
        new="        if False:",
        reqs=("C6",),
        faults=("E5",),
        tests=("tests/unit/ops/cli/test_control.py",),
    ),
    Mutant(
        name="opening_overrules_who_came_between",
        file=RECORDS,
        old="            if (self._scopes() or {}).get(switch.scope) != switch_rows.switch_attribute(seen):",
        new="            if False:",
        reqs=("C6",),
        faults=("E1",),
        tests=(*OPEN, "tests/contract/test_control.py"),
    ),
    Mutant(
        name="a_checklist_never_grows_old",
        file=SETTING,
        old="    if now - opening.at > LOOK_KEPT:",
        new="    if False:",
        reqs=("C6",),
        tests=OPEN,
    ),
    Mutant(
        name="a_closed_vendor_raises_the_cap",
        file="shared/usecases/govern.py",
        old="switches.standing(lane_scopes(lane.name, lane.vendors)).closes_admission",
        new="standing.closes_admission",
        reqs=("C6",),
        tests=("tests/unit/usecases/test_task_vendors.py",),
    ),
    Mutant(
        name="one_tenants_switch_excuses_the_lane",
        file="shared/core/checklist.py",
        old="    if narrow and reading.aged:\n        return False,",
        new="    if narrow and reading.aged:\n        return was_young,",
        reqs=("C6",),
        tests=("tests/unit/core/test_checklist.py",),
    ),
)
