"""The port of whoever looks through the content store; `shared.core.ports` has that of its texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol


class KeptObjects(Protocol):
    """The objects of the content store, as whoever erases finds them."""

    def under(self, place: str) -> Iterator[str]:
        """The reference of every object that begins so."""
        ...
