"""What a function reads from its one secret: kept for minutes, fetched again when it turned out to be old."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from shared.adapters.aws.clients import client
from shared.core.errors import Unavailable
from shared.core.webhook import keys_by_tenant

CACHED_S = 300.0
FRESH_EVERY_S = 30.0
"""How often strangers can make the intake ask for its keys again: whoever guesses must not spend our quota."""


class CachedSecret:
    """One secret, a JSON object. An error never carries its text."""

    def __init__(self, secret_arn: str, *, now: Callable[[], float] = time.monotonic) -> None:
        self._secret_arn, self._now = secret_arn, now
        self._lock = threading.Lock()
        self._held: dict[str, Any] = {}
        self._read_at = float("-inf")

    def read(self, *, older_than_s: float = CACHED_S) -> dict[str, Any]:
        """Its value, at most so old; raises Unavailable when there is none to be had."""
        with self._lock:
            if self._now() - self._read_at > older_than_s:
                self._held = self._fetch()
                self._read_at = self._now()
            return self._held

    def _fetch(self) -> dict[str, Any]:
        try:
            value = json.loads(client("secretsmanager").get_secret_value(SecretId=self._secret_arn)["SecretString"])
            return {str(name): one for name, one in value.items()}
        except Exception as exc:
            raise Unavailable("secret", type(exc).__name__) from None


class VendorTokens:
    """Tokens by vendor, from the one secret a worker may read."""

    def __init__(self, *, secret_arn: str | None) -> None:
        self._secret = None if secret_arn is None else CachedSecret(secret_arn)

    def of(self, vendor: str, *, fresh: bool = False) -> str:
        """The vendor's token, read again when it was refused; raises Unavailable when there is none to be had."""
        if self._secret is None:
            return ""
        token = self._secret.read(older_than_s=-1.0 if fresh else CACHED_S).get(vendor)
        if token is None:
            raise Unavailable("secret", f"no_token_for_{vendor}")
        return str(token)


class SenderKeySecret:
    """`SenderKeys` in the one secret the intake may read: tenant to its keys."""

    def __init__(self, *, secret_arn: str, now: Callable[[], float] = time.monotonic) -> None:
        self._secret, self._now = CachedSecret(secret_arn, now=now), now
        self._asked_at = float("-inf")

    def of(self, tenant: str, *, fresh: bool = False) -> tuple[bytes, ...]:
        """The tenant's keys; none for a stranger. `fresh` reads them again, but not twice in half a minute."""
        if fresh and self._now() - self._asked_at > FRESH_EVERY_S:
            self._asked_at = self._now()
            with suppress(Unavailable):  # Those that were read before still count.
                self._secret.read(older_than_s=FRESH_EVERY_S)
        return keys_by_tenant(self._secret.read()).get(tenant, ())
