"""The event sources of the lanes' workers, by Lambda's own calls. One that is being changed is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from shared.adapters.aws.errors import ask, code_of
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import names
from shared.core.capacity import EventSource
from shared.core.errors import Unavailable

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

PORT = "event_sources"
BUSY = frozenset({"ResourceInUseException", "ResourceConflictException"})
GONE = "ResourceNotFoundException"


class LambdaActuator:
    """`Actuator` on Lambda: the cap of a worker is its event source's, which throttles without failing receives."""

    def __init__(self, *, client: LambdaClient, stage: str, meter: Meter = UNMETERED) -> None:
        self._client, self._stage, self._meter = client, stage, meter
        self._ids: dict[str, str] = {}

    def source(self, lane: str) -> EventSource:
        """As it stands now. Raises Unavailable, also when the lane's worker has none."""
        source_id = self._id(lane)
        self._meter.call(PORT, "source")
        try:
            told = ask(PORT, lambda: self._client.get_event_source_mapping(UUID=source_id))
        except ClientError as error:
            if code_of(error) != GONE:
                raise
            # Made anew under another id: looked up the next time.
            self._ids.pop(lane, None)
            raise Unavailable(PORT, "missing") from None
        return EventSource(state=told["State"], cap=told.get("ScalingConfig", {}).get("MaximumConcurrency"))

    def assert_cap(self, lane: str, cap: int) -> bool:
        """Ask for a cap; 0 disables the source. False: it is being changed, nothing was done."""
        wanted: dict[str, Any] = {"Enabled": False}
        if cap:
            wanted = {"Enabled": True, "ScalingConfig": {"MaximumConcurrency": cap}}
        source_id = self._id(lane)
        self._meter.call(PORT, "assert_cap")
        try:
            ask(PORT, lambda: self._client.update_event_source_mapping(UUID=source_id, **wanted))
        except ClientError as error:
            if code_of(error) not in BUSY:
                raise
            return False
        return True

    def _id(self, lane: str) -> str:
        known = self._ids.get(lane)
        if known is not None:
            return known
        worker = f"{names.function(self._stage, names.worker(lane))}:{names.LIVE}"
        self._meter.call(PORT, "find")
        found = ask(PORT, lambda: self._client.list_event_source_mappings(FunctionName=worker))["EventSourceMappings"]
        if not found:
            raise Unavailable(PORT, "missing")
        self._ids[lane] = found[0]["UUID"]
        return self._ids[lane]
