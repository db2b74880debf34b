"""What a function reads from its one secret: kept for minutes, fetched again when it turned out to be old.

While nobody answers, the last good value counts for an hour: an outage of the secrets' service stops no lane. Who is
told *no*, or is given something else, has no value any more: that is how a secret is taken away.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from shared.adapters.aws.clients import client
from shared.adapters.aws.errors import Meaning, code_of, meaning_of
from shared.core.errors import Unavailable
from shared.core.webhook import keys_by_tenant

CACHED_S = 300.0
KEPT_S = 3600.0
"""So old a value may be that counts only because nobody answers."""
FRESH_EVERY_S = 30.0
"""How often strangers can make the intake ask for its keys again: whoever guesses must not spend our quota. Nor is a
service that does not answer asked more often, as long as there is a value to go on with."""


class CachedSecret:
    """One secret, a JSON object. An error never carries its text."""

    def __init__(self, secret_arn: str, *, now: Callable[[], float] = time.time) -> None:
        # The time of day: it goes on while an environment stands frozen between two invocations.
        self._secret_arn, self._now = secret_arn, now
        self._lock = threading.Lock()
        self._held: dict[str, Any] = {}
        self._read_at = self._lost_at = float("-inf")

    def read(self, *, older_than_s: float = CACHED_S, kept_s: float = KEPT_S) -> dict[str, Any]:
        """Its value, at most so old, or `kept_s` while nobody answers; raises Unavailable when there is none."""
        with self._lock:
            age_s = self._since(self._read_at)
            if age_s > older_than_s and (age_s > kept_s or self._since(self._lost_at) > FRESH_EVERY_S):
                self._renew(keep=age_s <= kept_s)
            return self._held

    def _renew(self, *, keep: bool) -> None:
        try:
            answer = client("secretsmanager").get_secret_value(SecretId=self._secret_arn)
            self._held = {str(name): one for name, one in json.loads(answer["SecretString"]).items()}
        except Exception as exc:
            lost = isinstance(exc, ClientError | BotoCoreError) and meaning_of(exc) is Meaning.UNAVAILABLE
            code = code_of(exc) if isinstance(exc, ClientError | BotoCoreError) else type(exc).__name__
        else:
            self._read_at = self._now()
            return
        # Out here, so that an error which may hold the secret is nobody's context.
        if lost:
            self._lost_at = self._now()
        else:
            self._held, self._read_at = {}, float("-inf")
        if not (lost and keep):
            raise Unavailable("secret", code)

    def _since(self, moment: float) -> float:
        """A clock that was set back makes nothing younger than it is."""
        passed = self._now() - moment
        return passed if passed >= 0 else float("inf")


class VendorTokens:
    """Tokens by vendor, from the one secret a worker may read."""

    def __init__(self, *, secret_arn: str | None, now: Callable[[], float] = time.time) -> None:
        self._secret = None if secret_arn is None else CachedSecret(secret_arn, now=now)

    def of(self, vendor: str, *, fresh: bool = False) -> str:
        """The vendor's token, read again when it was refused: that one is never kept. Raises Unavailable when there is
        none to be had."""
        if self._secret is None:
            return ""
        token = (self._secret.read(older_than_s=-1.0, kept_s=-1.0) if fresh else self._secret.read()).get(vendor)
        if token is None:
            raise Unavailable("secret", f"no_token_for_{vendor}")
        return str(token)


class SenderKeySecret:
    """`SenderKeys` in the one secret the intake may read: tenant to its keys."""

    def __init__(self, *, secret_arn: str, now: Callable[[], float] = time.time) -> None:
        self._secret, self._now = CachedSecret(secret_arn, now=now), now
        self._asked_at = float("-inf")

    def of(self, tenant: str, *, fresh: bool = False) -> tuple[bytes, ...]:
        """The tenant's keys; none for a stranger. `fresh` reads them again, but not twice in half a minute."""
        if fresh and self._now() - self._asked_at > FRESH_EVERY_S:
            self._asked_at = self._now()
            with suppress(Unavailable):  # Those that were read before still count.
                self._secret.read(older_than_s=FRESH_EVERY_S)
        return keys_by_tenant(self._secret.read()).get(tenant, ())
