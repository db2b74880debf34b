"""`penstock`: the operator's command line. Every command answers people in tables and programs in JSON."""

from __future__ import annotations

from ops.cli import (
    audit,
    budget,
    capacity,
    control,
    cost,
    dlq,
    doctor,
    enqueue,
    forecast,
    incident,
    jobs,
    local,
    new,
    redrive,
    runs,
    status,
    validate,
)
from ops.cli import erasing as erasing  # Its command joins those of `jobs`.
from ops.cli import resolving as resolving  # Its command joins those of `jobs`.
from ops.cli import steering as steering  # Its commands join those of `jobs`.
from ops.cli.command import command, root

app = root(
    "Penstock: paced, fair, counted background jobs on AWS.\n\n"
    "See why a job waits, stop a lane in one command, and prove that nothing was lost or sent twice.\n\n"
    "\b\n"
    "Start here:\n"
    "  penstock local up          a whole stage on this machine, no account needed\n"
    "  penstock status            what waits, runs and failed, lane by lane\n"
    "  penstock jobs why ID       what holds a job, and what would let it go"
)

app.add_typer(local.app, name="local")
command(app, "enqueue", examples=enqueue.EXAMPLES)(enqueue.enqueue)
app.add_typer(jobs.app, name="jobs")
app.add_typer(dlq.app, name="dlq")
app.add_typer(redrive.app, name="redrive")
command(app, "status", examples=status.EXAMPLES)(status.status)
command(app, "forecast", examples=forecast.EXAMPLES)(forecast.forecast)
app.add_typer(runs.app, name="runs")
app.add_typer(incident.app, name="incident")
app.add_typer(control.app, name="control")
app.add_typer(budget.app, name="budget")
app.add_typer(capacity.app, name="capacity")
command(app, "validate", examples=validate.EXAMPLES)(validate.validate)
command(app, "audit", examples=audit.EXAMPLES)(audit.audit)
command(app, "doctor", examples=doctor.EXAMPLES)(doctor.doctor)
command(app, "cost", examples=cost.EXAMPLES)(cost.cost)
app.add_typer(new.app, name="new")
