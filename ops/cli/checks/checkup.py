"""Everything `penstock doctor` looks at, in order. A check that cannot be made is a line, too, never an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ops.cli.checks import deployed, working
from ops.cli.checks.line import Line, fail, ok, skip, warn
from ops.cli.stage import Stage
from ops.cli.trouble import not_supported, problem_of
from shared.adapters.aws.access import CREDENTIALS, denied

Check = Callable[[Stage], Iterator[Line]]

CHECKS: tuple[tuple[str, Check], ...] = (
    ("stacks", deployed.stacks),
    ("tables", deployed.tables),
    ("workers", deployed.workers),
    ("versions", deployed.versions),
    ("stream", deployed.stream),
    ("stream age", deployed.stream_age),
    ("quota", deployed.quota),
    ("people", working.people),
    ("secrets", working.secrets),
    ("alarms", working.alarms),
    ("dead letters", working.dead_letters),
    ("failures", working.failures),
    ("schedules", working.schedules),
    ("runs", working.runs),
)


def lines_of(stage: Stage) -> Iterator[Line]:
    """Every check's lines. Without credentials or lanes there is nothing to look at, and it ends there."""
    try:
        caller = stage.caller
    except Exception as exc:
        yield fail("credentials", problem_of(exc).sentence, CREDENTIALS)
        return
    yield ok("credentials", f"{caller.arn} in {caller.account}, {caller.region}")
    try:
        lanes = ", ".join(sorted(stage.lanes))
    except Exception as exc:
        yield fail("lanes", problem_of(exc).sentence, f"deploy it: `cdk deploy --all -c stage={stage.name}`")
        return
    yield ok("lanes", lanes)
    for about, check in CHECKS:
        yield from _made(about, check, stage)


def _made(about: str, check: Check, stage: Stage) -> Iterator[Line]:
    """The check's lines up to where it could not go on."""
    try:
        yield from check(stage)
    except Exception as exc:
        if not_supported(exc):
            operation = getattr(exc, "operation_name", "what this check asks for")
            yield skip(about, f"this endpoint does not have {operation}")
        elif (action := denied(exc)) is not None:
            yield warn(about, f"not looked at: {action} is denied to this caller", f"allow {action}, or ask who may")
        else:
            yield fail(about, problem_of(exc).sentence, "see whether this part of the stage is deployed")
