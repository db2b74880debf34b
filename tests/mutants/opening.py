"""Planted faults in what a lane costs, and in what stands between a closed switch and an open one."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CHECKLIST, COST = "shared/core/checklist.py", "shared/core/vendor_cost.py"
SETTING, GOVERN, STATUS = "shared/usecases/set_switch.py", "shared/usecases/govern.py", "ops/cli/status.py"
IN_CORE = ("tests/unit/core/test_checklist.py", "tests/unit/core/test_vendor_cost.py")
IN_USE = ("tests/unit/usecases/test_open_switch.py",)
IN_CLI = ("tests/unit/ops/cli/test_control_checklist.py", "tests/unit/ops/cli/test_status_cost.py")

OPENING: tuple[Mutant, ...] = (
    Mutant(
        name="tokens_are_free",
        file=COST,
        old="counts.calls * self.per_call + counts.tokens * self.per_1000_tokens / 1000",
        new="counts.calls * self.per_call",
        reqs=("C15",),
        tests=IN_CORE,
    ),
    Mutant(
        name="a_spike_shows_after_an_hour",
        file=COST,
        old="((hour, 1), (quarter, HOUR_S // QUARTER_S))",
        new="((hour, 1), (hour, 1))",
        reqs=("C15",),
        tests=IN_CORE,
    ),
    Mutant(
        name="no_price_is_nothing",
        file=COST,
        old="    per_hour = None if price is None else times",
        new="    per_hour = 0.0 if price is None else times",
        reqs=("C15",),
        tests=(*IN_CORE, *IN_USE),
    ),
    Mutant(
        name="prices_that_are_not_configured",
        file="shared/core/stage.py",
        old='                "prices": prices,\n',
        new='                "prices": Prices(),\n',
        reqs=("C14", "C15"),
        tests=IN_CORE,
    ),
    Mutant(
        name="a_cost_nobody_meters",
        file=GOVERN,
        old="            self.telemetry.count(metrics.COST, cost.per_hour, lane=lane.name)",
        new="            pass",
        reqs=("C15",),
        tests=IN_USE,
    ),
    Mutant(
        name="a_spike_without_advice",
        file=STATUS,
        old="        recommends=advice if cost.spikes(lane) and not closed else None,",
        new="        recommends=None,",
        reqs=("C15",),
        tests=IN_CLI,
    ),
    Mutant(
        name="opening_needs_no_checklist",
        file=SETTING,
        old="    if present is None or not loosens(present, switch.level, switch.automation_enabled):",
        new="    if opening is None or present is None:",
        reqs=("C6",),
        tests=IN_USE,
    ),
    Mutant(
        name="what_does_not_hold_is_opened",
        file=SETTING,
        old="    if lacking and not opening.anyway:",
        new="    if not opening.checked:",
        reqs=("C6", "C13"),
        tests=(*IN_USE, *IN_CLI),
    ),
    Mutant(
        name="anyway_leaves_no_trace",
        file=SETTING,
        old='**({"anyway": list(lacking)} if lacking else {})}',
        new="**{}}",
        reqs=("C6",),
        tests=(*IN_USE, *IN_CLI),
    ),
    Mutant(
        name="a_trip_is_opened_unseen",
        file=SETTING,
        old="    if opening.present != present:",
        new="    if present is None:",
        reqs=("C6", "C13"),
        tests=IN_USE,
    ),
    Mutant(
        name="one_young_look_is_calm",
        file=CHECKLIST,
        old="    was_young = oldest < thresholds.mild_age_s",
        new="    was_young = True",
        reqs=("C6",),
        tests=IN_CORE,
    ),
    Mutant(
        name="blind_is_calm",
        file=CHECKLIST,
        old="seen=UNREADABLE, holds=False)",
        new="seen=UNREADABLE, holds=True)",
        reqs=("C6",),
        tests=(*IN_CORE, *IN_USE),
    ),
    Mutant(
        name="an_open_breaker_is_no_reason",
        file=CHECKLIST,
        old='    return False, "; ".join(said)',
        new='    return True, "; ".join(said)',
        reqs=("C13", "C6"),
        tests=IN_CORE,
    ),
    Mutant(
        name="the_governor_opens_what_is_well",
        file="shared/usecases/trip.py",
        old="    if not vendors or not lane.trip_on_unstable or",
        new="    if not vendors and present is not None:\n"
        '        control.set_switch(Switch(scope=scope, by=GOVERNOR, why="well", at=clock.now()))\n'
        "    if not vendors or not lane.trip_on_unstable or",
        reqs=("C6", "C13"),
        tests=IN_USE,
    ),
    Mutant(
        name="automation_is_no_switch",
        file="shared/core/switches.py",
        old="(level < was or (automation_enabled and not paid))",
        new="level < was",
        reqs=("C6",),
        tests=(*IN_USE, *IN_CLI),
    ),
)
