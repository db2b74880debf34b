"""`penstock new lane`: a lane of your own, written into the project you stand in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.cli.command import Asked, command, group
from shared.core.errors import BadInput

app = group("Write a lane of your own.")


@command(app, "lane", examples=("penstock new lane orders",))
def lane(
    asked: Asked,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower case, digits and _.", show_default=False)],
    root: Annotated[Path, typer.Option("--root", help="The project's folder.")] = Path(),
) -> None:
    """Write a lane: a task, its test, and one entry in the configuration.

    Nothing else changes; stacks, queues, alarms and permissions follow from the entry.
    """
    from ops.scaffold import DEFAULTS, new_lane

    if not (root / DEFAULTS).exists():
        raise BadInput("root", f"{DEFAULTS} is not here; stand in the project's folder or give --root")
    written = new_lane(name, root)
    if asked.out.json:
        asked.out.document({"files": [str(path) for path in written.files], "config": str(written.config)})
        return
    for path in written.files:
        asked.out.say(f"wrote {path}")
    asked.out.say(f"added lanes.{name} to {written.config}")
    asked.out.say(f"next: .venv/bin/python -m pytest functions/{name}, then make local; see docs/your-first-lane.md")
