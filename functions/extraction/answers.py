"""What a model answered, believed only where it has the form it was asked for; and the answers put together."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shared.contract import strict_json

TYPES = ("person", "organization", "place", "date", "amount", "identifier", "product", "other")
MAX_ENTITIES = 200
MAX_VALUE = 300
MAX_ANSWER_BYTES = 128 * 1024
_DEPTH = 3

SCHEMA = {
    "type": "object",
    "properties": {
        "entities": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"type": {"type": "string", "enum": list(TYPES)}, "value": {"type": "string"}},
                "required": ["type", "value"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["entities"],
    "additionalProperties": False,
}
"""The form in the vendor's words; `entities_of` checks it again, and the sizes."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One thing a text names, spelt as it stands there: customer text."""

    type: str
    value: str


def entities_of(reply: object) -> tuple[Entity, ...] | None:
    """The entities of a completion; None for any other answer than the one asked for. Never raises."""
    match reply:
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            return read(content)
    return None


def cut_short(reply: object) -> bool:
    """True for an answer that ended at its longest length: the text names more than one answer can hold."""
    match reply:
        case {"choices": [{"finish_reason": "length"}, *_]}:
            return True
    return False


def read(text: str | bytes) -> tuple[Entity, ...] | None:
    """The entities of an answer, or of one that was kept; None if it is not of the form."""
    try:
        answer = strict_json.loads(text, max_bytes=MAX_ANSWER_BYTES, max_depth=_DEPTH)
    except strict_json.NotStrict:
        return None
    if not isinstance(answer, dict) or set(answer) != {"entities"}:
        return None
    listed = answer["entities"]
    if not isinstance(listed, list) or len(listed) > MAX_ENTITIES:
        return None
    entities = [_entity(one) for one in listed]
    return None if None in entities else tuple(entity for entity in entities if entity is not None)


def written(entities: Iterable[Entity], **more: int) -> bytes:
    """The form in which they are kept."""
    listed = [{"type": entity.type, "value": entity.value} for entity in entities]
    return json.dumps({**more, "entities": listed}, ensure_ascii=False, separators=(",", ":")).encode()


def merged(found: Iterable[Iterable[Entity]]) -> tuple[Entity, ...]:
    """All entities of all chunks, each once, in the order in which the text names them first."""
    return tuple(dict.fromkeys(entity for entities in found for entity in entities))


def _entity(given: Any) -> Entity | None:
    if not isinstance(given, dict) or set(given) != {"type", "value"} or given["type"] not in TYPES:
        return None
    value = given["value"]
    if not isinstance(value, str) or len(value) > MAX_VALUE or not value.strip():
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        # Half of a character: JSON can spell it, nothing can store it.
        return None
    return Entity(given["type"], value.strip())
