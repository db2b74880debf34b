"""The door of every function: what goes wrong inside is logged as type, code and place, and nothing else leaves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from shared.runtime.telemetry import PowertoolsTelemetry, code_of

Handler = Callable[[Mapping[str, Any], Any], Any]


class DoorFailed(Exception):
    """What Lambda is told of an uncaught error: a code. Its text could hold what a customer wrote."""


def door(telemetry: Callable[[], PowertoolsTelemetry], name: str) -> Callable[[Handler], Handler]:
    """Wrap a handler: flush metrics always, turn any uncaught error into `DoorFailed`."""

    def wrap(handler: Handler) -> Handler:
        @wraps(handler)
        def guarded(event: Mapping[str, Any], context: Any) -> Any:
            voice = telemetry()
            try:
                return handler(event, context)
            except Exception as exc:
                voice.error("door_failed", exc, function=name)
                raise DoorFailed(f"{name}:{code_of(exc) or type(exc).__name__}") from None
            finally:
                voice.flush()

        return guarded

    return wrap
