"""`penstock jobs resolve`: what two people found out about an outcome that nobody knew."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.cli.command import Asked, command
from ops.cli.jobs import Id, app, whole_id
from ops.cli.redrive import warn_unnamed
from ops.cli.show import styled
from shared.core.job import Status
from shared.core.plan import Finding


@command(
    app,
    "resolve",
    examples=(
        "penstock jobs resolve 3d0a… --accepted --evidence ticket/4711",
        "penstock jobs resolve 3d0a… --accepted --evidence ticket/4711 --confirm",
        "penstock jobs resolve 3d0a… --not-sent --evidence case/12",
    ),
)
def resolve(
    asked: Asked,
    job_id: Id,
    evidence: Annotated[
        str,
        typer.Option("--evidence", metavar="REF", help="Where it can be seen: an id or a path.", show_default=False),
    ],
    accepted: Annotated[bool, typer.Option("--accepted", help="The vendor has it.")] = False,
    not_sent: Annotated[bool, typer.Option("--not-sent", help="The vendor does not have it.")] = False,
    confirm: Annotated[bool, typer.Option("--confirm", help="Agree to what somebody else requested.")] = False,
    more_to_do: Annotated[
        bool, typer.Option("--more-to-do", help="Accepted, and the job has more to do: a plan goes on with it.")
    ] = False,
    effect: Annotated[
        str | None, typer.Option("--effect", metavar="NAME", help="Which one, where several are open.")
    ] = None,
) -> None:
    """Say whether the vendor has what was begun, with evidence. It takes two people.

    The first call requests it; somebody else gives the same with --confirm. Accepted: the effect is recorded, and the
    job is completed. Not sent: the effect is recorded as refused, and a plan may send it again.
    """
    from shared.usecases.resolve_unknown import Resolver

    if accepted == not_sent:
        raise typer.BadParameter("give exactly one of --accepted and --not-sent")
    stage = asked.stage()
    resolver = Resolver(
        jobs=stage.jobs,
        effects=stage.effects,
        resolutions=stage.resolutions,
        history=stage.history,
        lanes=stage.lanes,
        people=stage.people,
        clock=stage.clock,
    )
    finding = Finding.ACCEPTED if accepted else Finding.NOT_SENT
    whole, by = whole_id(job_id), stage.caller.arn
    if not confirm:
        asked_for = resolver.request(whole, finding, evidence, by=by, more_to_do=more_to_do, effect=effect)
        if asked.out.json:
            asked.out.document({"resolution": asked_for})
            return
        words = f"--{finding.value.replace('_', '-')} --evidence {asked_for.evidence}"
        words += " --more-to-do" if more_to_do else ""
        words += f" --effect {effect}" if effect is not None else ""
        asked.out.say(f"requested: {whole} is {finding.value.replace('_', ' ')} ({', '.join(asked_for.effects)}).")
        warn_unnamed(asked, stage)
        asked.out.say(f"Somebody else confirms it with: penstock jobs resolve {whole} {words} --confirm")
        return
    resolution, job = resolver.confirm(whole, finding, evidence, by=by, more_to_do=more_to_do, effect=effect)
    if asked.out.json:
        asked.out.document({"resolution": resolution, "job": job})
        return
    if job.status is Status.COMPLETED:
        asked.out.say(styled(f"resolved {whole}: it is completed", "green"))
    else:
        asked.out.say(styled(f"resolved {whole}: recorded; it stays failed until a plan replays it", "green"))
        asked.out.say(f"penstock redrive plan {job.lane} --job {whole} --cause …")
