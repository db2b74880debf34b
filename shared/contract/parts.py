"""A text that is too large for one parameter: a head that says how many parts there are, and the parts.

A small text is its parameter's value as it is. Parts are written one after another; whoever reads in between finds
that they do not make the whole, and asks again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

LIMIT = 4096
"""Bytes that a standard parameter of Systems Manager may have; the texts are ASCII."""
MOST = 64
"""Parts of one text at most: a quarter of a megabyte of settings is a mistake."""
COUNT, WHOLE = "in_parts", "sha256"


class NotWhole(ValueError):
    """The parts are of two texts: a deploy is writing them."""


class TooLarge(ValueError):
    """The text is larger than its parts may be together."""


def in_parts(text: str) -> tuple[str, ...]:
    """The values to write: the text alone, or a head and its parts."""
    if len(text) <= LIMIT:
        return (text,)
    parts: list[str] = []
    rest = text
    while rest:
        cut = min(LIMIT, len(rest))
        # A value that begins or ends with a blank may be stored without it.
        while cut > 1 and cut < len(rest) and (rest[cut - 1].isspace() or rest[cut].isspace()):
            cut -= 1
        parts.append(rest[:cut])
        rest = rest[cut:]
    if len(parts) > MOST:
        raise TooLarge(f"has {len(text)} bytes; {MOST} parameters of {LIMIT} bytes hold less")
    return (json.dumps({COUNT: len(parts), WHOLE: _digest(text)}), *parts)


def whole(first: str, part: Callable[[int], str]) -> str:
    """The text again. `part` reads the n-th part, from 1; it is asked only where there are parts."""
    head = json.loads(first)
    count = head.get(COUNT) if isinstance(head, dict) else None
    if not isinstance(count, int):
        return first
    text = "".join(part(number) for number in range(1, count + 1))
    if _digest(text) != head.get(WHOLE):
        raise NotWhole("its parts do not belong together")
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
