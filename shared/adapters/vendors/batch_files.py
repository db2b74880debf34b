"""A provider's result file, read as it comes: bounded in size and in waiting, one line at a time."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shared.adapters.vendors.batch_replies import id_of, number_of
from shared.core.batch import MAX_ANSWER_CHARS, Answered, ResultLine, Unreadable
from shared.core.errors import BadInput, Unavailable
from shared.core.sensitive import Sensitive

LONGEST_LINE = 16 * MAX_ANSWER_CHARS
"""Bytes: an answer's characters as JSON may write them, and what stands around them."""
_NAMED = 4096
"""The id of a line that cannot be read is looked for in its first bytes."""


def check_size(stated: str | None, most_bytes: int) -> None:
    """Refuse a file that says it is too large before any of it is read."""
    if stated is not None and stated.isascii() and stated.isdigit() and int(stated[:18]) > most_bytes:
        raise _too_large(most_bytes)


def in_time(chunks: Iterable[bytes], timeout_s: float) -> Iterator[bytes]:
    """The chunks, as long as waiting for them takes no longer than this in all; a reader may take its time."""
    coming, left_s = iter(chunks), timeout_s
    while True:
        began_s = time.monotonic()
        chunk = next(coming, None)
        left_s -= time.monotonic() - began_s
        if chunk is None:
            return
        if left_s < 0:
            raise Unavailable("result file", "timeout")
        yield chunk


def lines_of(chunks: Iterable[bytes], most_bytes: int) -> Iterator[bytes]:
    """The lines that are not empty; one that is too long to be an answer is cut. Raises BadInput for a file that is
    too large, Unavailable for a page where a file should be."""
    read, held, cut, begun = 0, b"", False, False
    for chunk in chunks:
        read += len(chunk)
        if read > most_bytes:
            raise _too_large(most_bytes)
        if not begun and chunk.strip():
            begun = True
            if chunk.lstrip()[:1] == b"<":
                # A gateway's page. To take it for a file without lines would mean to pay for every line again.
                raise Unavailable("result file", "html")
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            line, held = held if cut else held + part, b""
            cut = False
            if line.strip():
                yield line
        if not cut:
            held += rest
            if len(held) > LONGEST_LINE:
                held, cut = held[:LONGEST_LINE], True
    if held.strip():
        yield held


def fields_of(line: bytes) -> dict[str, Any] | None:
    """The JSON object of a line, or None."""
    if len(line) >= LONGEST_LINE:
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def unreadable(line: bytes, name: str) -> Unreadable:
    """A line of no known shape, with the one id that stands in it under `name`."""
    found = set(re.findall(rb'"' + name.encode() + rb'"\s*:\s*"([^"\\]{1,200})"', line[:_NAMED]))
    only = found.pop().decode("ascii", "replace") if len(found) == 1 else None
    return Unreadable(custom_id=id_of(only))


def answered(custom_id: str, text: object, tokens: object, *, cut: bool) -> ResultLine:
    """A line with an answer, if it is one that may have been asked for."""
    if not isinstance(text, str) or not text.strip() or len(text) > MAX_ANSWER_CHARS:
        return Unreadable(custom_id=custom_id)
    return Answered(custom_id=custom_id, text=Sensitive(text), tokens=number_of(tokens), cut=cut)


def within(value: object, *names: str) -> Any:
    """What stands at a place in JSON; None where there is no such place."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _too_large(most_bytes: int) -> BadInput:
    return BadInput("result file", f"is larger than {most_bytes} bytes: look at the batch at its provider by hand")
