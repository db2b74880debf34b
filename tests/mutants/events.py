"""Planted faults of the intake: what would let a stranger, a replay or a bomb in."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

WEBHOOK, RECEIVE, DOOR = "shared/core/webhook.py", "shared/usecases/receive_event.py", "functions/intake/handler.py"
LAW, HANDLER = "tests/unit/core/test_webhook.py", "tests/functions/test_intake.py"

EVENTS: tuple[Mutant, ...] = (
    Mutant(
        name="a_key_for_nobody_opens",
        file=WEBHOOK,
        old="        matched = (equal and place < len(keys)) or matched",
        new="        matched = equal or matched",
        faults=("J1",),
        tests=(LAW,),
    ),
    Mutant(
        name="the_last_key_decides",
        file=WEBHOOK,
        old="        matched = (equal and place < len(keys)) or matched",
        new="        matched = equal and place < len(keys)",
        faults=("J1",),
        tests=(LAW,),
    ),
    Mutant(
        name="the_time_is_not_signed",
        file=WEBHOOK,
        old='    return SCHEME + hmac.new(key, stamp + b"." + body, hashlib.sha256).hexdigest().encode()',
        new="    return SCHEME + hmac.new(key, body, hashlib.sha256).hexdigest().encode()",
        faults=("J1",),
        tests=(LAW,),
    ),
    Mutant(
        name="an_empty_key_counts",
        file=WEBHOOK,
        old="    return [key for key in keys if len(key) >= MIN_KEY_BYTES]",
        new="    return keys",
        faults=("J1",),
        tests=(LAW,),
    ),
    Mutant(
        name="a_shared_key_counts_for_both",
        file=WEBHOOK,
        old="if holders[key] == 1)",
        new="if holders[key] >= 1)",
        faults=("H1",),
        tests=(LAW,),
    ),
    Mutant(
        name="text_is_compared_as_text",
        file=WEBHOOK,
        old='    return value.encode() if isinstance(value, str) and value.isascii() else b""',
        new='    return value.encode("ascii") if isinstance(value, str) else b""',
        faults=("J1",),
        tests=(LAW, HANDLER),
    ),
    Mutant(
        name="old_signatures_are_good",
        file=WEBHOOK,
        old="    if abs(int(stamp) - now.timestamp()) > WINDOW_S:",
        new="    if int(stamp) - now.timestamp() > WINDOW_S:",
        faults=("J2",),
        tests=(LAW, HANDLER),
    ),
    Mutant(
        name="a_time_with_whatever_behind_it",
        file=WEBHOOK,
        old="    if not _TIMESTAMP.fullmatch(stamp):",
        new="    if not _TIMESTAMP.match(stamp):",
        faults=("J2",),
        tests=(LAW,),
    ),
    Mutant(
        name="any_size_is_judged",
        file=WEBHOOK,
        old="    if len(body) > MAX_BODY_BYTES:",
        new="    if len(body) > 64 * MAX_BODY_BYTES:",
        faults=("J5",),
        tests=(LAW, HANDLER),
    ),
    Mutant(
        name="the_event_names_the_tenant",
        file=RECEIVE,
        old="task=intake.task, tenant=tenant, key=event_id",
        new='task=intake.task, tenant=str(data.get("tenant", tenant)), key=event_id',
        faults=("H1",),
        tests=(HANDLER,),
    ),
    Mutant(
        name="every_delivery_is_an_event",
        file=RECEIVE,
        old="tenant=tenant, key=event_id, payload=data)",
        new="tenant=tenant, key=[event_id, str(intake.clock.now().timestamp())], payload=data)",
        reqs=("C1",),
        faults=("J2",),
        tests=(HANDLER,),
    ),
    Mutant(
        name="a_stranger_is_told_why",
        file=RECEIVE,
        old="            return Received(reception=Reception.TOO_LARGE if too_large else Reception.REFUSED)",
        new="            return Received(\n"
        "                reception=Reception.TOO_LARGE if too_large else Reception.REFUSED, problem=found.value\n"
        "            )",
        faults=("J1",),
        tests=(HANDLER,),
    ),
    Mutant(
        name="parsed_before_it_is_verified",
        file=RECEIVE,
        old="        found, tenant = _sender(webhook, intake)\n",
        new="        _event(webhook.body)\n        found, tenant = _sender(webhook, intake)\n",
        faults=("J5",),
        tests=(HANDLER,),
    ),
)
