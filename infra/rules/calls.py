"""The rule about what functions are seen to do: the table of grants is kept equal to their recorded calls
(tests/e2e/test_permissions.py), so a role that holds less fails on AWS, and there alone."""

from __future__ import annotations

from collections.abc import Iterator

from infra import naming
from infra.grants import GRANTS, INTAKE
from infra.grants import Resource as On
from infra.rules.access import joined, statements_of
from infra.rules.assembly import Assembly, Role, listed
from infra.rules.registry import rule
from shared.contract import names
from shared.core.stage import StageSpec


@rule("CALLS")
def a_function_may_do_what_it_does(assembly: Assembly) -> Iterator[str]:
    """Every call that was recorded is allowed, on the resource that it was made to."""
    roles = assembly.roles()
    for function in assembly.resources("AWS::Lambda::Function"):
        name = str(function.properties.get("FunctionName"))
        does = roles.get(name.removeprefix(names.function(assembly.stage.name, "")))
        role = assembly.referred(function.stack, function.properties.get("Role"))
        if does is None or role is None:
            yield f"{function}: {name} is in no table of grants, or has no role of its own stack"
            continue
        held = [
            (set(listed(statement.get("Action"))), [joined(one) for one in listed(statement.get("Resource"))])
            for statement in statements_of(assembly, role)
            if statement["Effect"] == "Allow"
        ]
        for grant in GRANTS[does.kind]:
            for place in _places(grant.on, does, assembly.stage):
                allowed = (actions for actions, arns in held if any(arn.endswith(place) for arn in arns))
                for action in sorted(set(grant.actions).difference(*allowed)):
                    yield f"{function}: may not {action} on {grant.on.value} {place}, and does: {grant.why}"


def _places(on: On, does: Role, stage: StageSpec) -> Iterator[str]:
    """How the ARN of each thing that a grant is about ends; what has no name of its own ends somehow."""
    lane = does.lane
    match on:
        case On.JOBS | On.EFFECTS | On.CONTROL | On.LEDGER | On.HISTORY:
            yield f":table/{names.table(stage.name, on.value)}"
        case On.PAYLOAD_ROWS:
            yield f":table/{names.table(stage.name, names.CONTENT_TABLE)}"
        case On.WAITING:
            yield f":table/{names.table(stage.name, 'jobs')}/index/{names.WAITING_INDEX}"
        case On.OWN_QUEUE if lane is not None:
            yield f":{names.queue(stage.name, lane.name)}"
        case On.LANE_QUEUES:
            yield from (f":{names.queue(stage.name, one.name)}" for one in stage.lanes.values() if one.run is None)
        case On.DEAD_LETTERS:
            yield from (f":{names.dead_letter_queue(stage.name, one)}" for one in stage.lanes)
        case On.STREAM_FAILURES:
            yield f":{naming.failure_queue(stage.name, 'stream')}"
        case On.FEED_FAILURES:
            yield f":{naming.failure_queue(stage.name, 'feed')}"
        case On.RUN_FAILURES:
            of = "run" if lane is None else naming.run_failures(lane.name, "run")
            yield f":{naming.failure_queue(stage.name, of)}"
        case On.EVENT_BUS:
            yield f":event-bus/{names.event_bus(stage.name)}"
        case On.SECRET:
            yield from [""] if does.kind == INTAKE or (lane is not None and lane.secret is not None) else []
        case _:
            yield ""
