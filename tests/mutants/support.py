"""Planted faults of lane `support`: what would answer for a person, pay when it may not, or act twice."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

ROUTING, TASKS, CONTEXT = "shared/core/routing.py", "functions/support/tasks.py", "shared/usecases/context.py"
LAW, LANE = "tests/unit/core/test_routing.py", "tests/functions/test_support.py"

SUPPORT: tuple[Mutant, ...] = (
    Mutant(
        name="tier_0_is_answered",
        file=ROUTING,
        old="team=routing.intents[strict[0]].team, tier_0=True, reply=False, by=by)",
        new="team=routing.intents[strict[0]].team, tier_0=True, reply=True, by=by)",
        reqs=("C2",),
        tests=(LAW, LANE),
    ),
    Mutant(
        name="the_model_lifts_tier_0",
        file=ROUTING,
        old="if name in mentioned or name in (topic, answer)]",
        new="if name == answer or (answer is None and (name in mentioned or name == topic))]",
        reqs=("C2",),
        tests=(LAW,),
    ),
    Mutant(
        name="rules_alone_answer",
        file=ROUTING,
        old="return Route(intent=name, team=one.team, tier_0=False, reply=False, by=RULES)",
        new="return Route(intent=name, team=one.team, tier_0=False, reply=True, by=RULES)",
        reqs=("C2",),
        tests=(LANE,),
    ),
    Mutant(
        name="a_withheld_call_is_not_written_down",
        file=CONTEXT,
        old="        self.withheld[request.action] = by\n",
        new="",
        reqs=("C2",),
        tests=(LANE,),
    ),
    Mutant(
        name="a_withheld_effect_is_not_written_down",
        file="shared/usecases/run_attempt.py",
        old="    return replace(outcome, withheld=ctx.withheld)",
        new="    return outcome",
        reqs=("C2",),
        tests=(LANE,),
    ),
    Mutant(
        name="two_effects_of_one_name",
        file=TASKS,
        old='    ctx.effect("assign", helpdesk.assign(conversation, route.team))',
        new='    ctx.effect("add_tag", helpdesk.assign(conversation, route.team))',
        reqs=("C1",),
        tests=(LANE,),
    ),
    Mutant(
        name="an_intent_is_paid_for_again",
        file=TASKS,
        old="    ctx.keep(INTENT, intent.encode())\n",
        new="",
        reqs=("C1",),
        tests=(LANE,),
    ),
)
