"""JSON as we accept it: no duplicate names, no NaN, bounded size and depth. Errors never repeat the input."""

from __future__ import annotations

import json
from typing import Any, NoReturn

MAX_DEPTH = 32


class NotStrict(ValueError):
    """The text is not JSON as we accept it; the message says why and holds none of it."""


def loads(text: str | bytes, *, max_bytes: int = 512 * 1024, max_depth: int = MAX_DEPTH) -> Any:
    """Parse, or raise NotStrict."""
    if isinstance(text, bytes):
        if len(text) > max_bytes:
            raise NotStrict(f"has {len(text)} bytes, at most {max_bytes} are allowed")
        try:
            text = text.decode()
        except UnicodeDecodeError:
            raise NotStrict("is not UTF-8") from None
    if len(text) > max_bytes:
        raise NotStrict(f"has over {max_bytes} characters")
    if _depth(text, max_depth) > max_depth:
        raise NotStrict(f"is nested deeper than {max_depth} levels")
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_short_int,
        )
    except NotStrict:
        raise
    except (ValueError, RecursionError):
        # JSONDecodeError carries the whole document: cut it off.
        raise NotStrict("is not valid JSON") from None


def _depth(text: str, limit: int) -> int:
    depth = deepest = 0
    in_string = escaped = False
    for ch in text:
        if in_string:
            if escaped:
                escaped = False
            elif ch == "\\":
                escaped = True
            elif ch == '"':
                in_string = False
        elif ch == '"':
            in_string = True
        elif ch in "[{":
            depth += 1
            deepest = max(deepest, depth)
            if deepest > limit:
                break
        elif ch in "]}":
            depth -= 1
    return deepest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotStrict("has the same field twice")
    return found


def _no_constant(_: str) -> NoReturn:
    raise NotStrict("holds NaN or Infinity")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise NotStrict("holds a number too large to keep")
    return value


def _short_int(text: str) -> int:
    if len(text) > 38:
        raise NotStrict("holds a number too large to keep")
    return int(text)
