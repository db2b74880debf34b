"""How many invocations of each function the emulator had under way at once: its own count, at its highest.

peaks(endpoint)                function → the highest since the last look, which begins anew
"""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Awaitable, Callable
from typing import Any

PATH = "/_penstock/peaks"
Message = dict[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]


class Peaks:
    """Watches the emulator's count of what is under way."""

    def __init__(self) -> None:
        self._now: dict[str, int] = {}
        self._peaks: dict[str, int] = {}
        self._lock = threading.Lock()

    def began(self, key: str) -> None:
        """One more is under way."""
        with self._lock:
            self._now[key] = self._now.get(key, 0) + 1
            self._peaks[key] = max(self._peaks.get(key, 0), self._now[key])

    def ended(self, key: str) -> None:
        """One less."""
        with self._lock:
            self._now[key] = self._now.get(key, 1) - 1

    def taken(self) -> dict[str, int]:
        """The highest by function since this was last asked; what is under way now is where the next begins."""
        with self._lock:
            peaks, self._peaks = self._peaks, {key: count for key, count in self._now.items() if count}
        return {key.rpartition(":")[2]: count for key, count in peaks.items()}

    def watch(self, service: Any) -> None:
        """Hear of every invocation at the one place that all of them pass."""
        acquire, release = service._acquire_execution_slot, service._release_execution_slot

        def acquired(func: Message, config: Message) -> tuple[str | None, str | None]:
            slot, limit = acquire(func, config)
            if slot is not None:
                self.began(slot)
            return slot, limit

        def released(key: str | None) -> None:
            if key is not None:
                self.ended(key)
            release(key)

        service._acquire_execution_slot, service._release_execution_slot = acquired, released

    def served(self, app: App) -> App:
        """`app`, with this count at an address of its own."""

        async def serve(scope: Message, receive: Any, send: Any) -> None:
            if scope["type"] != "http" or scope["path"] != PATH:
                await app(scope, receive, send)
                return
            body = json.dumps(self.taken()).encode()
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})

        return serve


def peaks(endpoint: str) -> dict[str, int]:
    """Ask a running emulator; its next answer counts from now on."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(endpoint + PATH, timeout=10) as reply:
        found: dict[str, int] = json.loads(reply.read())
    return found
