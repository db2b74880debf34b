"""What a request asks of a vendor once its shape has been read. The shapes differ, the asks do not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from ops.vendors.batches import BatchDesk
from ops.vendors.config import VendorConfig
from ops.vendors.record import VerdictKind
from ops.vendors.request import VendorRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """An action with consequences: the one thing that can be accepted."""

    action: str
    conversation: str
    id_prefix: str
    text_sha256: str
    text_length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUp:
    """Was an action with this key accepted?"""

    key: str
    action: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAccepts:
    """Which actions were accepted after sequence number `after`?"""

    after: int = 0
    limit: int = 100
    conversation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """An inference: it may be repeated. The body is made only when the vendor serves it."""

    action: str
    tokens: int
    answer: Callable[[datetime], dict[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the account's batches answer: JSON, or a file's content."""

    status: int = 200
    body: Mapping[str, object] = field(default_factory=dict)
    content: bytes | None = None
    vendor_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """Something asked of the account's files and batches; to take a batch is an accept, under its tag as the key.

    `serve` is given the account's batches, the time, and an id for what is new.
    """

    action: str
    kind: VerdictKind
    serve: Callable[[BatchDesk, datetime, str], Served]
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """A request that cannot be read, with the status and the sentence it is answered with."""

    status: int
    sentence: str
    allow: str = ""


Ask = Send | LookUp | ListAccepts | Compute | Batching | Bad


class Shape(Protocol):
    """How one vendor's API looks from outside."""

    def read(self, request: VendorRequest, config: VendorConfig) -> Ask:
        """What the request asks for. Never raises: what cannot be read is `Bad`."""
        ...

    def error(self, status: int, sentence: str) -> Mapping[str, object]:
        """The body of an error, in this vendor's form."""
        ...
