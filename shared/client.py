"""For producers: `Penstock(stage).enqueue(...)`. Needs boto3 and five permissions; no queue, no CDK, no Powertools.

from shared.client import Penstock

ref = Penstock("prod").enqueue(
    "support", "answer_event", tenant="acme", key="evt-1", payload={"conversation_id": "c-9", "text": "…"}
)
ref.created   # False when the same cause was enqueued before
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.adapters.aws.clients import client
from shared.adapters.aws.clock import SystemClock
from shared.adapters.aws.content import S3ContentStore
from shared.adapters.aws.jobs import DynamoDbJobStore
from shared.adapters.aws.lanes import deployed_lanes
from shared.contract import names
from shared.core.errors import PenstockError
from shared.core.job import DEFAULT_PRIORITY
from shared.core.lane import LaneSpec
from shared.core.ports import Clock, ContentStore, JobStore
from shared.usecases.enqueue import Enqueue, JobRef, enqueue

__all__ = ["Enqueue", "Enqueued", "JobRef", "Penstock"]

BULK_THREADS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """One line of a bulk enqueue: its job, or the error that refused it alone."""

    position: int
    ref: JobRef | None
    error: PenstockError | None


class Penstock:
    """A stage's front door for producers. Safe to share between threads."""

    def __init__(
        self,
        stage: str,
        *,
        lanes: Mapping[str, LaneSpec] | None = None,
        jobs: JobStore | None = None,
        content: ContentStore | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.lanes = deployed_lanes(stage) if lanes is None else lanes
        self._clock = clock or SystemClock()
        self._jobs = jobs or DynamoDbJobStore(
            client=client("dynamodb", connections=BULK_THREADS),
            table_name=names.table(stage, "jobs"),
            lanes=self.lanes,
        )
        self._content = content or _StageContent(stage)

    def enqueue(
        self,
        lane: str,
        task: str,
        tenant: str,
        key: str | Sequence[str],
        payload: Mapping[str, Any] | None = None,
        *,
        not_before: datetime | None = None,
        priority: int = DEFAULT_PRIORITY,
    ) -> JobRef:
        """One job for one cause. The same key again gives the same job; another payload under it is refused."""
        request = Enqueue(
            lane=lane,
            task=task,
            tenant=tenant,
            key=key,
            payload={} if payload is None else payload,
            not_before=not_before,
            priority=priority,
        )
        return self.put(request)

    def put(self, request: Enqueue) -> JobRef:
        """Enqueue a prepared request."""
        return enqueue(request, jobs=self._jobs, content=self._content, lanes=self.lanes, clock=self._clock)

    def enqueue_many(
        self, requests: Iterable[Enqueue], *, progress: Callable[[int], None] | None = None
    ) -> Iterator[Enqueued]:
        """Many jobs, in order, each on its own: a refused one harms no other."""

        def one(numbered: tuple[int, Enqueue]) -> Enqueued:
            position, request = numbered
            try:
                return Enqueued(position=position, ref=self.put(request), error=None)
            except PenstockError as exc:
                return Enqueued(position=position, ref=None, error=exc)

        with ThreadPoolExecutor(max_workers=BULK_THREADS) as pool:
            for done, result in enumerate(pool.map(one, enumerate(requests)), start=1):
                if progress is not None:
                    progress(done)
                yield result


class _StageContent:
    """The stage's content store; the bucket's name holds the account, which is asked for once, when needed."""

    def __init__(self, stage: str) -> None:
        self._stage = stage
        self._store: S3ContentStore | None = None

    def put(self, ref: str, data: bytes) -> None:
        self._open().put(ref, data)

    def get(self, ref: str) -> bytes | None:
        return self._open().get(ref)

    def delete(self, ref: str) -> None:
        self._open().delete(ref)

    def _open(self) -> S3ContentStore:
        if self._store is None:
            sts = client("sts")
            bucket = names.bucket(self._stage, sts.get_caller_identity()["Account"], sts.meta.region_name)
            self._store = S3ContentStore(client=client("s3", connections=BULK_THREADS), bucket=bucket)
        return self._store
