"""Vendor tokens from the one secret a worker may read: kept for minutes, fetched again after a 401."""

from __future__ import annotations

import json
import threading
import time

from shared.adapters.aws.clients import client
from shared.core.errors import Unavailable

CACHED_S = 300.0


class VendorTokens:
    """Tokens by vendor. An error never carries the secret's text."""

    def __init__(self, *, secret_arn: str | None) -> None:
        self._secret_arn = secret_arn
        self._lock = threading.Lock()
        self._tokens: dict[str, str] = {}
        self._read_at = float("-inf")

    def of(self, vendor: str, *, fresh: bool = False) -> str:
        """The vendor's token; raises Unavailable when there is none to be had."""
        if self._secret_arn is None:
            return ""
        with self._lock:
            if fresh or time.monotonic() - self._read_at > CACHED_S:
                self._tokens = self._fetch(self._secret_arn)
                self._read_at = time.monotonic()
            token = self._tokens.get(vendor)
        if token is None:
            raise Unavailable("secret", f"no_token_for_{vendor}")
        return token

    def _fetch(self, secret_arn: str) -> dict[str, str]:
        try:
            text = client("secretsmanager").get_secret_value(SecretId=secret_arn)["SecretString"]
            tokens = json.loads(text)
            return {str(name): str(token) for name, token in tokens.items()}
        except Exception as exc:
            raise Unavailable("secret", type(exc).__name__) from None
