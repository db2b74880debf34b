"""A request as it reaches a vendor, free of sockets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

MAX_BODY_BYTES = 1_000_000
MAX_UPLOAD_BYTES = 50_000_000
_UPLOADS = ("/files", "/jobs")
MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorRequest:
    """One call. Header names are lower case; the path is as it stood on the wire, without the query."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path, decoded one by one, so that an encoded slash stays inside its part."""
        return tuple(unquote(part) for part in self.path.strip("/").split("/"))

    @property
    def most_bytes(self) -> int:
        """What its body may have: many requests in one are longer than any one of them."""
        return MAX_UPLOAD_BYTES if self.method == "POST" and self.path.endswith(_UPLOADS) else MAX_BODY_BYTES

    @property
    def idempotency_key(self) -> str:
        """The caller's key for this action, or nothing."""
        return self.headers.get("idempotency-key", "")

    @property
    def token(self) -> str:
        """The bearer token, or nothing."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def caller(self) -> str:
        """Who calls, in a form that may be kept: never the token itself."""
        return hashlib.sha256(self.token.encode()).hexdigest()[:12] if self.token else ""

    @property
    def fingerprint(self) -> str:
        """The same for the same request. Chance is drawn from it, so a replay does not depend on order."""
        digest = hashlib.sha256()
        for part in (
            self.method,
            self.path,
            repr(sorted(self.query.items())),
            self.idempotency_key,
        ):
            digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
        digest.update(self.body)
        return digest.hexdigest()[:32]
