"""How many tokens a text is worth, by a rule of thumb: a budget is charged with it before a vendor tells the truth.

Tokenizers make about one token of four Latin characters, of three bytes of any other script, and at least one of
every word, of three digits and of every sign. The estimate is the larger of the two counts, so dense text (tables,
code, numbers) is not taken for prose. It is never less for a longer text.
"""

from __future__ import annotations

import re

PIECE = re.compile(r"[^\W\d_]+|\d{1,3}|[^\w\s]|_")
"""A word, up to three digits, or a sign: what no tokenizer joins with its neighbour."""
PARTS = 12
"""One token in parts: an ASCII character is 3 of them, a byte of any other 4, a piece 16 (a word is 4/3 tokens)."""
ASCII_PARTS, BYTE_PARTS, PIECE_PARTS = 3, 4, 16
MESSAGE_TOKENS = 8
"""What a message costs besides its text: its role and the marks around it."""


def text_tokens(text: str) -> int:
    """The estimate for a text; 0 only for none."""
    return -(-max(character_parts(text), PIECE_PARTS * sum(1 for _ in PIECE.finditer(text))) // PARTS)


def character_parts(text: str) -> int:
    """What the characters alone weigh, in parts of a token."""
    if text.isascii():
        return ASCII_PARTS * len(text)
    plain = len(text.encode("ascii", "ignore"))
    return ASCII_PARTS * plain + BYTE_PARTS * (len(text.encode("utf-8", "surrogatepass")) - plain)


def call_tokens(*messages: str, answer_tokens: int) -> int:
    """The estimate for a whole call: every message, and the longest answer it allows. Never zero."""
    return max(1, sum(text_tokens(message) + MESSAGE_TOKENS for message in messages) + answer_tokens)
