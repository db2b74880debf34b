"""Lane `support` as production runs it: its settings read from `config/`, its vendor in memory, one reply a job."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from shared.adapters.vendors import helpdesk
from shared.core.account import AccountSpec
from shared.core.effects import Withheld
from shared.core.job import Job
from shared.core.lane import LaneSpec
from shared.core.outcome import Done, Outcome
from shared.core.sensitive import Sensitive
from shared.core.stage import StageSpec
from shared.usecases.context import Context

CONFIG = Path(__file__).resolve().parents[2] / "config"
VENDOR = "helpdesk"
TASK = "reply"
TAKES_S = (1.5, 2.5)
"""How long the help desk takes for a reply. At two seconds each, the ceiling's twenty at once are about the 600 replies
a minute that the account allows: neither the cap nor the budget is the only one that counts."""


@cache
def stage() -> StageSpec:
    """Production's settings, as a deploy reads them."""
    return StageSpec.from_mappings("prod", _read("parameter_defaults"), _read("prod"))


def lane(**changes: Any) -> LaneSpec:
    """The lane with one task, which makes one effect at the help desk: what its cap and its pace are about."""
    only: dict[str, Any] = {"tasks": (TASK,), "vendors": (VENDOR,), "accounts": (VENDOR,), "intake": None}
    return replace(stage().lanes["support"], **only, task_vendors={}, routing=None, **changes)


def account() -> AccountSpec:
    """The help desk's account."""
    return stage().accounts[VENDOR]


def reply(job: Job, ctx: Context) -> Outcome:
    """One answer to a customer, once in the life of the job."""
    made = ctx.effect("reply", helpdesk.reply(job.job_id, Sensitive("Thank you.")))
    return Done("withheld" if isinstance(made, Withheld) else "replied")


def _read(name: str) -> dict[str, Any]:
    return yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8")) or {}
