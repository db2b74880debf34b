"""Whether an event that came in by HTTP is from whom it says it is. Over raw bytes; never raises on what it is given.

The sender signs `<timestamp>.<body>` with HMAC-SHA256 and the key of its tenant. What is looked at first is cheap:
the size, then the time, then the form of the signature; only then is anything computed.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

MAX_BODY_BYTES = 256 * 1024
WINDOW_S = 300
"""How far the sender's clock and its delivery may be off, in both directions."""
LIVE_KEYS = 2
"""Keys of one tenant that count at the same time: the new one and the one it replaces."""
MIN_KEY_BYTES = 32
"""A shorter key is not used: an empty one would make everybody a sender."""
TIMESTAMP_HEADER = "penstock-timestamp"
SIGNATURE_HEADER = "penstock-signature"
SCHEME = b"v1="

# By byte and to the end: `\d` of text takes full-width digits, and `$` a line break behind them.
_TIMESTAMP = re.compile(rb"[0-9]{10}")
_SIGNATURE = re.compile(rb"v1=[0-9a-f]{64}")
_NOBODY = bytes(MIN_KEY_BYTES)
"""Computed with where a tenant has no key, so that its absence takes as long; what it signs never counts."""


class Authenticity(StrEnum):
    """What was found. The outside is told `verified`, too large, or one and the same no."""

    VERIFIED = "verified"
    TOO_LARGE = "too_large"
    NO_TIME = "no_time"
    NOT_NOW = "not_now"
    NO_SIGNATURE = "no_signature"
    FORGED = "forged"


class SenderKeys(Protocol):
    """Whose key is whose."""

    def of(self, tenant: str, *, fresh: bool = False) -> tuple[bytes, ...]:
        """The keys that count for a tenant, newest first; none for a stranger. `fresh` asks the source again, as
        often as it allows. Raises Unavailable when nobody can tell."""
        ...


def authenticity(
    *, body: bytes, timestamp: object, signature: object, keys: Sequence[bytes], now: datetime
) -> Authenticity:
    """Verified when one of the tenant's `keys` signed this body at a time near `now`. Headers may be anything."""
    if len(body) > MAX_BODY_BYTES:
        return Authenticity.TOO_LARGE
    stamp, given = _ascii(timestamp), _ascii(signature)
    if not _TIMESTAMP.fullmatch(stamp):
        return Authenticity.NO_TIME
    if abs(int(stamp) - now.timestamp()) > WINDOW_S:
        return Authenticity.NOT_NOW
    if not _SIGNATURE.fullmatch(given):
        return Authenticity.NO_SIGNATURE
    return Authenticity.VERIFIED if _signed(stamp, body, given, keys) else Authenticity.FORGED


def signature_of(key: bytes, timestamp: int, body: bytes) -> str:
    """What a sender puts into its signature header."""
    return _signature(key, str(timestamp).encode(), body).decode()


def keys_by_tenant(secret: Mapping[str, object]) -> dict[str, tuple[bytes, ...]]:
    """The keys that count, from what the secret holds: tenant to one key or a list of them, newest first.

    Left out: a key that is too short, all after the second, and a key that stands under two tenants, since what
    one of them signed could be sent as the other's.
    """
    told = {tenant: _keys(entry)[:LIVE_KEYS] for tenant, entry in secret.items()}
    holders = Counter(key for keys in told.values() for key in set(keys))
    return {tenant: tuple(key for key in keys if holders[key] == 1) for tenant, keys in told.items()}


def _signed(stamp: bytes, body: bytes, given: bytes, keys: Sequence[bytes]) -> bool:
    """Every place is computed and compared, whichever matches: the time says nothing about the keys."""
    matched = False
    for place in range(LIVE_KEYS):
        key = keys[place] if place < len(keys) else _NOBODY
        # Bytes: comparing text raises on a letter that is not ASCII.
        equal = hmac.compare_digest(_signature(key, stamp, body), given)
        matched = (equal and place < len(keys)) or matched
    return matched


def _signature(key: bytes, stamp: bytes, body: bytes) -> bytes:
    return SCHEME + hmac.new(key, stamp + b"." + body, hashlib.sha256).hexdigest().encode()


def _ascii(value: object) -> bytes:
    """A header as bytes; empty when it is none or holds what a header of ours never does."""
    if isinstance(value, bytes):
        return value
    return value.encode() if isinstance(value, str) and value.isascii() else b""


def _keys(entry: object) -> list[bytes]:
    listed = entry if isinstance(entry, list) else [entry]
    keys = [key.encode(errors="surrogatepass") for key in listed if isinstance(key, str)]
    return [key for key in keys if len(key) >= MIN_KEY_BYTES]
