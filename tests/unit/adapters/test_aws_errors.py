"""What each AWS error means, and that none of them carries a row or an argument out of the adapter."""

from __future__ import annotations

import traceback
from typing import Any

import botocore.exceptions as sdk
import pytest
from botocore.exceptions import BotoCoreError, ClientError

from shared.adapters.aws.errors import ConditionFalse, Meaning, RequestRefused, ask, meaning_of, write_if
from shared.core.errors import PenstockError, Unavailable

CANARY = "Dear customer, my card is 4111"
FALSE, AWAY, DEFECT = Meaning.CONDITION_FALSE, Meaning.UNAVAILABLE, Meaning.DEFECT


def client_error(code: str, status: int = 400, **response: Any) -> ClientError:
    """An error as the SDK raises it."""
    return ClientError(
        {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}, **response},  # type: ignore[typeddict-item]
        "UpdateItem",
    )


def canceled(*codes: str) -> ClientError:
    """A canceled transaction with one reason an item."""
    reasons = [{"Code": code, "Item": {"text": {"S": CANARY}}} for code in codes]
    return client_error("TransactionCanceledException", CancellationReasons=reasons)


MATRIX: list[tuple[ClientError | BotoCoreError, Meaning]] = [
    *(
        (client_error(code), AWAY)
        for code in (
            "ProvisionedThroughputExceededException",
            "ThrottlingException",
            "Throttling",
            "RequestLimitExceeded",
            "RequestThrottled",
            "TooManyRequestsException",
            "SlowDown",
            "OverLimit",
            "TransactionConflictException",
            "TransactionInProgressException",
            "RequestTimeout",
            "InternalServerError",
            "ServiceUnavailable",
            "KMS.ThrottlingException",
        )
    ),
    (client_error("Whatever", 500), AWAY),
    (client_error("Whatever", 503), AWAY),
    (client_error("Whatever", 429), AWAY),
    (client_error("ConditionalCheckFailedException"), FALSE),
    (client_error("ValidationException"), DEFECT),
    (client_error("AccessDeniedException"), DEFECT),
    (client_error("ResourceNotFoundException"), DEFECT),
    (client_error("ItemCollectionSizeLimitExceededException"), DEFECT),
    (client_error("AWS.SimpleQueueService.NonExistentQueue"), DEFECT),
    (client_error("NoSuchKey", 404), DEFECT),
    (client_error("ExpiredTokenException"), DEFECT),
    (canceled("TransactionConflict", "None"), AWAY),
    (canceled("ThrottlingError", "ProvisionedThroughputExceeded"), AWAY),
    (canceled("None", "ConditionalCheckFailed"), FALSE),
    (canceled("TransactionConflict", "ConditionalCheckFailed"), FALSE),
    (canceled("ValidationError", "TransactionConflict"), DEFECT),
    (canceled("ItemCollectionSizeLimitExceeded"), DEFECT),
    (canceled("None"), DEFECT),
    (canceled(), DEFECT),
    (sdk.ConnectTimeoutError(endpoint_url="https://x"), AWAY),
    (sdk.ReadTimeoutError(endpoint_url="https://x"), AWAY),
    (sdk.EndpointConnectionError(endpoint_url="https://x"), AWAY),
    (sdk.ConnectionClosedError(endpoint_url="https://x"), AWAY),
    (sdk.ResponseStreamingError(error="cut"), AWAY),
    (sdk.IncompleteReadError(actual_bytes=1, expected_bytes=2), AWAY),
    (sdk.NoCredentialsError(), DEFECT),
    (sdk.NoRegionError(), DEFECT),
    (sdk.ParamValidationError(report=CANARY), DEFECT),
]


def raising(error: Exception) -> Any:
    """A call that fails like this."""

    def call() -> None:
        raise error

    return call


@pytest.mark.fault("C2")
@pytest.mark.parametrize(
    ("error", "meaning"), MATRIX, ids=[f"{type(e).__name__}-{n}" for n, (e, _) in enumerate(MATRIX)]
)
def test_each_error_has_one_meaning(error: ClientError | BotoCoreError, meaning: Meaning) -> None:
    """Throttles, conflicts, 5xx and lost connections: ask later. A false condition: an answer. The rest: a defect."""
    assert meaning_of(error) is meaning
    if meaning is AWAY:
        with pytest.raises(Unavailable, match="jobs is unavailable"):
            write_if("jobs", raising(error))
    elif meaning is FALSE:
        assert isinstance(write_if("jobs", raising(error)), ConditionFalse)
    else:
        with pytest.raises((RequestRefused, type(error))):
            write_if("jobs", raising(error))


def test_an_unavailable_service_is_named_with_its_code() -> None:
    """Enough for a log line: what did not answer, and the code it gave."""
    with pytest.raises(Unavailable) as unavailable:
        ask("jobs", raising(client_error("ThrottlingException")))
    assert (unavailable.value.what, unavailable.value.reason) == ("jobs", "ThrottlingException")


def test_the_row_that_stands_there_comes_with_a_false_condition() -> None:
    """The answer has the row; no row is None."""
    row = {"pk": {"S": "JOB#1"}}
    error = client_error("ConditionalCheckFailedException", Item=row)
    assert write_if("jobs", raising(error)) == ConditionFalse(row)
    assert write_if("jobs", raising(client_error("ConditionalCheckFailedException"))) == ConditionFalse(None)


def test_a_condition_nobody_set_is_a_refused_request() -> None:
    """A read cannot have a false condition; if it has, that is no answer to it."""
    with pytest.raises(RequestRefused):
        ask("jobs", raising(client_error("ConditionalCheckFailedException")))


def test_a_defect_is_raised_as_it_came() -> None:
    """A missing permission is not hidden behind a word of ours."""
    denied = client_error("AccessDeniedException")
    with pytest.raises(ClientError) as raised:
        ask("jobs", raising(denied))
    assert raised.value is denied


@pytest.mark.fault("I1")
@pytest.mark.parametrize(
    "error",
    [
        client_error("ConditionalCheckFailedException", Item={"text": {"S": CANARY}}),
        client_error("ThrottlingException", Item={"text": {"S": CANARY}}),
        client_error("ValidationException", Item={"text": {"S": CANARY}}),
        canceled("ConditionalCheckFailed"),
        canceled("TransactionConflict"),
        canceled("ValidationError"),
        sdk.ParamValidationError(report=CANARY),
    ],
    ids=lambda error: f"{type(error).__name__}",
)
def test_no_error_carries_customer_text(error: Exception) -> None:
    """Neither its text, nor its response, nor what it was raised from, nor its traceback."""
    try:
        ask("jobs", raising(error))
    except (PenstockError, ClientError) as raised:
        seen: list[BaseException | None] = [raised, raised.__cause__, raised.__context__]
        said = [str(one) for one in seen] + [repr(getattr(one, "response", "")) for one in seen]
        said += traceback.format_exception(raised)
        assert not [text for text in said if CANARY in text]
    else:
        pytest.fail("nothing was raised")
