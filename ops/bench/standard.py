"""The standard way to do the same: Powertools' BatchProcessor with its idempotency, one function, one table.

Written as its documentation teaches it, for the same job: the text is kept out of the queue, the event is
routed, and a reply goes to the help desk through httpx with the message's key.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

if TYPE_CHECKING:
    import httpx
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

Handler = Callable[[dict[str, Any], Any], Any]

NO_REPLY = ("legal", "safety", "payment_dispute", "account_security")
REPLY = "Thank you for writing to us. We have your message and are looking into it."
KEPT_S = 7 * 24 * 3600


class StandardWorker:
    """One lane the standard way. `sequential` and `threaded` are its two Lambda handlers."""

    def __init__(
        self, *, dynamodb: DynamoDBClient, s3: S3Client, table_name: str, bucket: str, vendor_url: str
    ) -> None:
        self._s3, self._bucket, self._vendor_url = s3, bucket, vendor_url
        self._http: httpx.Client | None = None
        self._logger = Logger(service="standard-worker", level="INFO")
        self._metrics = Metrics(namespace="Standard", service="standard-worker")
        self._config = IdempotencyConfig(event_key_jmespath="job", expires_after_seconds=KEPT_S)
        self._processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
        self._answer = idempotent_function(
            self._answer_once,
            data_keyword_argument="ticket",
            config=self._config,
            persistence_store=DynamoDBPersistenceLayer(table_name=table_name, boto3_client=dynamodb),
        )
        self.sequential: Handler = self._metrics.log_metrics(self._sequential)
        self.threaded: Handler = self._metrics.log_metrics(self._threaded)

    def _sequential(self, event: dict[str, Any], context: Any) -> Any:
        """As the documentation has it: one record after the other."""
        self._config.register_lambda_context(context)
        return process_partial_response(
            event=event, record_handler=self._record, processor=self._processor, context=context
        )

    def _threaded(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """The same record handler on ten threads; the processor itself has no threads."""
        self._config.register_lambda_context(context)
        records = [SQSRecord(record) for record in event["Records"]]
        with ThreadPoolExecutor(max_workers=10) as pool:
            failed = list(pool.map(self._fails, records))
        return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed if message_id]}

    def _fails(self, record: SQSRecord) -> str | None:
        try:
            self._record(record)
        except Exception as exc:
            self._logger.error("record_failed", message_id=record.message_id, error_type=type(exc).__name__)
            return record.message_id
        return None

    def _record(self, record: SQSRecord) -> None:
        ticket = json.loads(record.body)
        done = self._answer(ticket=ticket)
        self._logger.info("record_done", job_id=ticket["job"], result=done["result"])
        self._metrics.add_metric(name="JobsCompleted", unit=MetricUnit.Count, value=1)

    def _answer_once(self, *, ticket: Mapping[str, str]) -> dict[str, str]:
        """What the idempotency record guards: read the text, route, reply."""
        text = self._s3.get_object(Bucket=self._bucket, Key=ticket["payload"])["Body"].read()
        event = json.loads(text)
        if event.get("topic") in NO_REPLY:
            return {"result": "routed"}
        reply = self._client().post(
            f"/conversations/{event['conversation_id']}/replies",
            json={"text": REPLY},
            headers={"Idempotency-Key": ticket["job"]},
        )
        reply.raise_for_status()
        return {"result": "replied"}

    def _client(self) -> httpx.Client:
        if self._http is None:
            import httpx

            self._http = httpx.Client(base_url=self._vendor_url, timeout=6.0)
        return self._http
