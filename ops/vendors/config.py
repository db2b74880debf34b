"""The behaviour of one vendor account, as one frozen value that is changed as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from ops.vendors.batch_config import BatchConfig, batch_config
from ops.vendors.faults import MAX_WAIT_S
from ops.vendors.limits import MINUTE_S
from ops.vendors.script import ScriptStep, step_from_json


class ConfigError(ValueError):
    """A change that was refused. Its text is one sentence naming the field and what it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CannedAnswer:
    """An inference whose prompt contains `contains` is answered with `content`, word for word."""

    contains: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorConfig:
    """Every switch of a vendor. The default is a vendor that works, dedupes by key and finds exactly.

    The `*_share` fields divide one draw, so each is the exact share of requests that meets that fault,
    and together they are at most 1. Faults by share and hangs meet sends and inferences; look-ups meet
    them only with `faults_on_lookup`. Outage, limits and latency meet everything.
    """

    latency_s: float = 0.0
    latency_jitter_s: float = 0.0  # up to this much more, drawn from the seed
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    burst_requests: int | None = None  # none: the whole minute's limit may come at once
    burst_tokens: int | None = None
    minute_s: float = MINUTE_S  # how long a limit's minute is; shorter where a test waits in real time
    rejected_calls_count: bool = False  # some vendors charge what they refuse to the limit as well
    error_429_share: float = 0.0
    retry_after: Literal["seconds", "date", "missing", "garbage"] = "seconds"
    retry_after_s: float = 1.0  # for a 429 by share or by script; a real limit knows its own time
    error_5xx_share: float = 0.0
    error_5xx_status: int = 503
    error_5xx_accepted: bool = False  # the action takes place before the error is answered
    drop_after_accept_share: float = 0.0
    drop_before_accept_share: float = 0.0
    outage: bool | Literal["refuse"] = False
    hang_s: float = 0.0  # every request that no share met hangs this long
    hang_before_accept: bool = False
    dedupe_by_key: bool = True
    dedupe_window_s: float | None = 86_400.0
    key_reuse: Literal["first_id", "conflict"] = "first_id"  # the same key with another text: 200 or 409
    lookup: Literal["none", "eventual", "exact"] = "exact"
    lookup_lag_s: float = 5.0
    faults_on_lookup: bool = False
    valid_tokens: tuple[str, ...] | None = None  # none: anybody
    script: tuple[ScriptStep, ...] = ()
    canned_answers: tuple[CannedAnswer, ...] = ()
    entities_from_text: bool = False  # asked for entities or an intent, the model takes them from the last message
    batches: BatchConfig = field(default_factory=BatchConfig)

    def to_json(self) -> dict[str, object]:
        """The configuration in the form that `changed` reads."""
        values: dict[str, object] = {each.name: getattr(self, each.name) for each in fields(self)}
        values["batches"] = self.batches.to_json()
        values["script"] = [step.to_json() for step in self.script]
        values["canned_answers"] = [
            {"contains": answer.contains, "content": answer.content} for answer in self.canned_answers
        ]
        values["valid_tokens"] = None if self.valid_tokens is None else list(self.valid_tokens)
        return values


def changed(config: VendorConfig, changes: object) -> VendorConfig:
    """The configuration with some fields replaced; the others stay. Raises ConfigError, changes nothing."""
    if not isinstance(changes, Mapping):
        raise ConfigError("a configuration must be a JSON object of fields to change")
    values: dict[str, object] = {}
    for name, value in changes.items():
        if name not in _READERS:
            raise ConfigError(f"there is no field {str(name)[:60]!r}; there are {', '.join(_READERS)}")
        try:
            values[name] = _READERS[name](value)
        except ValueError as exc:
            raise ConfigError(f"{name} {exc}") from None
    new = replace(config, **values)  # type: ignore[arg-type]  # each reader returns its field's type
    shares = new.error_429_share + new.error_5xx_share + new.drop_after_accept_share + new.drop_before_accept_share
    if shares > 1 + 1e-9:
        raise ConfigError(f"the shares of faults add up to {shares:g}; together they can be at most 1")
    for burst, limit in (
        ("burst_requests", "requests_per_minute"),
        ("burst_tokens", "tokens_per_minute"),
    ):
        if getattr(new, burst) is not None and getattr(new, limit) is None:
            raise ConfigError(f"{burst} needs {limit}: a burst is a part of a limit")
    return new


def _number(low: float, high: float) -> Callable[[object], float]:
    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"must be a number from {low:g} to {high:g}")
        if not low <= value <= high:
            raise ValueError(f"must be a number from {low:g} to {high:g}, not {value:g}")
        return float(value)

    return read


def _whole(low: int, high: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return value

    return read


def _optional(read: Callable[[object], object]) -> Callable[[object], object]:
    def read_optional(value: object) -> object:
        return None if value is None else read(value)

    return read_optional


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _one_of(*allowed: object) -> Callable[[object], object]:
    def read(value: object) -> object:
        for choice in allowed:
            if value == choice and type(value) is type(choice):
                return value
        raise ValueError(f"must be one of {', '.join(str(choice).lower() for choice in allowed)}")

    return read


def _tokens(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(token, str) and token for token in value):
        raise ValueError("must be a list of tokens, or null for anybody")
    return tuple(value)


def _script(value: object) -> tuple[ScriptStep, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of steps")
    steps = []
    for place, step in enumerate(value, start=1):
        try:
            steps.append(step if isinstance(step, ScriptStep) else step_from_json(step))
        except ValueError as exc:
            raise ValueError(f"step {place}: {exc}") from None
    return tuple(steps)


def _canned(value: object) -> tuple[CannedAnswer, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of {contains, content}")
    answers = []
    for answer in value:
        if not isinstance(answer, Mapping) or set(answer) != {"contains", "content"}:
            raise ValueError("must be a list of {contains, content}")
        if not all(isinstance(part, str) for part in answer.values()):
            raise ValueError("must hold text in contains and content")
        answers.append(CannedAnswer(contains=answer["contains"], content=answer["content"]))
    return tuple(answers)


_SECONDS = _number(0, MAX_WAIT_S)
_SHARE = _number(0, 1)
_LIMIT = _optional(_whole(1, 10_000_000_000))

_READERS: dict[str, Callable[[object], object]] = {
    "latency_s": _SECONDS,
    "latency_jitter_s": _SECONDS,
    "requests_per_minute": _LIMIT,
    "tokens_per_minute": _LIMIT,
    "burst_requests": _LIMIT,
    "burst_tokens": _LIMIT,
    "minute_s": _number(0.1, 3600),
    "rejected_calls_count": _flag,
    "error_429_share": _SHARE,
    "retry_after": _one_of("seconds", "date", "missing", "garbage"),
    "retry_after_s": _number(0, 86_400),
    "error_5xx_share": _SHARE,
    "error_5xx_status": _whole(500, 599),
    "error_5xx_accepted": _flag,
    "drop_after_accept_share": _SHARE,
    "drop_before_accept_share": _SHARE,
    "outage": _one_of(False, True, "refuse"),
    "hang_s": _SECONDS,
    "hang_before_accept": _flag,
    "dedupe_by_key": _flag,
    "dedupe_window_s": _optional(_number(0, 366 * 86_400)),
    "key_reuse": _one_of("first_id", "conflict"),
    "lookup": _one_of("none", "eventual", "exact"),
    "lookup_lag_s": _number(0, 366 * 86_400),
    "faults_on_lookup": _flag,
    "valid_tokens": _optional(_tokens),
    "script": _script,
    "canned_answers": _canned,
    "entities_from_text": _flag,
    "batches": batch_config,
}
