"""`penstock jobs erase`: what a customer wrote is gone for good."""

from __future__ import annotations

from typing import Annotated

import typer

from ops.cli.command import Asked, command
from ops.cli.jobs import Id, app, whole_id
from ops.cli.show import styled

Why = Annotated[str, typer.Option("--why", help="Why, in a few words; kept with your name.", show_default=False)]


@command(app, "erase", examples=('penstock jobs erase 3d0a… --why "the customer asked for it"',))
def erase(asked: Asked, job_id: Id, why: Why) -> None:
    """Remove what a customer wrote for an ended job, and what it kept, for good. There is no way back.

    The payload goes from wherever it is, row or object, and every text that the job kept. Its row and history stay;
    they hold no text. A job that may still run is canceled or dismissed first.
    """
    from shared.usecases.erase import erase as erase_texts

    stage = asked.stage()
    whole = whole_id(job_id)
    gone = erase_texts(
        whole,
        by=stage.caller.arn,
        why=why,
        jobs=stage.jobs,
        content=stage.content,
        objects=stage.content_objects,
        history=stage.history,
        clock=stage.clock,
    )
    if asked.out.json:
        asked.out.document({"job_id": whole, "erased": gone})
    else:
        asked.out.say(styled(f"erased {gone} texts of {whole}", "green"))
