"""What an AWS error means, decided by its code in one place.

Three meanings: the service did not answer (nothing is known, ask again later), the service answered "the
condition is false" (an answer, not an error), and anything else: a defect or a missing permission, re-raised
as it came. A response that carries a row, or an error that carries arguments, never leaves this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ParamValidationError,
)

from shared.adapters.attributes import Item
from shared.core.errors import PenstockError, Unavailable

T = TypeVar("T")

CONDITION_FALSE = "ConditionalCheckFailedException"
CANCELED = "TransactionCanceledException"

THROTTLED = frozenset(
    {
        "BandwidthLimitExceeded",
        "KMS.ThrottlingException",
        "KmsThrottled",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
CONTENDED = frozenset(
    {"ReplicatedWriteConflictException", "TransactionConflictException", "TransactionInProgressException"}
)
DOWN = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
    }
)
PASSING_REASONS = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"})
"""Reasons of a canceled transaction that say nothing about our conditions."""


class Meaning(Enum):
    """What the caller can do about an error."""

    CONDITION_FALSE = "the row is not as the condition wants it"
    UNAVAILABLE = "nothing is known; ask again later"
    DEFECT = "the request is wrong or not allowed; asking again would not help"


class RequestRefused(PenstockError):
    """A request that the SDK would not send; says the operation's port and nothing of its arguments."""

    code = "request_refused"

    def __init__(self, what: str) -> None:
        super().__init__(f"a request to {what} is not well formed")
        self.what = what


@dataclass(frozen=True, slots=True)
class ConditionFalse:
    """A conditional write was not applied; `item` is the row that stands there, None when there is none."""

    item: Item | None


def meaning_of(error: ClientError | BotoCoreError) -> Meaning:
    """What an error of the SDK means."""
    if not isinstance(error, ClientError):
        lost = isinstance(error, ConnectionError | HTTPClientError | IncompleteReadError)
        return Meaning.UNAVAILABLE if lost else Meaning.DEFECT
    code = code_of(error)
    if code == CONDITION_FALSE:
        return Meaning.CONDITION_FALSE
    if code == CANCELED:
        return _canceled(error)
    if code in THROTTLED or code in CONTENDED or code in DOWN:
        return Meaning.UNAVAILABLE
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return Meaning.UNAVAILABLE if status >= 500 or status == 429 else Meaning.DEFECT


def _canceled(error: ClientError) -> Meaning:
    """A transaction's reasons, strictest first: a false condition is an answer whatever stands beside it."""
    listed = error.response.get("CancellationReasons", [])
    reasons = {reason.get("Code", "None") for reason in listed} - {"None"}
    if "ConditionalCheckFailed" in reasons:
        return Meaning.CONDITION_FALSE
    return Meaning.UNAVAILABLE if reasons and reasons <= PASSING_REASONS else Meaning.DEFECT


def code_of(error: ClientError | BotoCoreError) -> str:
    """The service's code, or the SDK's class: safe to log."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "Unknown"))
    return type(error).__name__


def ask(what: str, call: Callable[[], T]) -> T:
    """The answer of `call`. Raises Unavailable when `what` did not answer; a defect is raised as it came."""
    answer = write_if(what, call)
    if isinstance(answer, ConditionFalse):
        raise RequestRefused(what)
    return answer


def write_if(what: str, call: Callable[[], T]) -> T | ConditionFalse:
    """As `ask`, for a conditional write: that its condition is false is one of its answers."""
    try:
        return call()
    except (ClientError, BotoCoreError) as error:
        meaning, code = meaning_of(error), code_of(error)
        item = _taken_item(error)
        if meaning is Meaning.DEFECT and not isinstance(error, ParamValidationError):
            raise
    # Raised out here, so that the SDK's error, which may carry a row or arguments, is not its context.
    if meaning is Meaning.CONDITION_FALSE:
        return ConditionFalse(item)
    if meaning is Meaning.UNAVAILABLE:
        raise Unavailable(what, code)
    raise RequestRefused(what)


def _taken_item(error: ClientError | BotoCoreError) -> Item | None:
    """The row an error carries, taken out of it: whoever logs the error cannot log the row."""
    if not isinstance(error, ClientError):
        return None
    for reason in error.response.get("CancellationReasons", []):
        reason.pop("Item", None)
    item: Item | None = dict(error.response).get("Item")  # type: ignore[assignment]
    error.response.pop("Item", None)  # type: ignore[typeddict-item]
    return item or None
