"""Which AWS actions each function called on the local stack."""

from __future__ import annotations

import json

from ops.local import state


def calls(name: str = "default") -> dict[str, set[tuple[str, str]]]:
    """Function → the (action, resource ARN) pairs it asked for since the stack was started.

    Read from the signatures of its requests, so it is what was really sent, allowed or not. An S3 object's key is
    left out (`bucket/*`); a transaction counts as its single actions, a batch as the action it needs.
    """
    found: dict[str, set[tuple[str, str]]] = {}
    try:
        text = (state.folder(name) / "calls.jsonl").read_text(encoding="utf-8")
    except FileNotFoundError:
        return found
    # The last line may still be on its way.
    for line in text[: text.rfind("\n") + 1].splitlines():
        row = json.loads(line)
        found.setdefault(row["function"], set()).add((row["action"], row["resource"]))
    return found
