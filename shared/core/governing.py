"""The rules a lane is judged and steered by: what the words mean, how caps move, what vendors charge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.core.capacity import POLICIES, Policy
from shared.core.severity import Thresholds
from shared.core.vendor_cost import HOUR_S, Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The same for the governor, which acts by them, and for the command line, which shows and asks by them."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    policies: Mapping[str, Policy] = field(default_factory=lambda: dict(POLICIES))
    prices: Prices = field(default_factory=Prices)

    @property
    def window_s(self) -> int:
        """How far back counts must be read."""
        calm_s = max(policy.calm_s for policy in self.policies.values())
        return max(self.thresholds.normal_window_s, self.thresholds.growth_window_s, calm_s, HOUR_S)

    def to_mapping(self) -> dict[str, Any]:
        """Only what differs from the defaults; `from_mapping` gives the same rules back."""
        policies = {name: one.to_mapping() for name, one in self.policies.items() if one != POLICIES.get(name)}
        told = {"severity": self.thresholds.to_mapping(), "policies": policies, "prices": self.prices.to_mapping()}
        return {name: values for name, values in told.items() if values}

    @classmethod
    def from_mapping(cls, told: Mapping[str, Any]) -> Rules:
        """The rules that were told, with the defaults under them."""
        policies = {name: Policy.from_mapping(name, values) for name, values in told.get("policies", {}).items()}
        return cls(
            thresholds=Thresholds(**told.get("severity", {})),
            policies={**POLICIES, **policies},
            prices=Prices.from_mapping(told.get("prices", {})),
        )
