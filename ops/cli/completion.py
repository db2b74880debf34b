"""What a shell offers after Tab: names of this stage. It asks once, and offers nothing rather than an error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from ops.cli.stage import Stage

MOST_PLANS = 20
"""Of each lane, the newest."""


def lanes(ctx: typer.Context, incomplete: str) -> list[str]:
    """Lanes."""
    return _offered(ctx, incomplete, lambda stage: stage.lanes_at_once)


def accounts(ctx: typer.Context, incomplete: str) -> list[str]:
    """Vendor accounts."""
    return _offered(ctx, incomplete, lambda stage: stage.accounts)


def scopes(ctx: typer.Context, incomplete: str) -> list[str]:
    """What a switch can be set for: all but tenants, whom nobody lists."""
    from shared.core.scopes import known_scopes

    return _offered(ctx, incomplete, lambda stage: known_scopes(stage.lanes_at_once))


def plans(ctx: typer.Context, incomplete: str) -> list[str]:
    """Redrive plans, each lane's newest first."""

    def of(stage: Stage) -> Iterable[str]:
        from shared.usecases.plan_redrive import subject_of

        for lane in stage.lanes_at_once:
            for event in stage.history.of(subject_of(lane), limit=MOST_PLANS):
                yield str(event.detail.get("plan", ""))

    return _offered(ctx, incomplete, of)


def _offered(ctx: typer.Context, incomplete: str, names: Callable[[Stage], Iterable[str]]) -> list[str]:
    from ops.cli.stage import Stage

    try:
        found = dict.fromkeys(names(Stage.open(_stage_of(ctx))))
    except Exception:
        # Whoever presses Tab has asked for nothing yet: the command itself will say what is wrong.
        return []
    return [name for name in found if name and name.startswith(incomplete)]


def _stage_of(ctx: Any) -> str | None:
    """`--stage`, wherever it stands before the word."""
    while ctx is not None:
        if given := ctx.params.get("stage"):
            return str(given)
        ctx = ctx.parent
    return None


OFFERED: Mapping[str, Callable[[typer.Context, str], list[str]]] = {
    "lane": lanes,
    "account": accounts,
    "scope": scopes,
    "plan_id": plans,
}
"""By the name of a command's argument or option."""
