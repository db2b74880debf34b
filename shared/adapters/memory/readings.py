"""What rows say, each decoded once: a stored row is replaced, never changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from shared.adapters.attributes import Item

T = TypeVar("T")


class Readings(Generic[T]):
    """Decoded rows by the item they were read from. An item is kept with what it says, so its place in memory is its
    own for as long as that is looked for."""

    def __init__(self, read: Callable[[Item], T]) -> None:
        self._read = read
        self._known: dict[int, tuple[Item, T]] = {}

    def of(self, item: Item) -> T:
        """What a row says. Raises what reading it raises."""
        known = self._known.get(id(item))
        if known is None:
            known = self._known[id(item)] = (item, self._read(item))
        return known[1]

    def written(self, item: Item, value: T) -> Item:
        """A row just made from a value that it keeps to the last field."""
        self._known[id(item)] = (item, value)
        return item

    def forget(self, item: Item | None) -> None:
        """Its row was replaced."""
        self._known.pop(id(item), None)
