"""Where an event goes, and whether a machine may answer it: decided by intents alone, never by text.

    the text ──► the rules' own words ──► intents mentioned ─┐
    the text ──► the model ──► one listed intent, or unclear ─┼──► decide ──► team, tag, answered or not
    what the sender says it is about ──► topic ───────────────┘

The strictest of the three counts. A model that is misled by a text can at worst choose another intent of the list; what
the rules found in the same text it cannot lift.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from shared.core.errors import BadInput
from shared.core.job import name_of

UNCLEAR = "unclear"
"""The tag of what nobody could place; no intent can be called so."""
MODEL, RULES = "model", "rules"
MOST_INTENTS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """What an event may be about: the team it goes to, and the words by which rules know it."""

    team: str
    words: tuple[str, ...] = ()
    """Words or phrases; a `*` at an end stands for more letters there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where an event goes. `reply`: a machine may answer it."""

    intent: str
    team: str
    tier_0: bool
    reply: bool
    by: str

    def to_mapping(self) -> dict[str, Any]:
        """What a job's row keeps of it."""
        return {"intent": self.intent, "team": self.team, "tier_0": self.tier_0, "by": self.by}


@dataclass(frozen=True, kw_only=True)
class Routing:
    """A lane's intents. `tier_0` are those that only people answer, in any mode."""

    default_team: str
    tier_0: tuple[str, ...]
    intents: Mapping[str, Intent] = field(hash=False)

    @classmethod
    def from_mapping(cls, where: str, values: object) -> Routing:
        """The routing that a configuration entry describes; each sentence says what to change."""
        given = _table(where, values, ("default_team", "tier_0", "intents"))
        intents = {
            _intent_name(f"{where}.intents", name): _intent(f"{where}.intents.{name}", entry)
            for name, entry in _table(f"{where}.intents", given.get("intents")).items()
        }
        if not 1 <= len(intents) <= MOST_INTENTS:
            raise BadInput(f"{where}.intents", f"must name 1 to {MOST_INTENTS} intents, each with its team")
        tier_0 = _words(f"{where}.tier_0", given.get("tier_0"))
        if not tier_0:
            raise BadInput(f"{where}.tier_0", "must name at least one intent that only people answer")
        for name in tier_0:
            if name not in intents:
                raise BadInput(f"{where}.tier_0", f"names {name!r}, which intents does not define")
        team = name_of(f"{where}.default_team", given.get("default_team"))
        return cls(default_team=team, tier_0=tier_0, intents=intents)

    def to_mapping(self) -> dict[str, Any]:
        """As plain values: `from_mapping` gives the same routing back."""
        intents = {
            name: {"team": one.team} | ({"words": list(one.words)} if one.words else {})
            for name, one in self.intents.items()
        }
        return {"default_team": self.default_team, "tier_0": list(self.tier_0), "intents": intents}

    def mentioned_in(self, *texts: str) -> frozenset[str]:
        """The intents whose words stand in a text. Letters of any case, width and accent are the same, and marks that
        nobody sees neither part a word nor join two."""
        read = f" {' '.join(_plain(text, unseen) for text in texts for unseen in ('', ' '))} "
        return frozenset(name for name, words in self._patterns.items() if any(word in read for word in words))

    def understood(self, intent: object, sure: object) -> str:
        """The listed intent that a model's answer means; unclear for any other answer. Tier 0 needs no certainty."""
        if not isinstance(intent, str) or intent not in self.intents:
            return UNCLEAR
        return intent if sure is True or intent in self.tier_0 else UNCLEAR

    def topic(self, given: str) -> str | None:
        """The listed intent that a sender's topic names, however its letters and blanks are written."""
        return self._topics.get(_plain(given))

    @cached_property
    def _topics(self) -> dict[str, str]:
        return {_plain(name): name for name in self.intents}

    @cached_property
    def _patterns(self) -> dict[str, tuple[str, ...]]:
        return {name: tuple(map(_pattern, one.words)) for name, one in self.intents.items()}


def decide(
    routing: Routing, *, mentioned: Collection[str], topic: str | None, answer: str | None, whole: bool = True
) -> Route:
    """The route of an event. `answer`: the model's intent, `UNCLEAR` if it gave none that counts, None if it was not
    asked; `whole`: it was shown all of the text.

    Tier 0, whoever found it, is for people. A machine answers only what the model has read and understood; what it has
    not goes to a person, and rules alone choose a team and never an answer.
    """
    strict = [name for name in routing.tier_0 if name in mentioned or name in (topic, answer)]
    if strict:
        by = MODEL if answer == strict[0] else RULES
        return Route(intent=strict[0], team=routing.intents[strict[0]].team, tier_0=True, reply=False, by=by)
    if answer is not None:
        known = routing.intents.get(answer)
        if known is not None:
            return Route(intent=answer, team=known.team, tier_0=False, reply=whole, by=MODEL)
        return _for_a_person(routing, by=MODEL)
    for name, one in routing.intents.items():
        if name == topic or (topic is None and name in mentioned):
            return Route(intent=name, team=one.team, tier_0=False, reply=False, by=RULES)
    return _for_a_person(routing, by=RULES)


def decide_by_topic(routing: Routing, *, mentioned: Collection[str], topic: str | None) -> Route:
    """The route of an event whose sender says what it is about: answered if that is listed, and Tier 0 is not in it."""
    route = decide(routing, mentioned=mentioned, topic=topic, answer=None)
    return route if route.tier_0 or topic is None else replace(route, reply=True)


def _for_a_person(routing: Routing, *, by: str) -> Route:
    return Route(intent=UNCLEAR, team=routing.default_team, tier_0=False, reply=False, by=by)


def _plain(text: str, unseen: str = "") -> str:
    """A text as words are looked for in it: lower case, no accents, single blanks, `unseen` for invisible marks."""
    if text.isascii():
        return " ".join("".join(ch if ch.isalnum() else " " for ch in text.lower()).split())
    parts = ((ch, unicodedata.category(ch)) for ch in unicodedata.normalize("NFKD", text.casefold()))
    seen = "".join(unseen if kind == "Cf" else ch for ch, kind in parts if kind != "Mn")
    return " ".join("".join(ch if ch.isalnum() else " " for ch in seen.casefold()).split())


def _pattern(word: str) -> str:
    before, after = "" if word.startswith("*") else " ", "" if word.endswith("*") else " "
    return f"{before}{_plain(word)}{after}"


def _intent_name(where: str, name: object) -> str:
    if name == UNCLEAR:
        raise BadInput(where, f"names {UNCLEAR!r}, which stands for no intent at all: choose another name")
    return name_of(where, name)


def _intent(where: str, values: object) -> Intent:
    given = _table(where, values, ("team", "words"))
    words = _words(f"{where}.words", given.get("words", ()))
    for word in words:
        if len(_plain(word)) < 2:
            raise BadInput(f"{where}.words", "must be words or phrases of at least two letters")
    return Intent(team=name_of(f"{where}.team", given.get("team")), words=words)


def _words(where: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(word, str) for word in values):
        raise BadInput(where, "must be a list of words")
    return tuple(values)


def _table(where: str, values: object, known: tuple[str, ...] | None = None) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise BadInput(where, "must be a table of settings")
    for name in values:
        if known is not None and name not in known:
            raise BadInput(where, f"has an unknown setting {name!r}")
    return values
