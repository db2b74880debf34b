"""Move tasks of the lanes' dead-letter queues. The destination is always said: the lane's own queue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from shared.adapters.aws.errors import ask, code_of
from shared.adapters.aws.queues import url_of
from shared.core.moment import from_epoch_s
from shared.core.native import MoveState, MoveTask

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import ListMessageMoveTasksResultEntryTypeDef

PORT = "move_tasks"
LISTED = 10
"""SQS remembers no more."""
OVER = ("ResourceNotFoundException", "UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation")
"""What a task that cannot be cancelled any more is answered with."""


class SqsMoveTasks:
    """`MoveTasks` on SQS."""

    def __init__(self, *, client: SQSClient, urls: Mapping[str, str], dead_letter_urls: Mapping[str, str]) -> None:
        self._client, self._urls, self._dead = client, urls, dead_letter_urls
        self._arns: dict[str, str] = {}

    def start(self, lane: str, *, rate: int) -> bool:
        """Begin to move; False when a task of that queue is active already."""
        source, destination = self._arn(url_of(self._dead, lane)), self._arn(url_of(self._urls, lane))
        try:
            ask(
                PORT,
                lambda: self._client.start_message_move_task(
                    SourceArn=source, DestinationArn=destination, MaxNumberOfMessagesPerSecond=rate
                ),
            )
        except ClientError:
            # There is no code of its own for "one is active already".
            if any(task.state.active for task in self.of(lane)):
                return False
            raise
        return True

    def of(self, lane: str) -> tuple[MoveTask, ...]:
        """The newest tasks, the newest first."""
        source, destination = self._arn(url_of(self._dead, lane)), self._arn(url_of(self._urls, lane))
        answer = ask(PORT, lambda: self._client.list_message_move_tasks(SourceArn=source, MaxResults=LISTED))
        found = [_task(entry, destination) for entry in answer.get("Results", [])]
        return tuple(sorted(found, key=lambda task: task.started_at, reverse=True))

    def cancel(self, lane: str, handle: str) -> None:
        """Move nothing more."""
        try:
            ask(PORT, lambda: self._client.cancel_message_move_task(TaskHandle=handle))
        except ClientError as error:
            if code_of(error) not in OVER:
                raise

    def _arn(self, url: str) -> str:
        if url not in self._arns:
            answer = ask(PORT, lambda: self._client.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"]))
            self._arns[url] = answer["Attributes"]["QueueArn"]
        return self._arns[url]


def _task(entry: ListMessageMoveTasksResultEntryTypeDef, destination: str) -> MoveTask:
    state = entry.get("Status", "")
    return MoveTask(
        # A word this version does not know is one more way of being at it.
        state=MoveState(state) if state in tuple(MoveState) else MoveState.RUNNING,
        started_at=from_epoch_s(entry.get("StartedTimestamp", 0) // 1000),
        moved=entry.get("ApproximateNumberOfMessagesMoved", 0),
        rate=entry.get("MaxNumberOfMessagesPerSecond"),
        to_lane=entry.get("DestinationArn") == destination,
        handle=entry.get("TaskHandle"),
    )
