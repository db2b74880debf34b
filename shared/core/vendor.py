"""What a vendor is: its entry in the configuration."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from shared.core.effects import Lookup
from shared.core.errors import BadInput
from shared.core.job import name_of


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorSpec:
    """Where a vendor is and what it can do for us; never a secret."""

    name: str
    kind: str
    """Which adapter speaks to it: `helpdesk` or `openai`."""
    base_url: str
    dedupe_window_s: int = 0
    """How long it deduplicates by our key; 0: it does not."""
    lookup: str = "none"
    connect_timeout_s: float = 2.0
    read_timeout_s: float = 6.0

    def __post_init__(self) -> None:
        where = f"vendors.{self.name}"
        name_of(where, self.name)
        name_of(f"{where}.kind", self.kind)
        if self.lookup not in tuple(Lookup):
            raise BadInput(f"{where}.lookup", f"must be one of {', '.join(Lookup)}")
        if not _is_safe(self.base_url):
            raise BadInput(f"{where}.base_url", "must start with https:// (http only on this machine)")
        if set("@?#") & set(self.base_url):
            raise BadInput(
                f"{where}.base_url", "must have no user, query or fragment: put a token into the secret of the lane"
            )
        window: object = self.dedupe_window_s
        if not isinstance(window, int) or isinstance(window, bool) or window < 0:
            raise BadInput(f"{where}.dedupe_window_s", "must be a whole number of seconds, or 0")
        for setting in ("connect_timeout_s", "read_timeout_s"):
            value = getattr(self, setting)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 60:
                raise BadInput(f"{where}.{setting}", "must be a number of seconds above 0, at most 60")


def is_for_show(address: str) -> bool:
    """True for an address that nobody can own (RFC 2606, RFC 6761), or that is on this machine: nothing to send to."""
    host = (urlsplit(address).hostname or "").rstrip(".").lower()
    return (
        host.split(".")[-1] in ("example", "invalid", "test", "localhost")
        or ".".join(host.split(".")[-2:]) in ("example.com", "example.net", "example.org")
        or host == "::1"
        or host.startswith("127.")
    )


def _is_safe(address: object) -> bool:
    """A token is sent there: over TLS, or never off this machine."""
    if not isinstance(address, str):
        return False
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in ("127.0.0.1", "localhost")))
