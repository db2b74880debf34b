"""The lanes' dead-letter queues. Looking does not delete; deleting is one message at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from shared.adapters.aws.errors import ask, code_of
from shared.adapters.aws.queues import BATCH, depth_of, send_all, url_of
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import envelope
from shared.core.message import DeadLetter, DeadMessage, QueueDepth
from shared.core.moment import iso

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageTypeDef, SendMessageBatchRequestEntryTypeDef

PORT = "dead_letters"
WAIT_S = 1
"""Asking without waiting looks at some of a queue's servers only, and may find nothing where there is much."""


class SqsDeadLetterQueues:
    """`DeadLetterQueues` on SQS."""

    def __init__(
        self, *, client: SQSClient, urls: Mapping[str, str], meter: Meter = UNMETERED, wait_s: int = WAIT_S
    ) -> None:
        self._client, self._urls, self._meter, self._wait_s = client, urls, meter, wait_s

    def send(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """Send; returns those that were not taken. Raises Unavailable when nothing is known."""
        lanes: dict[str, list[DeadLetter]] = {}
        for letter in letters:
            lanes.setdefault(letter.lane, []).append(letter)
        return send_all(self._client, PORT, self._urls, lanes, _entry, self._meter)

    def receive(self, lane: str, *, limit: int, hide_s: int) -> list[DeadMessage]:
        """Up to `limit` messages, hidden for `hide_s`, not deleted."""
        url = url_of(self._urls, lane)
        found: dict[str, DeadMessage] = {}
        while len(found) < limit:
            messages = self._look(url, min(BATCH, limit - len(found)), hide_s)
            if not messages:
                break
            # A message seen twice in one look counts once, by its newer receipt.
            found |= {message["MessageId"]: _dead_message(message) for message in messages}
        return list(found.values())

    def delete(self, lane: str, receipt: str) -> None:
        """Remove one message for good; one that is gone already, or came back under another receipt, is no error."""
        self._meter.call(PORT, "delete")
        url = url_of(self._urls, lane)
        try:
            ask(PORT, lambda: self._client.delete_message(QueueUrl=url, ReceiptHandle=receipt))
        except ClientError as error:
            if code_of(error) != "ReceiptHandleIsInvalid":
                raise

    def depth(self, lane: str) -> QueueDepth:
        """How much stands there."""
        self._meter.call(PORT, "depth")
        return depth_of(self._client, PORT, url_of(self._urls, lane))

    def _look(self, url: str, most: int, hide_s: int) -> list[MessageTypeDef]:
        self._meter.call(PORT, "receive")
        answer = ask(
            PORT,
            lambda: self._client.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=most,
                VisibilityTimeout=hide_s,
                WaitTimeSeconds=self._wait_s,
                MessageSystemAttributeNames=["ApproximateReceiveCount"],
            ),
        )
        return answer.get("Messages", [])


def _entry(entry_id: str, letter: DeadLetter) -> SendMessageBatchRequestEntryTypeDef:
    body = envelope.encode_dead_letter(
        job_id=letter.job_id,
        lane=letter.lane,
        category=letter.category,
        signature=letter.signature,
        at=iso(letter.at),
    )
    return {"Id": entry_id, "MessageBody": body, "MessageGroupId": letter.tenant}


def _dead_message(message: MessageTypeDef) -> DeadMessage:
    body = message.get("Body", "")
    try:
        job_id = envelope.decode_ticket(body).job_id
    except envelope.BadEnvelope:
        job_id = None
    return DeadMessage(
        receipt=message["ReceiptHandle"],
        message_id=message["MessageId"],
        body=body,
        job_id=job_id,
        receive_count=int(message.get("Attributes", {}).get("ApproximateReceiveCount", 1)),
    )
