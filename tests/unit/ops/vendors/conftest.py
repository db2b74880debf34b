"""A running vendor simulator on a clock that the test sets, and a client on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from ops.vendors.server import VendorSimulator


class SettableClock:
    """The time as the test says it."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def vendor(clock: SettableClock) -> Iterator[VendorSimulator]:
    with VendorSimulator(port=0, seed=7, clock=clock) as running:
        yield running


@pytest.fixture
def client(vendor: VendorSimulator) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=vendor.url, timeout=60, trust_env=False) as open_client:
        yield open_client


@pytest.fixture
def forward(clock: SettableClock) -> Callable[[float], None]:
    """Moves the simulator's clock on by some seconds."""
    return clock.forward
