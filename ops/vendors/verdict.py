"""What a vendor makes of a request, as a value that a server can act out and a simulation can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ops.vendors.record import Ending, VerdictKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a vendor makes of a request. `status` is none where the connection is closed without an answer.

    `wait_s` passes between the decision and the answer (or the closing): what was accepted has been
    accepted before it. `seq` is the number of its entry in the record.
    """

    kind: VerdictKind
    reason: str = ""
    status: int | None = None
    body: Mapping[str, object] = field(default_factory=dict)
    content: bytes | None = None  # a file, where the answer is one
    headers: Mapping[str, str] = field(default_factory=dict)
    ending: Ending = Ending.ANSWERED
    wait_s: float = 0.0
    vendor_id: str = ""
    seq: int = 0

    @property
    def accepted(self) -> bool:
        """True when the action took place."""
        return self.kind is VerdictKind.ACCEPTED
