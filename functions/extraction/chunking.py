"""Cutting a text into chunks of at most so many tokens: every character in exactly one, the same cuts every time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.core.tokens import ASCII_PARTS, PARTS, PIECE, PIECE_PARTS, character_parts

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")
_SENTENCE = re.compile(r"[.!?][\"'”’)\]]*\s+|[。！？]\s*")
LEAST_TOKENS = 4
"""Below this not even one character of every script fits."""


def chunks_of(text: str, tokens: int, *, at_most: int) -> list[str] | None:
    """The chunks, in order; None when there would be more than `at_most`.

    A cut is made after a paragraph, else after a sentence, where that leaves the chunk at least half full; else
    between two words; a word that fills a chunk by itself is cut where it must be.
    """
    chunks: list[str] = []
    for chunk in _cut(text, max(LEAST_TOKENS, tokens)):
        if len(chunks) == at_most:
            return None
        chunks.append(chunk)
    return chunks


def _cut(text: str, tokens: int) -> Iterator[str]:
    start = 0
    while start < len(text):
        furthest = _furthest(text, start, tokens)
        end = furthest if furthest == len(text) else _boundary(text, start, furthest)
        yield text[start:end]
        start = end


def _furthest(text: str, start: int, tokens: int) -> int:
    """Where a chunk from `start` must end at the latest to be within the tokens."""
    low, high = start + 1, min(len(text), start + tokens * PARTS // ASCII_PARTS)
    if character_parts(text[start:high]) <= tokens * PARTS:
        low = high
    while low < high:
        middle = (low + high + 1) // 2
        if character_parts(text[start:middle]) <= tokens * PARTS:
            low = middle
        else:
            high = middle - 1
    room = tokens * PARTS // PIECE_PARTS
    for count, piece in enumerate(PIECE.finditer(text, start, low)):
        if count == room:
            return piece.start()
    return low


def _boundary(text: str, start: int, furthest: int) -> int:
    """The best place for a cut after `start`, at `furthest` at the latest."""
    half = start + (furthest - start + 1) // 2
    for mark in (_PARAGRAPH, _SENTENCE):
        ends = [found.end() for found in mark.finditer(text, half, furthest)]
        if ends:
            return ends[-1]
    for end in range(furthest, start, -1):
        if text[end - 1].isspace() or text[end].isspace():
            return end
    return furthest
