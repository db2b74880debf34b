"""The words an inference is answered with: made from the request's hash, and from the caller's text only when the
account is told to extract entities from it, or an intent, or when it is asked to rewrite it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ops.vendors.config import CannedAnswer

_SENTENCES = (
    "Thank you for getting in touch.",
    "We have looked at your account and everything is in order.",
    "The change you asked for is now in place.",
    "It can take up to one working day until you see it.",
    "Please sign in again and try once more.",
    "The parcel left our warehouse this morning.",
    "You will find the invoice under Billing.",
    "A colleague will take a closer look and come back to you.",
)
_CHARACTERS_PER_TOKEN = 4
_MAX_DEPTH = 12
REWRITTEN = "[rewritten] "
_WORD = re.compile(r"\w{2,40}")
_MOST_ENTITIES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The form asked for: plain text, any JSON object, or JSON of a schema."""

    json: bool = False
    schema: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The words, how many tokens they are, and whether the caller's limit cut them short."""

    text: str
    tokens: int
    cut: bool


def count_tokens(text: str) -> int:
    """A token is four characters, begun ones counted: near enough for a budget, and exact for a test."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def answer_for(
    *,
    digest: bytes,
    prompt: str,
    form: Format,
    max_tokens: int | None,
    canned: Sequence[CannedAnswer],
    material: str | None = None,
) -> Answer:
    """The answer to one request: a canned one where the prompt matches, else one made from the hash.

    With `material`, a schema that asks for entities is answered with the capitalised words in it, each once, and one
    that asks for an intent with the first it names. Instructions to rewrite are answered with the material, marked.
    """
    chosen = next((answer.content for answer in canned if answer.contains in prompt), None)
    if chosen is None and material is not None and (kinds := _entity_types(form)):
        chosen = json.dumps({"entities": _entities(material, kinds)}, ensure_ascii=False)
    if chosen is None and material is not None and (intents := _choices(form, "intent")):
        chosen = json.dumps({"intent": _intent(material, intents), "sure": True})
    if chosen is None and material is not None and not form.json and _asks_to_rewrite(prompt, material):
        chosen = REWRITTEN + material
    if chosen is None:
        chosen = json.dumps(_made(form, digest)) if form.json else _prose(digest)
    cut = max_tokens is not None and count_tokens(chosen) > max_tokens
    if max_tokens is not None and cut:
        chosen = chosen[: max_tokens * _CHARACTERS_PER_TOKEN]
    return Answer(text=chosen, tokens=count_tokens(chosen), cut=cut)


def _asks_to_rewrite(prompt: str, material: str) -> bool:
    return "rewrite" in prompt.removesuffix(material).lower()


def _entity_types(form: Format) -> Sequence[str]:
    """The types of entity a schema allows; none where it does not ask for entities."""
    return _choices(form, "entities", "items", "properties", "type")


def _intent(material: str, choices: Sequence[str]) -> str:
    """The first choice that the text names, in words of any case; else the last one, which says that none fits."""
    text = material.lower()
    return next((choice for choice in choices if choice.replace("_", " ") in text), choices[-1])


def _choices(form: Format, *path: str) -> Sequence[str]:
    """What a schema lets choose from at a place; nothing where it has no such place."""
    place: object = form.schema
    for part in ("properties", *path, "enum"):
        place = place.get(part) if isinstance(place, Mapping) else None
    return [kind for kind in place if isinstance(kind, str)] if isinstance(place, list) else ()


def _entities(material: str, kinds: Sequence[str]) -> list[dict[str, str]]:
    words = dict.fromkeys(word for word in _WORD.findall(material) if word[0].isupper())
    return [{"type": kinds[len(word) % len(kinds)], "value": word} for word in list(words)[:_MOST_ENTITIES]]


def _prose(digest: bytes) -> str:
    first = digest[0] % len(_SENTENCES)
    return " ".join(_SENTENCES[(first + step * 3) % len(_SENTENCES)] for step in range(2 + digest[1] % 3))


def _made(form: Format, digest: bytes) -> object:
    if form.schema is None:
        return {"answer": _prose(digest), "confidence": round(digest[2] / 255, 2)}
    return _from_schema(form.schema, form.schema, _Dice(digest), 0)


class _Dice:
    """Numbers from the hash, one after the other, starting again at its end."""

    def __init__(self, digest: bytes) -> None:
        self._digest = digest
        self._place = 0

    def roll(self, sides: int) -> int:
        value = self._digest[self._place % len(self._digest)]
        self._place += 1
        return value % sides


def _from_schema(schema: object, root: Mapping[str, object], dice: _Dice, depth: int) -> object:
    """A value of the schema. What it does not know becomes null, a cycle ends at a fixed depth."""
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return None
    if isinstance(reference := schema.get("$ref"), str):
        return _from_schema(_resolve(reference, root), root, dice, depth + 1)
    if "const" in schema:
        return schema["const"]
    if isinstance(choices := schema.get("enum"), list) and choices:
        return choices[dice.roll(len(choices))]
    for name in ("anyOf", "oneOf"):
        if isinstance(choices := schema.get(name), list) and choices:
            return _from_schema(choices[dice.roll(len(choices))], root, dice, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind == "object" or (kind is None and "properties" in schema):
        properties = schema.get("properties")
        if not isinstance(properties, Mapping):
            return {}
        return {name: _from_schema(part, root, dice, depth + 1) for name, part in properties.items()}
    if kind == "array":
        return [_from_schema(schema.get("items"), root, dice, depth + 1)]
    return _scalar(kind, schema, dice)


def _scalar(kind: object, schema: Mapping[str, object], dice: _Dice) -> object:
    if kind == "string":
        return _SENTENCES[dice.roll(len(_SENTENCES))]
    if kind == "boolean":
        return bool(dice.roll(2))
    if kind in ("integer", "number"):
        low, high = _bound(schema, "minimum", 0), _bound(schema, "maximum", 100 if kind == "integer" else 1)
        share = dice.roll(101) / 100
        value = low + (max(low, high) - low) * share
        return int(value) if kind == "integer" else round(value, 2)
    return None


def _bound(schema: Mapping[str, object], name: str, default: float) -> float:
    value = schema.get(name)
    return value if isinstance(value, int | float) and abs(value) < 1e15 else default


def _resolve(reference: str, root: Mapping[str, object]) -> object:
    place: object = root
    for part in reference.removeprefix("#/").split("/"):
        place = place.get(part) if isinstance(place, Mapping) else None
    return place
