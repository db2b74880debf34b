"""One fixture, `world`, in each of its kinds: every suite runs on memory, on moto, on AWS's own DynamoDB engine where
it can run (beside moto for all other services), and on a stack if there is one.

A running stack is given by its endpoint: `PENSTOCK_E2E=http://127.0.0.1:4566 pytest tests/contract`. Who has
another way to get at one overrides `aws_clients`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import boto3
import pytest
from moto import mock_aws

from shared.adapters.aws.clients import settings
from tests.contract.worlds import AwsClients, AwsWorld, MemoryWorld, World
from tests.engine import dynamodb

ENDPOINT = os.environ.get("PENSTOCK_E2E", "")
KINDS: list[Any] = ["memory", "moto"]
if not dynamodb.why_not():
    # One engine serves all its tests: they share a process.
    KINDS.append(pytest.param(dynamodb.KIND, marks=pytest.mark.xdist_group(dynamodb.KIND)))
if ENDPOINT:
    KINDS.append(pytest.param("stack", marks=pytest.mark.e2e))


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Which kind of world."""
    return str(request.param)


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The address of AWS's own DynamoDB engine."""
    with dynamodb.running() as engine:
        yield engine.address


@pytest.fixture
def aws_clients(kind: str, request: pytest.FixtureRequest) -> Iterator[AwsClients]:
    """Clients as the adapters have them, but with the SDK's validation: a malformed request is found here."""
    if kind == "stack":
        yield _clients(endpoint_url=ENDPOINT)
        return
    with mock_aws():
        clients = _clients()
        if kind == dynamodb.KIND:
            address = request.getfixturevalue("engine")
            clients = replace(clients, dynamodb=_clients(wait_s=dynamodb.ANSWER_S, endpoint_url=address).dynamodb)
        yield clients


@pytest.fixture
def world(kind: str, request: pytest.FixtureRequest) -> Iterator[World]:
    """Every port, empty."""
    if kind == "memory":
        yield MemoryWorld()
        return
    # moto is no judge of races: more than one of its callers at once may win.
    threads = 1 if kind == "moto" else 8
    # The suites' clock is virtual and lies in the past, where an engine that removes by its own would find all expired.
    aws = AwsWorld(request.getfixturevalue("aws_clients"), threads=threads, expires=kind != dynamodb.KIND)
    yield aws
    if kind != "moto":
        aws.close()


@cache
def _clients(*, wait_s: int = 0, **where: str) -> AwsClients:
    # Built once: reading the services' models takes longer than most tests.
    session: Any = boto3.Session(
        region_name="eu-central-1", aws_access_key_id="testing", aws_secret_access_key="testing"
    )
    return AwsClients(
        **{
            f"{service}_" if service == "lambda" else service: session.client(
                service, config=settings(service, wait_s=wait_s, validate=True), **where
            )
            for service in ("dynamodb", "sqs", "s3", "lambda", "iam", "events")
        }
    )
