"""`penstock local`: a whole stage on this machine: the real app on an emulator, vendors that speak HTTP."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ops.cli.command import Asked, command, group
from ops.cli.moments import WHEN, between
from ops.cli.running import DEFAULT, LOCAL_NAME, needed
from ops.cli.show import ago, pairs, plain, styled, table
from ops.cli.trouble import Problem
from shared.contract import names
from shared.core.errors import BadInput
from shared.core.nearest import unknown

if TYPE_CHECKING:
    from ops.local.state import StackState

app = group("A whole stage on this machine; no account, no Docker.")

Name = Annotated[str, typer.Option("--name", metavar="NAME", help="Which local stack; several can run at once.")]
Which = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="NAME",
        show_default=False,
        help=f"Which local stack. Default: {LOCAL_NAME}, else {DEFAULT}, else the one that runs.",
    ),
]
Port = Annotated[int | None, typer.Option("--port", min=1, max=65535, show_default=False, help="Default: a free one.")]


@command(app, "up", examples=("penstock local up", "penstock local up --name second --port 4600"))
def up(
    asked: Asked,
    name: Name = DEFAULT,
    port: Port = None,
    vendor_port: Annotated[
        int | None,
        typer.Option("--vendor-port", min=1, max=65535, show_default=False, help="Default: a free one."),
    ] = None,
) -> None:
    """Start the emulator and the vendors and deploy the app to them. Running already: deploys what changed."""
    from ops.local import stack

    with asked.out.working("starting"):
        running = stack.up(name=name, port=port, vendor_port=vendor_port, progress=_progress(asked))
    if asked.out.json:
        asked.out.document(_document(running))
        return
    asked.out.say(pairs(_shown(running)), "")
    asked.out.say("Next: `penstock status`, or `penstock local demo` for a story. `penstock local down` stops it.")


@command(app, "down", examples=("penstock local down",))
def down(asked: Asked, name: Name = DEFAULT) -> None:
    """Stop a local stack and every process it started. What it held is gone; its logs stay."""
    from ops.local import stack, state

    with asked.out.working("stopping"):
        stopped = stack.down(name=name)
    if not stopped and name not in (DEFAULT, *state.names()):
        raise BadInput("name", unknown(name, state.names(), "local stacks"))
    if asked.out.json:
        asked.out.document({"name": name, "stopped": stopped})
    else:
        asked.out.say(f"stopped {name}" if stopped else f"{name} was not running")


@command(app, "status", examples=("penstock local status", "penstock local status --json"))
def status(
    asked: Asked,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", show_default=False, help="Only this one.")
    ] = None,
) -> None:
    """Show the local stacks that run. Ends with 1 when none does. In JSON: one line a stack, or the error."""
    from ops.local import stack, state

    running = [found for one in ([name] if name else state.names()) if (found := stack.status(name=one))]
    if running and asked.out.json:
        for one in running:
            asked.out.line(_document(one))
    elif running:
        now = datetime.now(UTC)
        rows = [
            (
                one.name,
                one.endpoint,
                one.vendor_url,
                ago(datetime.fromisoformat(one.started_at), now),
                str(len(one.stacks)),
            )
            for one in running
        ]
        asked.out.say(table(["name", "endpoint", "vendors", "started", "stacks"], rows))
    else:
        which = f"no local stack {name}" if name else "no local stack"
        asked.out.fail(Problem(code="not_running", field="", problem=f"{which} runs; start one: `penstock local up`"))
        raise typer.Exit(1)


@command(app, "env", examples=('eval "$(penstock local env)"', 'eval "$(penstock local env --as bob)"'))
def env(
    asked: Asked,
    name: Which = None,
    person: Annotated[
        str | None,
        typer.Option("--as", metavar="PERSON", show_default=False, help="ada or bob, to try what takes two."),
    ] = None,
) -> None:
    """Print the variables with which the AWS command line and other tools find a local stack."""
    from ops.local import stack

    variables = stack.environment(needed(os.environ, name), person)
    if asked.out.json:
        asked.out.document(variables)
        return
    for variable, value in variables.items():
        print(f"export {variable}={shlex.quote(value)}")


@command(app, "demo", examples=("penstock local demo", "penstock local demo --keep"))
def demo(
    asked: Asked,
    name: Name = "demo",
    headless: Annotated[bool, typer.Option("--headless", help="No live table: for logs and tests.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the stack running afterwards.")] = False,
) -> None:
    """Watch a story: a burst, duplicates, a vendor that goes bad, a worker killed while it sends.

    Ends with 1 when anything was sent twice or lost.
    """
    from rich.console import Console

    from ops.local import demo as story

    # For a program the story goes beside the answer: standard output holds the closing numbers alone.
    asked.out.quiet()
    console = Console(stderr=asked.out.json)
    closing = story.run(
        name=name, headless=headless or asked.out.json or not sys.stdout.isatty(), keep=keep, console=console
    )
    if asked.out.json:
        asked.out.document(closing)
    if not closing.ok:
        raise typer.Exit(1)


@command(
    app,
    "logs",
    examples=("penstock local logs support-worker", "penstock local logs stream --since 5m", "penstock local logs"),
)
def logs(
    asked: Asked,
    function: Annotated[
        str | None,
        typer.Argument(metavar="FUNCTION", show_default=False, help="Such as stream or support-worker."),
    ] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", show_default=False, help=f"{WHEN}.")] = None,
    name: Which = None,
) -> None:
    """Show what the functions of a local stack wrote, oldest first. In JSON: one line a line."""
    from ops.local import logs as function_logs
    from ops.local import stack

    running = needed(os.environ, name)
    known = function_logs.functions(running)
    wanted = known
    if function is not None:
        wanted = [one for one in (function, names.function(running.stage, function)) if one in known]
        if not wanted:
            prefix = names.function(running.stage, "")
            short = ", ".join(one.removeprefix(prefix) for one in known)
            raise BadInput("function", f"is not one of this stack's: {short}")
    start, _ = between(since, None, datetime.now(UTC))
    with asked.out.working("reading logs"):
        lines = [line for one in wanted for line in stack.logs(running.name, one, start)]
    lines.sort(key=lambda line: line.at)
    for line in lines:
        if asked.out.json:
            asked.out.line(line)
        else:
            label = styled(
                f"{line.at:%H:%M:%S} {line.function.removeprefix(names.function(running.stage, ''))}  ", "dim"
            )
            asked.out.console.print(label + styled(line.text.rstrip()), soft_wrap=True)


def _progress(asked: Asked) -> Callable[[str], None]:
    if asked.out.json:
        return lambda line: None
    return lambda line: asked.out.aside.print(styled(line, "dim"))


def _shown(running: StackState) -> dict[str, str]:
    return {
        "name": running.name,
        "endpoint": running.endpoint,
        "vendors": running.vendor_url,
        "stage": running.stage,
        "stacks": ", ".join(running.stacks),
    }


def _document(running: StackState) -> dict[str, object]:
    from ops.local import stack

    return {**plain(running), "environment": stack.environment(running)}
