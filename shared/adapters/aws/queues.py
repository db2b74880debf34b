"""The lanes' queues, for senders. A message is a ticket: ids only, its group the tenant."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from shared.adapters.aws.errors import ask
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import envelope
from shared.core.errors import Unavailable, UnknownLane
from shared.core.message import Message, QueueDepth, by_lane

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

PORT = "queues"
BATCH = 10
"""SQS takes at most this many messages a call."""
MAX_DELAY_S = 900

T = TypeVar("T")


class SqsLaneQueues:
    """`LaneQueues` on SQS."""

    def __init__(self, *, client: SQSClient, urls: Mapping[str, str], meter: Meter = UNMETERED) -> None:
        self._client, self._urls, self._meter = client, urls, meter

    def send(self, messages: Sequence[Message]) -> list[Message]:
        """Send; returns those that were not taken. Raises Unavailable when nothing is known."""
        return send_all(self._client, PORT, self._urls, by_lane(messages), _entry, self._meter)

    def depth(self, lane: str) -> QueueDepth:
        """How much waits."""
        self._meter.call(PORT, "depth")
        return depth_of(self._client, PORT, url_of(self._urls, lane))


def url_of(urls: Mapping[str, str], lane: str) -> str:
    """The lane's queue, or an error that lists the lanes there are."""
    if lane not in urls:
        raise UnknownLane(lane, tuple(sorted(urls)))
    return urls[lane]


def send_all(
    client: SQSClient,
    what: str,
    urls: Mapping[str, str],
    lanes: Mapping[str, Sequence[T]],
    entry: Callable[[str, T], SendMessageBatchRequestEntryTypeDef],
    meter: Meter,
) -> list[T]:
    """Send each lane's entries to its queue, in tens; returns those that were not taken.

    A batch without an answer was perhaps taken, perhaps not. Said to be refused, it is sent again: twice is
    harmless. Only when no batch at all was answered is nothing known, and Unavailable raised.
    """
    refused: list[T] = []
    lost: Unavailable | None = None
    answered = False
    for lane, waiting in lanes.items():
        url = url_of(urls, lane)
        for start in range(0, len(waiting), BATCH):
            batch = waiting[start : start + BATCH]
            meter.call(what, "send")
            try:
                refused += _send_batch(client, what, url, batch, entry)
                answered = True
            except Unavailable as unavailable:
                refused += batch
                lost = unavailable
    if lost is not None and not answered:
        raise lost
    return refused


def _send_batch(
    client: SQSClient,
    what: str,
    url: str,
    batch: Sequence[T],
    entry: Callable[[str, T], SendMessageBatchRequestEntryTypeDef],
) -> list[T]:
    """One call; returns the entries SQS refused: a call that succeeds may still have taken only some."""
    entries = [entry(str(position), one) for position, one in enumerate(batch)]
    answer = ask(what, lambda: client.send_message_batch(QueueUrl=url, Entries=entries))
    return [batch[int(failed["Id"])] for failed in answer.get("Failed", [])]


def depth_of(client: SQSClient, what: str, url: str) -> QueueDepth:
    """What a queue says of itself."""
    answer = ask(
        what,
        lambda: client.get_queue_attributes(
            QueueUrl=url,
            AttributeNames=[
                "ApproximateNumberOfMessages",
                "ApproximateNumberOfMessagesNotVisible",
                "ApproximateNumberOfMessagesDelayed",
            ],
        ),
    )
    counts = answer["Attributes"]
    return QueueDepth(
        visible=int(counts["ApproximateNumberOfMessages"]),
        in_flight=int(counts["ApproximateNumberOfMessagesNotVisible"]),
        delayed=int(counts["ApproximateNumberOfMessagesDelayed"]),
    )


def _entry(entry_id: str, message: Message) -> SendMessageBatchRequestEntryTypeDef:
    return {
        "Id": entry_id,
        "MessageBody": envelope.encode_ticket(message.job_id, message.lane),
        # On a standard queue the group makes a fair queue: a busy tenant's messages do not delay the others'.
        "MessageGroupId": message.tenant,
        "DelaySeconds": min(MAX_DELAY_S, max(0, message.delay_s)),
    }
