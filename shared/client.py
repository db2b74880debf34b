"""For producers: `Penstock(stage).enqueue(...)`. Needs boto3 and five permissions; no queue, no CDK, no Powertools.

from shared.client import Penstock

ref = Penstock("prod").enqueue(
    "support", "answer_event", tenant="acme", key="evt-1", payload={"conversation_id": "c-9", "text": "…"}
)
ref.created   # False when the same cause was enqueued before

Programs that steer jobs, too: `schedule(job_id, delay_seconds)` and `reset_to_pending(job_id)`; they need the
permissions for it, and are named in the history as AWS knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.adapters.aws.access import in_our_words
from shared.adapters.aws.clients import client
from shared.adapters.aws.clock import SystemClock
from shared.adapters.aws.content import ContentByReference, DynamoDbContentStore, S3ContentStore
from shared.adapters.aws.effects import DynamoDbEffectStore
from shared.adapters.aws.history import DynamoDbHistory
from shared.adapters.aws.jobs import DynamoDbJobStore
from shared.adapters.aws.lanes import deployed_lanes
from shared.contract import names
from shared.core.document import document_bytes, document_ref
from shared.core.errors import PenstockError, UnknownStage
from shared.core.job import DEFAULT_PRIORITY, Job, time_after
from shared.core.lane import LaneSpec, content_kept_days
from shared.core.nearest import unknown
from shared.core.ports import Clock, ContentStore, EffectStore, History, JobStore
from shared.core.stage import STAGES
from shared.usecases.enqueue import Enqueue, JobRef, enqueue
from shared.usecases.persist import persist
from shared.usecases.steer import reset_to_pending, schedule

__all__ = ["Enqueue", "Enqueued", "JobRef", "Penstock"]

BULK_THREADS = 16
NO_REASON = "no reason given"


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """One line of a bulk enqueue: its job, or the error that refused it alone."""

    position: int
    ref: JobRef | None
    error: PenstockError | None


class Penstock:
    """A stage's front door for producers. Safe to share between threads."""

    @in_our_words
    def __init__(
        self,
        stage: str,
        *,
        lanes: Mapping[str, LaneSpec] | None = None,
        jobs: JobStore | None = None,
        content: ContentStore | None = None,
        effects: EffectStore | None = None,
        history: History | None = None,
        clock: Clock | None = None,
    ) -> None:
        if stage not in STAGES:
            raise UnknownStage(unknown(stage, STAGES, "stages"))
        self._stage, self._effects, self._history = stage, effects, history
        self._by = ""
        self.lanes = deployed_lanes(stage) if lanes is None else lanes
        self._clock = clock or SystemClock()
        self._jobs = jobs or DynamoDbJobStore(
            client=client("dynamodb", connections=BULK_THREADS),
            table_name=names.table(stage, "jobs"),
            lanes=self.lanes,
        )
        self._content = content or ContentByReference(
            rows=DynamoDbContentStore(
                client=client("dynamodb", connections=BULK_THREADS),
                table_name=names.table(stage, names.CONTENT_TABLE),
                clock=self._clock,
                kept_days=content_kept_days(self.lanes.values()),
            ),
            objects=_StageObjects(stage),
        )

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
        facts: Mapping[str, Any] | None = None,
    ) -> JobRef:
        """One job for one cause. The same key again gives the same job; another payload under it is refused.

        `facts` are for lanes whose record asks for them, such as `rewrite`.
        """
        request = Enqueue(
            lane=lane,
            task=task,
            tenant=tenant,
            key=key,
            payload={} if payload is None else payload,
            not_before=not_before,
            priority=priority,
            facts=facts,
        )
        return self.put(request)

    @in_our_words
    def put(self, request: Enqueue) -> JobRef:
        """Enqueue a prepared request."""
        return enqueue(request, jobs=self._jobs, content=self._content, lanes=self.lanes, clock=self._clock)

    @in_our_words
    def put_document(self, tenant: str, document_id: str, data: bytes | str) -> str:
        """Store a document, text in UTF-8 of at most 5 MB, and return its reference for the payload of a job.

        A job reads documents of its own tenant alone. The same id again replaces the text; documents expire with
        the payloads.
        """
        ref, stored = document_ref(tenant, document_id), document_bytes(data)
        persist(lambda: self._content.put(ref, stored), self._clock)
        return ref

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

    @in_our_words
    def schedule(self, job_id: str, delay_seconds: float, reason: str = "") -> Job:
        """A queued job runs `delay_seconds` from now, 0 being now; it still passes every gate.

        Raises BadInput for a delay that cannot be meant and for a job that is not queued; nothing is written then.
        """
        return schedule(
            job_id,
            time_after("delay_seconds", delay_seconds, self._clock.now()),
            by=self._caller(),
            why=reason or NO_REASON,
            jobs=self._jobs,
            history=self._open_history(),
            clock=self._clock,
        )

    @in_our_words
    def reset_to_pending(self, job_id: str, delay_seconds: float = 0, reason: str = "") -> Job:
        """A running job is taken back from its worker, which can no longer settle it; no attempt is used.

        Raises BadInput for a job that does not run and for one with an open intent: see `steer.reset_to_pending`.
        """
        return reset_to_pending(
            job_id,
            delay_seconds,
            by=self._caller(),
            why=reason or NO_REASON,
            jobs=self._jobs,
            effects=self._open_effects(),
            history=self._open_history(),
            clock=self._clock,
        ).job

    def _caller(self) -> str:
        if not self._by:
            self._by = str(client("sts").get_caller_identity()["Arn"])
        return self._by

    def _open_effects(self) -> EffectStore:
        if self._effects is None:
            self._effects = DynamoDbEffectStore(
                client=client("dynamodb"), table_name=names.table(self._stage, "effects")
            )
        return self._effects

    def _open_history(self) -> History:
        if self._history is None:
            self._history = DynamoDbHistory(client=client("dynamodb"), table_name=names.table(self._stage, "history"))
        return self._history


class _StageObjects:
    """The stage's bucket; its name holds the account, which is asked for once, when needed."""

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
