"""The lane's task: a document is read in chunks by a model, and what it names is stored by the job's id.

Every chunk that was answered is kept, so an attempt that has to wait for the vendor's limit goes on where it stopped
and no chunk is paid for twice.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

from functions.extraction.answers import Entity, cut_short, entities_of, merged, read, written
from functions.extraction.chunking import chunks_of
from functions.extraction.question import (
    ANSWER_TOKENS,
    CHUNK_TOKENS,
    FORMAT,
    INSTRUCTIONS,
    MODEL,
    VENDOR,
    chunk_tokens_within,
    question,
)
from shared.core.document import MAX_DOCUMENT_BYTES
from shared.core.effects import Withheld
from shared.core.errors import BadInput
from shared.core.job import Category, Job
from shared.core.outcome import Defer, Done, Fail, Outcome, Retry
from shared.core.tokens import text_tokens
from shared.usecases.context import Context, Task

MAX_CHUNKS = 1_000
CALL_S = 5.0
"""With less time left no chunk is begun; after the first, twice what the slowest took, if that is more."""
CUTTING = 1
"""Raised when `chunking` cuts otherwise, so that chunks of the old cut are not taken for the new."""
CUT = b"cut"
"""Kept in the place of an answer that was cut short."""
MAX_CUTS = 4
"""So often a chunk is halved: the last parts are a sixteenth of it, and name no more than an answer holds."""
MAX_PARTS = 4
"""Halves end at sentences and words, so there may be one or two more."""
RESULT = "extraction"


def extract_document(job: Job, ctx: Context) -> Outcome:
    """Extract what a document names: `{"document": ref}` of `put_document`, or a short `{"text": …}`."""
    return extract(ctx, min(CHUNK_TOKENS, chunk_tokens_within(ctx.largest_call(VENDOR))))


def extract(ctx: Context, chunk_tokens: int) -> Outcome:
    """The same with chunks of another size."""
    text = _text(ctx)
    chunks = chunks_of(text, chunk_tokens, at_most=MAX_CHUNKS)
    if chunks is None:
        return Fail(Category.MALFORMED, "document_too_long")
    # Nothing is named by blanks alone.
    asked = [chunk for chunk in chunks if not chunk.isspace()]
    return _Extraction(ctx=ctx, chunks=asked, fingerprint=_fingerprint(text, chunk_tokens)).run()


@dataclass(slots=True, kw_only=True)
class _Extraction:
    """One attempt at the chunks of one text."""

    ctx: Context
    chunks: list[str]
    fingerprint: str
    found: dict[int, tuple[Entity, ...]] = field(default_factory=dict)
    slowest_s: float = 0.0

    def run(self) -> Outcome:
        """On from the first chunk nobody answered, then what earlier attempts kept; then all of it together."""
        first = bisect_left(range(len(self.chunks)), True, key=lambda place: self._kept(self._name(place)) is None)
        for place in (*range(first, len(self.chunks)), *range(first)):
            if self.ctx.remaining_s < max(CALL_S, 2 * self.slowest_s):
                return Defer(self.ctx.now, "time_budget")
            entities = self._found(self._name(place), self.chunks[place])
            if not isinstance(entities, tuple):
                return entities
            self.found[place] = entities
        everything = merged(self.found[place] for place in range(len(self.chunks)))
        return Done("extracted", self.ctx.keep(RESULT, written(everything, chunks=len(self.chunks))))

    def _found(self, name: str, text: str, cuts: int = 0) -> tuple[Entity, ...] | Outcome:
        """What a text names: kept, asked, or, where one answer could not hold it, found in its halves."""
        kept = self._kept(name)
        found = self._asked(name, text) if kept is None else kept
        if not isinstance(found, bytes):
            return found
        halves = chunks_of(text, text_tokens(text) // 2, at_most=MAX_PARTS)
        if cuts == MAX_CUTS or halves is None or len(halves) < 2:
            return Retry("answer_cut")
        parts: list[tuple[Entity, ...]] = []
        for number, half in enumerate(halves):
            entities = () if half.isspace() else self._found(f"{name}-{number}", half, cuts + 1)
            if not isinstance(entities, tuple):
                return entities
            parts.append(entities)
        return merged(parts)

    def _asked(self, name: str, text: str) -> tuple[Entity, ...] | bytes | Outcome:
        """Ask about one text and keep the answer, or that it was cut short: it is paid for, and not asked again."""
        if self.ctx.remaining_s < max(CALL_S, 2 * self.slowest_s):
            return Defer(self.ctx.now, "time_budget")
        began = self.ctx.now
        reply = self.ctx.call(question(text))
        if isinstance(reply, Withheld):
            return Done("withheld")
        found = CUT if cut_short(reply.reveal()) else entities_of(reply.reveal())
        if found is None:
            return Retry("answer_invalid")
        self.ctx.keep(name, found if isinstance(found, bytes) else written(found))
        self.slowest_s = max(self.slowest_s, (self.ctx.now - began).total_seconds())
        return found

    def _kept(self, name: str) -> tuple[Entity, ...] | bytes | None:
        data = self.ctx.kept(name)
        return data if data is None or data == CUT else read(data)

    def _name(self, place: int) -> str:
        return f"chunk-{self.fingerprint}-{place:04d}"


def _text(ctx: Context) -> str:
    given = ctx.payload.reveal()
    if ("document" in given) == ("text" in given):
        raise BadInput("payload", "must have either a document or a text")
    if "text" in given:
        text = given["text"]
        if not isinstance(text, str) or not text:
            raise BadInput("text", "must be text that is not empty")
        return text
    data = ctx.document(given["document"]).reveal()
    if len(data) > MAX_DOCUMENT_BYTES:
        raise BadInput("document", f"has {len(data)} bytes, at most {MAX_DOCUMENT_BYTES} are allowed")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadInput("document", "is not UTF-8") from None


def _fingerprint(text: str, chunk_tokens: int) -> str:
    """What a chunk's answer depends on: a changed document, size or question shares no answer with the old one."""
    about = [
        CUTTING,
        chunk_tokens,
        MODEL,
        ANSWER_TOKENS,
        INSTRUCTIONS,
        FORMAT,
        hashlib.sha256(text.encode()).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]


TASKS: Mapping[str, Task] = {"extract_document": extract_document}
