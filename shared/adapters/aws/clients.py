"""The one place where SDK clients are built. Endpoint, region and credentials are as the SDK finds them."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, overload

from shared.core.errors import NoAccess

if TYPE_CHECKING:
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

    from shared.adapters.aws.server_clock import ServerClock

CONNECT_TIMEOUT_S = 1
READ_TIMEOUT_S = 3
TRIES = 3
"""Three tries of four seconds: about the time a lane keeps for an effect from intent to record."""
CONNECTIONS = 10
SLOWER = {"s3": 6, "sqs": 4, "logs": 30}
"""Objects are larger than rows, a queue may be asked to wait a second for its messages, and logs are searched."""

_SURROUNDINGS = ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE")


@overload
def client(service: Literal["dynamodb"], *, connections: int = ..., tries: int = ...) -> DynamoDBClient: ...
@overload
def client(service: Literal["sqs"], *, connections: int = ..., tries: int = ...) -> SQSClient: ...
@overload
def client(service: Literal["s3"], *, connections: int = ..., tries: int = ...) -> S3Client: ...
@overload
def client(service: str, *, connections: int = ..., tries: int = ..., wait_s: int = ...) -> Any: ...
def client(service: str, *, connections: int = CONNECTIONS, tries: int = TRIES, wait_s: int = 0) -> Any:
    """A client with a connection for each of as many threads; built once, and again when AWS_* changes.

    One try is for writes that must not be applied twice when a reply was lost. `wait_s` is for an answer that takes
    longer than others of its service.
    """
    return _client(service, connections, tries, wait_s, tuple(os.environ.get(name) for name in _SURROUNDINGS))


def settings(
    service: str, *, connections: int = CONNECTIONS, tries: int = TRIES, wait_s: int = 0, validate: bool = False
) -> Config:
    """The SDK's configuration: short time-outs, few tries, warm connections.

    The SDK's own validation is off: it costs time on every call, and its errors print the arguments. The
    contract suites turn it on, so a malformed request is found there. The name we give ourselves replaces
    one that the SDK would put together anew, twice, for every request: a fifth of the time of a call.
    """
    from botocore import __version__
    from botocore.config import Config

    return Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=wait_s or SLOWER.get(service, READ_TIMEOUT_S),
        retries={"mode": "standard", "total_max_attempts": tries},
        max_pool_connections=max(CONNECTIONS, connections),
        tcp_keepalive=True,
        parameter_validation=validate,
        user_agent=f"penstock botocore/{__version__}",
    )


@cache
def _client(service: str, connections: int, tries: int, wait_s: int, surroundings: tuple[str | None, ...]) -> Any:
    config = settings(service, connections=connections, tries=tries, wait_s=wait_s)
    try:
        made = _session(surroundings).create_client(service, config=config)
    except ValueError as exc:
        if type(exc) is not ValueError:
            raise
        raise NoAccess("no_endpoint", "AWS_ENDPOINT_URL is not a URL such as http://127.0.0.1:4566") from None
    if service == "dynamodb":
        server_clock().watch(made)
    if service == "s3":
        _send_bodies_at_once(made)
    return made


def _send_bodies_at_once(s3: Any) -> None:
    """Payloads are small: asking S3 first whether it would take the body costs a round trip on every put."""
    from botocore.handlers import add_expect_header

    s3.meta.events.unregister("before-call.s3", add_expect_header)


@cache
def server_clock() -> ServerClock:
    """DynamoDB's clock, as every answer to a client of this process tells it."""
    from shared.adapters.aws.server_clock import ServerClock

    return ServerClock()


@cache
def _session(surroundings: tuple[str | None, ...]) -> Any:
    # The SDK is imported on first use: a process that builds no client does not pay for it. One session for
    # all clients: it reads the service models and the credentials once. The core of the SDK makes the same
    # clients as boto3, without boto3's resources and transfer manager: a tenth of a cold start.
    import botocore.session

    return botocore.session.get_session()
