"""The tree of errors: drawn in its module, one code each, and no text of a customer's in any message."""

from __future__ import annotations

import inspect
import re

import pytest

from shared.core import errors
from shared.core.errors import PenstockError


def classes() -> list[type[PenstockError]]:
    """Every error of the module, the root included."""
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, PenstockError) and value.__module__ == errors.__name__
    ]


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    """Every class is drawn under its parent, and nothing is drawn that does not exist."""
    drawn: dict[str, str | None] = {}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^    ([│├└─ ]*)([A-Z]\w+)", line)
        if not found:
            continue
        depth = len(found[1])
        path = [(d, name) for d, name in path if d < depth]
        drawn[found[2]] = path[-1][1] if path else None
        path.append((depth, found[2]))
    actual = {c.__name__: c.__base__.__name__ if c is not PenstockError else None for c in classes()}  # type: ignore[union-attr]
    assert drawn == actual


def test_every_class_has_its_own_code_and_promise() -> None:
    """A code is what is logged instead of a message; a docstring says what the caller can do."""
    codes = [c.code for c in classes()]
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)
    assert all(c.__doc__ for c in classes())


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (errors.BadInput("tenant", "is missing or empty"), "tenant: is missing or empty"),
        (errors.UnknownLane("mail", ("support",)), "lane: 'mail' is not configured; known lanes: support"),
        (errors.UnknownLane("mail", ()), "known lanes: none"),
        (errors.EnqueueConflict("j-1"), "a new cause needs a new key"),
        (errors.IllegalMove("j-1", "queued", "completed", "done"), "cannot go from queued to completed (done)"),
        (errors.UnreadableRow("JOB#1", "status is not one this version knows"), "row JOB#1: status is not"),
        (errors.ClaimLost("j-1", 3), "fence 3 is no longer current"),
        (errors.RowMoved("j-1", None), "job j-1 changed since it was read"),
        (errors.EffectMoved("e-1", None), "effect e-1 changed since it was read"),
        (errors.ControlUnreadable("control", "throttled"), "control is unavailable (throttled)"),
    ],
    ids=lambda value: value.code if isinstance(value, PenstockError) else "",
)
def test_a_message_names_what_is_wrong(error: PenstockError, says: str) -> None:
    """Fields and ids, and what to do."""
    assert says in str(error)
