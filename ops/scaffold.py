"""Your own lane: a folder with a task and its test, and one entry in the configuration. Nothing else changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import yaml

from shared.contract import names
from shared.core.errors import BadInput
from shared.core.job import name_of
from shared.core.stage import StageSpec

DEFAULTS = Path("config") / "parameter_defaults.yaml"
RESERVED = (*names.ENGINE_FUNCTIONS, names.INTAKE, "shared", "all")

_HANDLER = '''"""Worker of lane `{name}`."""

from __future__ import annotations

from functions.{name}.tasks import TASKS
from shared.runtime.worker_door import worker_door

handler = worker_door(TASKS)
'''

_TASKS = '''"""The tasks of lane `{name}`: each a function from a job and its context to an outcome."""

from __future__ import annotations

from collections.abc import Mapping

from shared.adapters.vendors import helpdesk
from shared.core.effects import Withheld
from shared.core.job import Job, identifier
from shared.core.outcome import Done, Outcome
from shared.core.sensitive import Sensitive
from shared.usecases.context import Context, Task


def notify(job: Job, ctx: Context) -> Outcome:
    """Send one message to a conversation: once in the life of the job, however often this runs."""
    order = ctx.payload.reveal()
    conversation = identifier("conversation_id", order.get("conversation_id"), 128)
    sent = ctx.effect("notify", helpdesk.reply(conversation, Sensitive("Your order is on its way.")))
    return Done("withheld" if isinstance(sent, Withheld) else "notified")


TASKS: Mapping[str, Task] = {{"notify": notify}}
'''

_TEST = '''"""Lane `{name}` on memory: the real engine, a virtual clock, a vendor that keeps a record."""

from __future__ import annotations

from functions.{name}.tasks import TASKS
from shared.core.job import Status
from tests.builders import a_lane
from tests.world import World


def test_a_job_sends_its_message_once() -> None:
    """However often its cause is enqueued, a job completes and the vendor accepts one message."""
    world = World(lane=a_lane(name="{name}", tasks=tuple(TASKS)), tasks=TASKS)
    job_id = world.enqueue("notify", key="order-1", payload={{"conversation_id": "c-1"}})
    world.enqueue("notify", key="order-1", payload={{"conversation_id": "c-1"}}, at_s=5)

    world.run_until_quiet()

    assert (Status.COMPLETED, "notified") == (world.job(job_id).status, world.job(job_id).result)
    assert 1 == len(world.vendor.accepts)
'''

_ENTRY = """
  {name}:
    tasks: [notify]
    vendors: [helpdesk]
    secret: {name}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written, relative to the project."""

    files: tuple[Path, ...]
    config: Path


def new_lane(name: str, root: Path) -> Written:
    """Write the lane; refuses a name that is taken and changes nothing then."""
    name_of("name", name)
    folder = root / "functions" / name
    if name in RESERVED or folder.exists():
        raise BadInput("name", f"{name!r} is taken; choose another")
    config = root / DEFAULTS
    before = config.read_text()
    settings = yaml.safe_load(before)
    if name in settings["lanes"]:
        raise BadInput("name", f"{DEFAULTS} already has a lane {name!r}")
    after = before.rstrip("\n") + "\n" + _ENTRY.format(name=name)
    # Written by appending, so that comments stay; this holds only while `lanes` is the file's last table.
    wanted = {**settings, "lanes": {**settings["lanes"], name: yaml.safe_load(_ENTRY.format(name=name))[name]}}
    if yaml.safe_load(after) != wanted:
        raise BadInput(str(DEFAULTS), "`lanes` must be its last table; move it to the end and try again")
    StageSpec.from_mappings("local", wanted)
    files = {
        folder / "__init__.py": "",
        folder / "handler.py": _HANDLER.format(name=name),
        folder / "tasks.py": _TASKS.format(name=name),
        folder / "test_tasks.py": _TEST.format(name=name),
    }
    folder.mkdir(parents=True)
    for path, text in files.items():
        path.write_text(text)
    config.write_text(after)
    return Written(files=tuple(path.relative_to(root) for path in files), config=DEFAULTS)
