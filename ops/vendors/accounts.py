"""All vendor accounts over one record, without HTTP: what the simulations drive on their own clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from ops.vendors import helpdesk, openai_shape, plain_shape
from ops.vendors.asks import Shape
from ops.vendors.config import ConfigError, VendorConfig, changed
from ops.vendors.record import Record
from ops.vendors.request import VendorRequest
from ops.vendors.vendor import Vendor
from ops.vendors.verdict import Verdict

_SHAPES: dict[str, Shape] = {
    helpdesk.NAME: helpdesk.HelpDesk(),
    openai_shape.NAME: openai_shape.OpenAi(),
    plain_shape.NAME: plain_shape.PlainBatches(),
}

# The inference vendor always tells its limits in headers, as the real one does; these do not bind.
_STARTS = {
    openai_shape.NAME: VendorConfig(
        requests_per_minute=1_000_000, tokens_per_minute=1_000_000_000, entities_from_text=True
    ),
}


class Accounts:
    """The vendors by name, their record, and one place to change or reset them."""

    def __init__(
        self,
        *,
        seed: int = 0,
        record: Record | None = None,
        configs: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        starts = dict(configs or {})
        if unknown := sorted(set(starts) - set(_SHAPES)):
            raise ConfigError(_no_vendor(unknown[0]))
        self.record = record or Record()
        self.vendors = {
            name: Vendor(
                name=name,
                shape=shape,
                record=self.record,
                seed=seed,
                config=changed(_STARTS.get(name, VendorConfig()), starts.get(name, {})),
            )
            for name, shape in _SHAPES.items()
        }

    def vendor(self, name: str) -> Vendor:
        """The account of that name. Raises ConfigError, naming those that exist."""
        if name not in self.vendors:
            raise ConfigError(_no_vendor(name))
        return self.vendors[name]

    def vendor_of(self, path: str) -> Vendor | None:
        """The account that the first part of a path belongs to."""
        return self.vendors.get(path.lstrip("/").partition("/")[0])

    def handle(self, request: VendorRequest, now: datetime) -> Verdict:
        """Decide one request at the account its path names. Raises ConfigError where there is none."""
        vendor = self.vendor_of(request.path)
        if vendor is None:
            raise ConfigError(_no_vendor(request.path))
        return vendor.handle(request, now)

    def configure(self, vendor: str, **changes: object) -> VendorConfig:
        """Change some fields of one account at once. Raises ConfigError and then changes nothing."""
        return self.vendor(vendor).configure(changes)

    def reset(self, *, keep_config: bool = False) -> None:
        """Forget the record and the limits' use, and go back to the starting configuration."""
        self.record.clear()
        for vendor in self.vendors.values():
            vendor.reset(keep_config=keep_config)


def _no_vendor(name: str) -> str:
    return f"there is no vendor {name[:60]!r}; there are {', '.join(_SHAPES)}"
