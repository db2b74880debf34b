"""Text a customer wrote, wrapped so that no log line, message or repr can carry it by accident."""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar

T = TypeVar("T", covariant=True)

MASK = "«sensitive»"


class Sensitive(Generic[T]):
    """A value that masks itself everywhere; `reveal()` is the only way out and its call sites are listed."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        """The value itself. A test keeps the list of modules that may call this."""
        return self._value

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sensitive) and bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash(MASK)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a sensitive value is not pickled")

    def __iter__(self) -> Any:
        raise TypeError("a sensitive value is not iterated; call reveal() where that is allowed")
