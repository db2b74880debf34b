"""How bad it is: a class from the queue's age, failing jobs, and what workers and vendors answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

from shared.core.errors import BadInput
from shared.core.signals import Counts, Signals, VendorCounts, queue_age_s


class Severity(IntEnum):
    """Each class is worse than the one before."""

    NORMAL = 0
    MILD = 1
    MODERATE = 2
    SEVERE = 3

    @property
    def word(self) -> str:
        """How people write it."""
        return self.name.lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The numbers behind the words, as configured under `severity`."""

    mild_age_s: int = 60
    moderate_age_s: int = 120
    severe_age_s: int = 300
    """Older than this is severe; exactly this is moderate."""
    spike_calls: int = 5
    spike_share: float = 0.05
    """A spike: at least so many calls, and this share of the last full minute's, were answered 429 (or error)."""
    unstable_minutes: int = 2
    """A vendor is unstable after a spike in so many full minutes in a row, or while its breaker is open."""
    normal_share: float = 0.01
    normal_window_s: int = 900
    """Rates are normal while 429s, vendor errors and worker errors are each under this share of the window's."""
    growth_jobs: int = 1
    growth_window_s: int = 300
    """Dead letters grow when so many jobs failed within the window; what was put back does not count."""

    def __post_init__(self) -> None:
        for setting in ("mild_age_s", "spike_calls", "unstable_minutes", "growth_jobs"):
            self._whole(setting, 1)
        for setting in ("moderate_age_s", "severe_age_s", "normal_window_s", "growth_window_s"):
            self._whole(setting, 1)
        if not self.mild_age_s < self.moderate_age_s < self.severe_age_s:
            raise BadInput("severity", "mild_age_s, moderate_age_s and severe_age_s must rise")
        for setting in ("spike_share", "normal_share"):
            share = getattr(self, setting)
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
                raise BadInput(f"severity.{setting}", "must be a share above 0, at most 1")

    def to_mapping(self) -> dict[str, Any]:
        """Every number that is not at its default."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}

    def _whole(self, setting: str, least: int) -> None:
        value = getattr(self, setting)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise BadInput(f"severity.{setting}", f"must be a whole number, at least {least}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the signals say, in the words of the thresholds."""

    severity: Severity
    age_s: int
    limited: tuple[str, ...] = ()
    """Vendors with a spike of 429s."""
    failing: tuple[str, ...] = ()
    """Vendors with a spike of errors."""
    unstable: tuple[str, ...] = ()
    worker_errors: bool = False
    """A spike of attempts that went wrong."""
    growing: bool = False
    """Dead letters grow."""
    normal_rates: bool = True
    aged: bool = False
    """The oldest job waits for longer than is normal."""

    @property
    def spiking(self) -> bool:
        """A spike of any kind."""
        return bool(self.limited or self.failing or self.worker_errors)


def severity(signals: Signals, thresholds: Thresholds) -> Severity:
    """The class of a lane, now."""
    return read(signals, thresholds).severity


def read(signals: Signals, thresholds: Thresholds) -> Reading:
    """What the signals mean."""
    age_s, last = queue_age_s(signals), signals.minute(1)
    limited = tuple(name for name, one in last.vendors.items() if _spike(one.limited, one.calls, thresholds))
    failing = tuple(name for name, one in last.vendors.items() if _spike(one.errors, one.calls, thresholds))
    worker_errors = _spike(last.errors, max(last.claims, last.errors), thresholds)
    growing = signals.over(thresholds.growth_window_s).failed >= thresholds.growth_jobs
    spiking = bool(limited or failing or worker_errors)
    return Reading(
        severity=_class(age_s, spiking, growing, thresholds),
        age_s=age_s,
        limited=limited,
        failing=failing,
        unstable=_unstable(signals, thresholds),
        worker_errors=worker_errors,
        growing=growing,
        normal_rates=_normal(signals.over(thresholds.normal_window_s), thresholds),
        aged=age_s >= thresholds.mild_age_s,
    )


def of_age(age_s: float, thresholds: Thresholds) -> Severity:
    """normal < 60 s ≤ mild < 120 s ≤ moderate ≤ 300 s < severe."""
    if age_s < thresholds.mild_age_s:
        return Severity.NORMAL
    if age_s < thresholds.moderate_age_s:
        return Severity.MILD
    return Severity.MODERATE if age_s <= thresholds.severe_age_s else Severity.SEVERE


def _class(age_s: int, spiking: bool, growing: bool, thresholds: Thresholds) -> Severity:
    if growing:
        return Severity.SEVERE
    return Severity(min(Severity.SEVERE, of_age(age_s, thresholds) + spiking))


def _spike(bad: int, calls: int, thresholds: Thresholds) -> bool:
    return bad >= thresholds.spike_calls and bad >= thresholds.spike_share * calls


def _unstable(signals: Signals, thresholds: Thresholds) -> tuple[str, ...]:
    minutes = [signals.minute(back) for back in range(1, thresholds.unstable_minutes + 1)]
    spiked = [{name for name, one in minute.vendors.items() if _troubled(one, thresholds)} for minute in minutes]
    return tuple(sorted(signals.shut | set.intersection(*spiked)))


def _troubled(one: VendorCounts, thresholds: Thresholds) -> bool:
    return _spike(one.limited, one.calls, thresholds) or _spike(one.errors, one.calls, thresholds)


def _normal(window: Counts, thresholds: Thresholds) -> bool:
    shares = [(window.errors, window.claims), *_rates(window.vendors)]
    return all(is_normal(bad, of, thresholds) for bad, of in shares)


def is_normal(bad: int, of: int, thresholds: Thresholds) -> bool:
    """True while so few of so many went wrong."""
    return bad == 0 or bad < thresholds.normal_share * of


def _rates(vendors: Mapping[str, VendorCounts]) -> list[tuple[int, int]]:
    return [pair for one in vendors.values() for pair in ((one.limited, one.calls), (one.errors, one.calls))]
