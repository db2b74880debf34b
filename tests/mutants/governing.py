"""Planted faults in what judges a lane and steers its workers."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = ("tests/unit/core",)
GOVERN = ("tests/unit/usecases/test_govern.py", "tests/unit/usecases/test_trip.py")
CONTRACT = ("tests/contract/test_control.py",)
CAPACITY, SEVERITY, SIGNALS = "shared/core/capacity.py", "shared/core/severity.py", "shared/core/signals.py"
CONDITIONS = "shared/adapters/aws/conditions.py"

GOVERNING: tuple[Mutant, ...] = (
    Mutant(
        name="two_minutes_is_still_mild",
        file=SEVERITY,
        old="    if age_s < thresholds.moderate_age_s:",
        new="    if age_s <= thresholds.moderate_age_s:",
        reqs=("C3",),
        tests=CORE,
    ),
    Mutant(
        name="a_standstill_stays_young",
        file=SIGNALS,
        old="    return 0 if last is None else last.age_s + _seconds(last.at, signals.at)",
        new="    return 0 if last is None else last.age_s",
        reqs=("C3",),
        tests=(*CORE, *GOVERN),
    ),
    Mutant(
        name="a_spike_needs_no_share",
        file=SEVERITY,
        old="    return bad >= thresholds.spike_calls and bad >= thresholds.spike_share * calls",
        new="    return bad >= thresholds.spike_calls",
        reqs=("C16", "C3"),
        tests=CORE,
    ),
    Mutant(
        name="one_bad_minute_is_unstable",
        file=SEVERITY,
        old="    minutes = [signals.minute(back) for back in range(1, thresholds.unstable_minutes + 1)]",
        new="    minutes = [signals.minute(1)]",
        reqs=("C16", "C13"),
        tests=(*CORE, *GOVERN),
    ),
    Mutant(
        name="thresholds_that_are_not_configured",
        file="shared/core/stage.py",
        old='                "severity": thresholds,\n',
        new='                "severity": Thresholds(),\n',
        reqs=("C14",),
        tests=CORE,
    ),
    Mutant(
        name="a_rise_without_its_interval",
        file=CAPACITY,
        old="    if state.changed_at is not None and now < state.changed_at + timedelta(seconds=policy.interval_s):",
        new="    if state.changed_at is not None and now < state.changed_at:",
        reqs=("C4",),
        tests=CORE,
    ),
    Mutant(
        name="trouble_does_not_lower",
        file=CAPACITY,
        old="        return (lower, lowering) if lower < cap else (cap, Reason.AT_FLOOR)",
        new="        return cap, lowering",
        reqs=("C5", "C16", "F4"),
        tests=CORE,
    ),
    Mutant(
        name="no_hold_after_a_decrease",
        file=CAPACITY,
        old="    if held:\n        return cap, Reason.HOLD_DOWN",
        new="    if held and lowering:\n        return cap, Reason.HOLD_DOWN",
        reqs=("C5",),
        tests=CORE,
    ),
    Mutant(
        name="a_cap_that_swings",
        file=CAPACITY,
        old="now < state.lowered_at + timedelta(seconds=policy.hold_down_s)",
        new="(state := replace(state, changed_at=None)) is None",
        faults=("E7",),
        tests=CORE,
    ),
    Mutant(
        name="one_calm_look_is_enough",
        file=CAPACITY,
        old="now - calm_since >= timedelta(seconds=policy.calm_s)",
        new="now >= calm_since",
        reqs=("C6",),
        tests=CORE,
    ),
    Mutant(
        name="a_pin_above_the_ceiling",
        file=CAPACITY,
        old="    return 0 if cap <= 0 else min(max(cap, LEAST), ceiling)",
        new="    return cap",
        reqs=("C7",),
        faults=("E5",),
        tests=CORE,
    ),
    Mutant(
        name="the_governor_outvotes_a_pin",
        file=CAPACITY,
        old="    if pin is not None:\n        return",
        new="    if pin is not None and not guardrails:\n        return",
        faults=("E1",),
        tests=CORE,
    ),
    Mutant(
        name="a_capacity_without_its_version",
        file=CONDITIONS,
        old='SAME_CAPACITY = "#version = :version"',
        new='SAME_CAPACITY = "#version >= :version"',
        faults=("E2", "E1"),
        tests=CONTRACT,
    ),
    Mutant(
        name="a_decision_in_other_words",
        file=CAPACITY,
        old='            "operatorOverrideActive": self.pinned,',
        new='            "overridden": self.pinned,',
        reqs=("F5",),
        tests=(*CORE, *GOVERN),
    ),
    Mutant(
        name="a_hold_is_not_kept",
        file="shared/usecases/govern.py",
        old="            persist(lambda: self.history.append(event), self.clock)",
        new="            if decision.to_cap != decision.from_cap:\n                self.history.append(event)",
        reqs=("F5",),
        tests=GOVERN,
    ),
    Mutant(
        name="a_deploy_decides_the_cap",
        file="shared/usecases/assert_cap.py",
        old="    if source.has(wanted):",
        new="    if source.enabled:",
        faults=("E4",),
        tests=GOVERN,
    ),
    Mutant(
        name="a_source_is_changed_while_it_changes",
        file="shared/usecases/assert_cap.py",
        old="    if not source.settled:",
        new="    if False:",
        faults=("B9",),
        tests=GOVERN,
    ),
    Mutant(
        name="busy_is_a_crash",
        file="shared/adapters/aws/event_sources.py",
        old="            if code_of(error) not in BUSY:",
        new="            if True:",
        faults=("B9",),
        tests=("tests/unit/adapters/test_event_sources.py",),
    ),
    Mutant(
        name="a_disabled_source_goes_unsaid",
        file="shared/usecases/assert_cap.py",
        old='        telemetry.event("source_disabled", lane=lane.name, state=source.state)\n'
        "        telemetry.count(metrics.SOURCE_CLOSED, lane=lane.name)",
        new='        telemetry.event("source_disabled", lane=lane.name, state=source.state)',
        faults=("B10",),
        tests=GOVERN,
    ),
    Mutant(
        name="an_unstable_vendor_closes_nothing",
        file="shared/usecases/trip.py",
        old="    if not control.trip(switch):",
        new="    if not vendors:",
        reqs=("C13",),
        tests=GOVERN,
    ),
    Mutant(
        name="a_trip_loosens_a_halt",
        file=CONDITIONS,
        old='    " OR (#scopes.#scope.#level = :normal AND #scopes.#scope.#automation_enabled = :automation_enabled))"',
        new='    " OR :normal <> :automation_enabled)"',
        reqs=("C13",),
        tests=CONTRACT,
    ),
)
