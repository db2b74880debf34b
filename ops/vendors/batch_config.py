"""How an account's batches go, as one frozen value: what a batch that is taken keeps to its end."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Literal

LONGEST_S = 366 * 86_400.0
MOST_TOKENS = 10_000_000_000


class LineFault(StrEnum):
    """What a request's line in the results is like, where it is not simply an answer."""

    REFUSED = "refused"  # 400, for good
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    EXPIRED = "expired"  # refused as not begun in time, in a batch that is otherwise whole
    MISSING = "missing"  # worked on, and no line tells of it
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"  # two lines that differ
    MALFORMED = "malformed"  # cut off in its middle
    NAMELESS = "nameless"  # nothing in it can be read
    TOO_LONG = "too_long"


UNPAID = frozenset({LineFault.REFUSED, LineFault.RATE_LIMITED, LineFault.SERVER_ERROR, LineFault.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchConfig:
    """The default is a batch that is whole the moment it is looked at, its lines in another order than they came."""

    takes_s: float = 0.0  # from the first line to the last; they are done one after the other
    validating_s: float = 0.0  # before the first line
    finalizing_s: float = 0.0  # after the last
    cancelling_s: float = 0.0
    expires_s: float = 86_400.0
    listed_after_s: float = 0.0  # how long a list does not show it yet
    vanishes_s: float | None = None  # this long after it was taken, nobody knows it any more
    fails_with: str = ""  # a code: the batch as a whole fails while it is looked at
    enqueued_tokens: int | None = None  # what all batches under way may hold
    tokens_refused: Literal["later", "at_once"] = "later"  # the real one takes the batch, then lets it fail
    in_order: bool = False
    unknown_lines: int = 0  # lines nobody asked for
    line_shares: Mapping[LineFault, float] = field(default_factory=dict)  # of one draw a line
    line_faults: Mapping[str, LineFault] = field(default_factory=dict)  # by custom id, before any share

    def to_json(self) -> dict[str, object]:
        """The configuration in the form that `batch_config` reads."""
        values: dict[str, object] = {each.name: getattr(self, each.name) for each in fields(self)}
        values["line_shares"] = {str(fault): share for fault, share in self.line_shares.items()}
        values["line_faults"] = {name: str(fault) for name, fault in self.line_faults.items()}
        return values


def batch_config(value: object) -> BatchConfig:
    """Read a whole configuration; what is left out is as by default. Raises ValueError with a sentence."""
    if isinstance(value, BatchConfig):
        return value
    if not isinstance(value, Mapping):
        raise ValueError("must be an object of how batches go")
    known = {each.name for each in fields(BatchConfig)}
    if unknown := sorted(str(name) for name in set(value) - known):
        raise ValueError(f"has no field {unknown[0][:60]!r}; it has {', '.join(sorted(known))}")
    read: dict[str, object] = {}
    for name, given in value.items():
        read[name] = _field(name, given)
    new = BatchConfig(**read)  # type: ignore[arg-type]  # each field was read as its own type
    if sum(new.line_shares.values()) > 1 + 1e-9:
        raise ValueError("line_shares together can be at most 1")
    return new


def _field(name: str, value: object) -> object:
    if name.endswith("_s"):
        return None if value is None and name == "vanishes_s" else _number(name, value, LONGEST_S)
    match name:
        case "enqueued_tokens":
            return None if value is None else _whole(name, value, MOST_TOKENS)
        case "unknown_lines":
            return _whole(name, value, 1000)
        case "in_order":
            if isinstance(value, bool):
                return value
            raise ValueError("in_order must be true or false")
        case "tokens_refused":
            if value in ("later", "at_once"):
                return value
            raise ValueError("tokens_refused must be later or at_once")
        case "fails_with":
            if isinstance(value, str) and len(value) <= 60:
                return value
            raise ValueError("fails_with must be a code, or nothing")
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be an object")
    if name == "line_shares":
        return {_fault(name, fault): _number(name, share, 1) for fault, share in value.items()}
    return {str(custom_id): _fault(name, fault) for custom_id, fault in value.items()}


def _fault(name: str, value: object) -> LineFault:
    try:
        return LineFault(str(value))
    except ValueError:
        raise ValueError(f"{name} knows {', '.join(LineFault)}") from None


def _number(name: str, value: object, high: float) -> float:
    good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not good or not 0 <= value <= high:  # type: ignore[operator]  # it is a number
        raise ValueError(f"{name} must be a number from 0 to {high:g}")
    return float(value)  # type: ignore[arg-type]


def _whole(name: str, value: object, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= high:
        raise ValueError(f"{name} must be a whole number from 0 to {high}")
    return value
