"""Personal data by its shape, and the canary: what no log line may hold. Says where and of what kind, never what."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from shared.core.errors import BadInput

MARK = "pii-canary"
"""Planted in the text of events that nobody wrote: wherever it is seen but in the content store, text leaks."""
LEAST_MARKER = 6
"""A shorter word is found by chance."""


class Kind(StrEnum):
    """What was seen."""

    CANARY = "canary"
    EMAIL = "e-mail address"
    PHONE = "phone number"
    IBAN = "IBAN"
    CARD = "card number"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Something of this kind begins so many characters into the text."""

    kind: Kind
    offset: int


_HEX = "0-9A-Fa-f"
# Ids and times of our own, blanked before numbers are looked for: digits in them mean nothing.
_OURS = re.compile(
    rf"\b[{_HEX}]{{8}}-(?:[{_HEX}]{{4}}-){{3}}[{_HEX}]{{12}}\b|\b[{_HEX}]{{20,}}\b"
    r"|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
)
_EMAIL = re.compile(r"[A-Za-z0-9._%+-]{1,64}(?:@|%40)[A-Za-z0-9.-]{1,253}\.[A-Za-z]{2,24}")
_PHONES = (
    re.compile(r"(?<![\w.+-])(?:\+|00)[1-9]\d{0,2}(?:[ ./()-]{0,2}\d{1,5}){2,6}(?![\w-])"),
    re.compile(r"(?<![\w.+-])\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}(?![\w-])"),
    re.compile(r"(?<![\w.+-])0\d{2,4}[ /-]\d{5,9}(?![\w-])"),
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d\d(?: ?[A-Z0-9]){11,30}")
_CARD = re.compile(r"(?<![\w.+-])\d(?:[ -]?\d){12,18}(?![\w-])")
_ISSUED = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12}|62\d{14,17}"
)
_COUNTRIES = {
    15: "NO",
    16: "BE",
    18: "DK FI NL",
    19: "SI MK",
    20: "AT EE LT LU BA",
    21: "CH HR LI LV",
    22: "DE GB IE BG RS ME GE",
    23: "AE IL GI",
    24: "CZ ES PK RO SA SE SK TN",
    25: "PT",
    26: "IS TR",
    27: "FR GR IT MC SM",
    28: "AL AZ CY DO GT HU LB PL",
    29: "BR UA EG QA",
    30: "JO KW",
    31: "MT",
}
_IBAN_LENGTHS = {country: length for length, some in _COUNTRIES.items() for country in some.split()}


def marker_of(word: str) -> str:
    """A word to look for beside the mark: long enough to mean something."""
    if len(word.strip()) < LEAST_MARKER:
        raise BadInput("marker", f"must have at least {LEAST_MARKER} characters: a shorter word is found by chance")
    return word.strip()


def forms(marker: str) -> tuple[str, ...]:
    """How a word may look after it went through something: folded, as hexadecimal, in base64 at any place."""
    data = marker.encode()
    encoded = [base64.b64encode(b"x" * shift + data)[4 if shift else 0 : -4].decode() for shift in range(3)]
    return (marker.casefold(), data.hex(), *(part.casefold() for part in encoded))


def sightings(text: str, marked: Iterable[str]) -> Iterator[Sighting]:
    """Everything personal in a text. `marked` are the forms of the words to look for."""
    folded = text.casefold()
    for form in marked:
        if (at := folded.find(form)) >= 0:
            yield Sighting(kind=Kind.CANARY, offset=at)
            break
    if "@" in text or "%40" in text:
        yield from (Sighting(kind=Kind.EMAIL, offset=found.start()) for found in _EMAIL.finditer(text))
    bare = _OURS.sub(lambda found: " " * len(found[0]), text)
    taken: list[tuple[int, int]] = []
    for kind, shape, holds in _NUMBERS:
        for found in shape.finditer(bare):
            if holds(found[0]) and not any(start <= found.start() < end for start, end in taken):
                taken.append(found.span())
                yield Sighting(kind=kind, offset=found.start())


def _is_card(text: str) -> bool:
    """As issuers number them, and Luhn's sum: one number in ten passes that one, a moment in milliseconds not both."""
    digits = "".join(ch for ch in text if ch.isdigit())
    doubled = (sum(divmod(2 * int(ch), 10)) if place % 2 else int(ch) for place, ch in enumerate(reversed(digits)))
    return _ISSUED.fullmatch(digits) is not None and sum(doubled) % 10 == 0


def _is_iban(text: str) -> bool:
    """As long as its country has them, and 1 modulo 97."""
    whole = text.replace(" ", "")
    length = _IBAN_LENGTHS.get(whole[:2])
    if length is None or len(whole) < length:
        return False
    number = whole[4:length] + whole[:4]
    return int("".join(str(int(ch, 36)) for ch in number)) % 97 == 1


def _is_phone(text: str) -> bool:
    return 8 <= sum(ch.isdigit() for ch in text) <= 15


_NUMBERS = (
    (Kind.IBAN, _IBAN, _is_iban),
    (Kind.CARD, _CARD, _is_card),
    *((Kind.PHONE, shape, _is_phone) for shape in _PHONES),
)
"""Most certain first: what is one of them is not looked at as another."""
