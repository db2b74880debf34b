"""Tenant waits: what of a tenant stands in line, as a least number."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shared.usecases import tenant_waits as counting
from shared.usecases.tenant_waits import Waits, tenant_waits
from tests.builders import NOW, a_lane
from tests.unit.usecases.desk import Desk


@pytest.mark.fault("E8")
def test_the_first_in_line_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest due of every priority, so many and no more; what is behind them is not counted."""
    monkeypatch.setattr(counting, "LOOKED_AT", 4)
    desk = Desk()
    for number, tenant in enumerate(["acme", "umbrella", "acme", "umbrella", "acme", "acme"]):
        at = NOW + timedelta(minutes=number + 1)
        job = desk.enqueue(key=f"k{number}", tenant=tenant, not_before=at, priority=number % 2)
        assert job.created
    desk.admit()
    found = tenant_waits(desk.lane, "acme", jobs=desk.jobs, clock=desk.clock)
    assert found == Waits(tenant="acme", at_least=2, looked_at=4)
    assert found.sentence == "At least 2 of the first 4 waiting jobs of the lane are of tenant acme."


def test_a_line_of_many_tenants_is_not_read_as_one() -> None:
    """In a fair lane each tenant has its own."""
    desk = Desk()
    assert tenant_waits(a_lane(admission="fair"), "acme", jobs=desk.jobs, clock=desk.clock) is None
