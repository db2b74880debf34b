"""Which local stack is meant: the one named, the default one, or whichever runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shared.core.errors import BadInput

if TYPE_CHECKING:
    from ops.local.state import StackState

LOCAL_NAME = "PENSTOCK_LOCAL"
"""Variable that names the local stack when several run."""
DEFAULT = "default"


def running(environ: Mapping[str, str], name: str | None = None) -> StackState | None:
    """The local stack that is meant, or None when it does not run."""
    from ops.local import stack, state

    wanted = name or environ.get(LOCAL_NAME)
    others = [one for one in state.names() if one != DEFAULT]
    for one in [wanted] if wanted else [DEFAULT, *others]:
        found = stack.status(name=one)
        if found is not None:
            return found
    return None


def needed(environ: Mapping[str, str], name: str | None = None) -> StackState:
    """The same, or an error that says how to start it."""
    found = running(environ, name)
    if found is None:
        raise BadInput("name", f"{name or 'the local stack'} is not running: start it with `penstock local up`")
    return found
