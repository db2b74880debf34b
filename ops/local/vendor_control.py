"""The vendor simulator's own doors, spoken to over HTTP."""

from __future__ import annotations

from typing import Any

import httpx


class VendorControl:
    """Changes what the vendors do, and reads what they accepted."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/_sim", timeout=5.0)

    def configure(self, vendor: str, **changes: Any) -> None:
        """Change some of a vendor's switches, live."""
        self._http.put(f"/config/{vendor}", json=changes).raise_for_status()

    def summary(self, vendor: str) -> dict[str, Any]:
        """Counts of requests, accepts and duplicates."""
        answer: dict[str, Any] = self._http.get("/summary", params={"vendor": vendor}).raise_for_status().json()
        return answer

    def accepted_keys(self, vendor: str) -> list[str]:
        """The key of every accept, one entry an accept: a key twice is a duplicate."""
        entries = self.requests(vendor)
        return [entry["key"] for entry in entries if entry["verdict"] == "accepted"]

    def batches(self, vendor: str, tag: str = "") -> dict[str, Any]:
        """What batches it took, by tag where one is named, and how often each custom id was paid for."""
        params = {"vendor": vendor} | ({"tag": tag} if tag else {})
        answer: dict[str, Any] = self._http.get("/batches", params=params).raise_for_status().json()
        return answer

    def requests(self, vendor: str, key: str = "") -> list[dict[str, Any]]:
        """What the vendor saw."""
        params = {"vendor": vendor} | ({"key": key} if key else {})
        body = self._http.get("/record", params=params).raise_for_status().json()
        found: list[dict[str, Any]] = body["requests"] if "requests" in body else body["entries"]
        return found
