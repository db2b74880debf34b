"""The ways a vendor goes wrong, as values. A fault falls before or after the vendor has accepted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What happens to a request. Its spelling is what a script says in `do`."""

    NONE = "answer"  # served as asked: in a script, it shields a request from chance and from limits
    STATUS = "status"  # answered with an error, not accepted
    ACCEPT_THEN_STATUS = "accept_then_status"  # accepted, then answered with an error all the same
    DROP_BEFORE_ACCEPT = "drop_before_accept"
    DROP_AFTER_ACCEPT = "drop_after_accept"
    HANG = "hang"  # accepted, then answered only after the hang
    HANG_BEFORE_ACCEPT = "hang_before_accept"  # silent for the hang, then closed; never accepted


BEFORE_ACCEPT = frozenset({FaultKind.STATUS, FaultKind.DROP_BEFORE_ACCEPT, FaultKind.HANG_BEFORE_ACCEPT})
_WITH_STATUS = frozenset({FaultKind.STATUS, FaultKind.ACCEPT_THEN_STATUS})
_WITH_SECONDS = frozenset({FaultKind.HANG, FaultKind.HANG_BEFORE_ACCEPT})
MAX_WAIT_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault with its number, where the kind has one."""

    kind: FaultKind
    status: int = 0
    wait_s: float = 0.0
    reason: str = ""

    @property
    def before_accept(self) -> bool:
        """True when the vendor does nothing of what was asked."""
        return self.kind in BEFORE_ACCEPT

    def __str__(self) -> str:
        if self.kind in _WITH_STATUS:
            return f"{self.kind}:{self.status}"
        if self.kind in _WITH_SECONDS:
            return f"{self.kind}:{self.wait_s:g}"
        return str(self.kind)


NO_FAULT = Fault(kind=FaultKind.NONE)


def fault_from_text(text: object) -> Fault:
    """Read `drop_after_accept`, `status:503`, `hang:5` and the like. Raises ValueError with a sentence."""
    if not isinstance(text, str):
        raise ValueError("must be text such as drop_after_accept or status:503")
    name, colon, number = text.partition(":")
    try:
        kind = FaultKind(name)
    except ValueError:
        raise ValueError(f"must begin with one of {', '.join(FaultKind)}") from None
    if kind in _WITH_STATUS:
        if not (number.isascii() and number.isdigit() and 400 <= int(number[:9]) <= 599):
            raise ValueError(f"must be {name}: with a status from 400 to 599")
        return Fault(kind=kind, status=int(number), reason="script")
    if kind in _WITH_SECONDS:
        try:
            wait_s = float(number)
        except ValueError:
            wait_s = math.nan
        if not 0 <= wait_s <= MAX_WAIT_S:
            raise ValueError(f"must be {name}: with seconds from 0 to {MAX_WAIT_S:g}")
        return Fault(kind=kind, wait_s=wait_s, reason="script")
    if colon:
        raise ValueError(f"takes no number after {name}")
    return Fault(kind=kind, reason="script")
