"""One fixture, `world`, in each of its kinds: every suite runs on memory and on moto, and on a stack if there is one.

A running stack is given by its endpoint: `PENSTOCK_E2E=http://127.0.0.1:4566 pytest tests/contract`. Who has
another way to get at one overrides `aws_clients`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import Any

import boto3
import pytest
from moto import mock_aws

from shared.adapters.aws.clients import settings
from tests.contract.worlds import AwsClients, AwsWorld, MemoryWorld, World

ENDPOINT = os.environ.get("PENSTOCK_E2E", "")
KINDS: list[Any] = ["memory", "moto"]
if ENDPOINT:
    KINDS.append(pytest.param("stack", marks=pytest.mark.e2e))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Which kind of world."""
    return str(request.param)


@pytest.fixture
def aws_clients(kind: str) -> Iterator[AwsClients]:
    """Clients as the adapters have them, but with the SDK's validation: a malformed request is found here."""
    if kind == "stack":
        yield _clients(endpoint_url=ENDPOINT)
        return
    with mock_aws():
        yield _clients()


@pytest.fixture
def world(kind: str, request: pytest.FixtureRequest) -> Iterator[World]:
    """Every port, empty."""
    if kind == "memory":
        yield MemoryWorld()
        return
    # moto is no judge of races: more than one of its callers at once may win.
    aws = AwsWorld(request.getfixturevalue("aws_clients"), threads=1 if kind == "moto" else 8)
    yield aws
    if kind == "stack":
        aws.close()


@cache
def _clients(**where: str) -> AwsClients:
    # Built once: reading the services' models takes longer than most tests.
    session: Any = boto3.Session(
        region_name="eu-central-1", aws_access_key_id="testing", aws_secret_access_key="testing"
    )
    return AwsClients(
        **{
            f"{service}_" if service == "lambda" else service: session.client(
                service, config=settings(service, validate=True), **where
            )
            for service in ("dynamodb", "sqs", "s3", "lambda", "iam", "events")
        }
    )
