"""The one place where SDK clients are built. Endpoint, region and credentials are as the SDK finds them."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    from botocore.config import Config
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

CONNECT_TIMEOUT_S = 1
READ_TIMEOUT_S = 3
TRIES = 3
"""Three tries of four seconds: about the time a lane keeps for an effect from intent to record."""
CONNECTIONS = 10
SLOWER = {"s3": 6, "sqs": 4}
"""Objects are larger than rows, and a queue may be asked to wait a second for its messages."""

_SURROUNDINGS = ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_PROFILE")


@overload
def client(service: Literal["dynamodb"], *, connections: int = ...) -> DynamoDBClient: ...
@overload
def client(service: Literal["sqs"], *, connections: int = ...) -> SQSClient: ...
@overload
def client(service: Literal["s3"], *, connections: int = ...) -> S3Client: ...
@overload
def client(service: str, *, connections: int = ...) -> Any: ...
def client(service: str, *, connections: int = CONNECTIONS) -> Any:
    """A client with a connection for each of as many threads; built once, and again when AWS_* changes."""
    return _client(service, connections, tuple(os.environ.get(name) for name in _SURROUNDINGS))


def settings(service: str, *, connections: int = CONNECTIONS, validate: bool = False) -> Config:
    """The SDK's configuration: short time-outs, few tries, warm connections.

    The SDK's own validation is off: it costs time on every call, and its errors print the arguments. The
    contract suites turn it on, so a malformed request is found there. The name we give ourselves replaces
    one that the SDK would put together anew, twice, for every request: a fifth of the time of a call.
    """
    from botocore import __version__
    from botocore.config import Config

    return Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=SLOWER.get(service, READ_TIMEOUT_S),
        retries={"mode": "standard", "total_max_attempts": TRIES},
        max_pool_connections=max(CONNECTIONS, connections),
        tcp_keepalive=True,
        parameter_validation=validate,
        user_agent=f"penstock botocore/{__version__}",
    )


@cache
def _client(service: str, connections: int, surroundings: tuple[str | None, ...]) -> Any:
    return _session(surroundings).client(service, config=settings(service, connections=connections))


@cache
def _session(surroundings: tuple[str | None, ...]) -> Any:
    # The SDK is imported on first use: a process that builds no client does not pay for it. One session for
    # all clients: it reads the service models and the credentials once.
    import boto3

    return boto3.Session()
