"""Which fault the shares of a configuration bring to one request."""

from __future__ import annotations

from ops.vendors.config import VendorConfig
from ops.vendors.faults import NO_FAULT, Fault, FaultKind

_TOO_MANY = Fault(kind=FaultKind.STATUS, status=429, reason="share")
_DROP_BEFORE = Fault(kind=FaultKind.DROP_BEFORE_ACCEPT, reason="share")
_DROP_AFTER = Fault(kind=FaultKind.DROP_AFTER_ACCEPT, reason="share")


def fault_by_chance(config: VendorConfig, drawn: float) -> Fault:
    """The fault for a number drawn from 0 up to 1. The shares divide that range; the hang has the rest."""
    for share, fault in (
        (config.error_429_share, _TOO_MANY),
        (config.error_5xx_share, _error(config)),
        (config.drop_before_accept_share, _DROP_BEFORE),
        (config.drop_after_accept_share, _DROP_AFTER),
    ):
        if drawn < share:
            return fault
        drawn -= share
    if config.hang_s > 0:
        kind = FaultKind.HANG_BEFORE_ACCEPT if config.hang_before_accept else FaultKind.HANG
        return Fault(kind=kind, wait_s=config.hang_s, reason="hang")
    return NO_FAULT


def _error(config: VendorConfig) -> Fault:
    kind = FaultKind.ACCEPT_THEN_STATUS if config.error_5xx_accepted else FaultKind.STATUS
    return Fault(kind=kind, status=config.error_5xx_status, reason="share")
