"""What a vendor saw and what it accepted: the judge of duplicates.

Pure and in memory (a journal may be attached), safe to use from many threads, and usable without HTTP:
the virtual-clock simulation and the HTTP simulator write to the same class.

No text that a customer wrote is kept: a send leaves the SHA-256 and the length of its text, and the
caller's bearer token leaves twelve characters of its hash.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


class VerdictKind(StrEnum):
    """What the vendor made of a request, whatever the caller got to hear of it."""

    ACCEPTED = "accepted"  # the action took place; the only kind that can be a duplicate
    DEDUPED = "deduped"  # a repeat of an accepted key: nothing took place
    COMPUTED = "computed"  # an inference was made; it may be repeated, so it is never an accept
    LOOKED_UP = "looked_up"
    REFUSED_429 = "refused_429"
    REFUSED_5XX = "refused_5xx"
    REFUSED_4XX = "refused_4xx"
    UNAUTHORISED = "unauthorised"
    DROPPED = "dropped"  # the connection was closed and nothing took place


class Ending(StrEnum):
    """What the caller got to hear. A request can be accepted and yet end in a dropped connection."""

    ANSWERED = "answered"
    DROPPED = "dropped"  # closed without an answer
    HUNG = "hung"  # answered or closed only after the hang


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One request as the vendor saw it. `seq` is given by the record and only grows."""

    at: datetime
    vendor: str
    method: str
    path: str
    verdict: VerdictKind
    ending: Ending
    seq: int = 0
    reason: str = ""
    status: int | None = None
    key: str = ""
    action: str = ""
    conversation: str = ""
    vendor_id: str = ""
    text_sha256: str = ""
    text_length: int = 0
    tokens: int = 0
    caller: str = ""
    fingerprint: str = ""

    @property
    def accepted(self) -> bool:
        """True when the action took place at the vendor."""
        return self.verdict is VerdictKind.ACCEPTED

    @property
    def effect(self) -> tuple[str, ...]:
        """What may be accepted once only: the key and the action, or the content where no key came."""
        if self.key:
            return ("key", self.vendor, self.key, self.action)
        return ("content", self.vendor, self.conversation, self.action, self.text_sha256)

    def to_json(self) -> dict[str, object]:
        """The entry as plain JSON values; `from_json` reads it back unchanged."""
        line: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        line["at"] = self.at.isoformat()
        return line

    @classmethod
    def from_json(cls, line: Mapping[str, Any]) -> Entry:
        """Read what `to_json` wrote. Raises ValueError, KeyError or TypeError on anything else."""
        at = datetime.fromisoformat(line["at"])
        if at.tzinfo is None:
            raise ValueError("at has no time zone")
        return cls(
            **{
                **line,
                "at": at,
                "verdict": VerdictKind(line["verdict"]),
                "ending": Ending(line["ending"]),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The record in numbers. `accepts == distinct_keys + duplicates` always holds."""

    requests: int
    accepts: int
    distinct_keys: int
    duplicates: int
    repeated_texts: int
    by_verdict: Mapping[str, int]
    by_ending: Mapping[str, int]

    def to_json(self) -> dict[str, object]:
        """The summary as plain JSON values."""
        return {
            "requests": self.requests,
            "accepts": self.accepts,
            "distinct_keys": self.distinct_keys,
            "duplicates": self.duplicates,
            "repeated_texts": self.repeated_texts,
            "by_verdict": dict(self.by_verdict),
            "by_ending": dict(self.by_ending),
        }


class Sink(Protocol):
    """Where a record also writes its entries, before anybody is answered."""

    def append(self, entry: Entry) -> None: ...

    def clear(self) -> None: ...


class Record:
    """Every request seen, in order, and every accept. Thread-safe; entries are never changed."""

    def __init__(self, *, entries: Iterable[Entry] = (), sink: Sink | None = None) -> None:
        self._lock = threading.Lock()
        self._sink = sink
        self._forget()
        for entry in entries:
            self._keep(entry)

    def append(self, entry: Entry) -> Entry:
        """Keep one entry under the next sequence number; it is in the sink before this returns."""
        with self._lock:
            numbered = replace(entry, seq=self._last_seq + 1)
            if self._sink is not None:
                self._sink.append(numbered)
            self._keep(numbered)
            return numbered

    def clear(self) -> None:
        """Forget everything, in the sink too. Sequence numbers start again at 1."""
        with self._lock:
            if self._sink is not None:
                self._sink.clear()
            self._forget()

    @property
    def accepts(self) -> tuple[Entry, ...]:
        """Every action that took place, in order."""
        with self._lock:
            return tuple(self._accepts)

    def requests(self, *, vendor: str = "", since: int = 0, key: str = "") -> tuple[Entry, ...]:
        """Every request seen after sequence number `since`, of one vendor or key where one is named."""
        with self._lock:
            # Sequence numbers are dense, so an entry's place follows from its number.
            seen = self._entries[max(0, since) :]
        return tuple(
            entry for entry in seen if (not vendor or entry.vendor == vendor) and (not key or entry.key == key)
        )

    def accepts_of(self, *, vendor: str, key: str, action: str = "") -> tuple[Entry, ...]:
        """The accepts of one idempotency key, oldest first."""
        with self._lock:
            found = self._by_key.get((vendor, key), ())
            return tuple(entry for entry in found if not action or entry.action == action)

    def times_seen(self, fingerprint: str) -> int:
        """How often this very request came before."""
        with self._lock:
            return self._seen[fingerprint]

    def duplicates(self, *, vendor: str = "") -> int:
        """Accepts minus distinct effects: how many actions took place once too often."""
        return self.summary(vendor=vendor).duplicates

    def duplicate_groups(self) -> tuple[tuple[Entry, ...], ...]:
        """The evidence: for each effect that took place more than once, all its accepts."""
        groups: dict[tuple[str, ...], list[Entry]] = defaultdict(list)
        for entry in self.accepts:
            groups[entry.effect].append(entry)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def summary(self, *, vendor: str = "") -> Summary:
        """The numbers, of one vendor where one is named.

        `repeated_texts` counts the same text accepted again in the same conversation under any key. It
        is a second judge: a caller whose key changes with each attempt has no duplicates and yet writes
        twice. Two honest causes may carry the same text, so it is a hint and not a verdict.
        """
        seen = self.requests(vendor=vendor)
        accepts = [entry for entry in seen if entry.accepted]
        distinct = len({entry.effect for entry in accepts})
        texts = len({(e.vendor, e.conversation, e.action, e.text_sha256) for e in accepts})
        return Summary(
            requests=len(seen),
            accepts=len(accepts),
            distinct_keys=distinct,
            duplicates=len(accepts) - distinct,
            repeated_texts=len(accepts) - texts,
            by_verdict=Counter(entry.verdict.value for entry in seen),
            by_ending=Counter(entry.ending.value for entry in seen),
        )

    def _forget(self) -> None:
        self._last_seq = 0
        self._entries: list[Entry] = []
        self._accepts: list[Entry] = []
        self._by_key: dict[tuple[str, str], list[Entry]] = defaultdict(list)
        self._seen: Counter[str] = Counter()

    def _keep(self, entry: Entry) -> None:
        if entry.seq != self._last_seq + 1:
            raise ValueError(f"entry {entry.seq} follows {self._last_seq}: the record has a gap")
        self._last_seq = entry.seq
        self._entries.append(entry)
        self._seen[entry.fingerprint] += 1
        if entry.accepted:
            self._accepts.append(entry)
            if entry.key:
                self._by_key[entry.vendor, entry.key].append(entry)
