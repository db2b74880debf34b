"""The name that was probably meant, for whoever mistyped one at night."""

from __future__ import annotations

from collections.abc import Iterable


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean support?`, or nothing where no known name is near."""
    # Imported here: only who is refused pays for it.
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def unknown(name: object, known: Iterable[str], kinds: str) -> str:
    """A sentence that refuses a name: what was given, what is near it, and all there is."""
    there = list(known)
    near = meant(name[:64], there) if isinstance(name, str) else ""
    return f"{name!r} is not configured{near or ';'} known {kinds}: {', '.join(there) or 'none'}"
