"""Reading JSON from a stranger: one answer, or one sentence that says what is wrong."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class BodyError(ValueError):
    """The body cannot be used. Its text is a sentence for the caller, without any of the body in it."""


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in the body. Raises BodyError, and nothing else, for everything that is not one."""
    try:
        value = json.loads(body.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_no_constant)
    except BodyError:
        raise
    except UnicodeDecodeError:
        raise BodyError("the body is not UTF-8") from None
    except RecursionError:
        raise BodyError("the body is nested too deeply") from None
    except ValueError:
        raise BodyError("the body is not valid JSON") from None
    if not isinstance(value, dict):
        raise BodyError("the body must be a JSON object")
    return value


def required_text(fields: dict[str, Any], name: str) -> str:
    """The text in one field. Raises BodyError where it is missing, empty or not text."""
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BodyError(f"{name} is missing: it must be a text that is not empty")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BodyError(f"{name} is not valid Unicode") from None
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise BodyError("the body names a field twice")
    return fields


def _no_constant(name: str) -> NoReturn:
    raise BodyError(f"the body holds {name}, which is not JSON")
