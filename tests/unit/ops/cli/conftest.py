"""A deployed stage in memory, and `penstock` to ask about it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from moto import mock_aws
from typer.testing import CliRunner

from ops.cli.main import app
from ops.cli.stage import Stage
from shared.adapters.aws.clients import client
from shared.contract import names
from shared.core.lane import LaneSpec
from tests.builders import a_lane
from tests.contract.tables import create_queues, create_source, table_shape

STAGE = "dev"
LANES = (a_lane(), a_lane(name="mail", tasks=("sync", "draft"), vendors=("gmail",)))


@dataclass(frozen=True)
class Answer:
    """What `penstock` said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


class Penstock:
    """The command line, run in this process."""

    def __call__(self, *arguments: str, stdin: str | bytes | None = None, code: int = 0) -> Answer:
        result = CliRunner().invoke(app, list(arguments), input=stdin)
        answer = Answer(code=result.exit_code, out=result.stdout, err=result.stderr)
        assert result.exception is None or isinstance(result.exception, SystemExit), answer
        assert "Traceback" not in answer.out + answer.err
        assert answer.code == code, answer
        return answer


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No local stack of the developer is found, and the terminal is as wide as ours."""
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "stacks"))
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def penstock() -> Penstock:
    """`penstock`, for commands that ask no stage."""
    return Penstock()


@pytest.fixture
def deployed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """The stage dev with two lanes, on moto; `penstock` means it by default."""
    monkeypatch.setenv("PENSTOCK_STAGE", STAGE)
    # moto is no judge of races.
    monkeypatch.setattr("shared.client.BULK_THREADS", 1)
    with mock_aws():
        # Without waiting and expiry: most of these tests need neither.
        for name in (*names.TABLES, names.CONTENT_TABLE):
            client("dynamodb").create_table(**table_shape(STAGE, name))
        create_queues(client("sqs"), STAGE, [lane.name for lane in LANES])
        deploy_lanes(LANES)
        region = os.environ["AWS_DEFAULT_REGION"]
        client("s3").create_bucket(
            Bucket=names.bucket(STAGE, "123456789012", region),
            CreateBucketConfiguration={"LocationConstraint": region},  # type: ignore[typeddict-item]
        )
        yield Stage(STAGE)


def feed(lane: str) -> None:
    """A worker and its event source, as a lane's stack has them."""
    url = client("sqs").get_queue_url(QueueName=names.queue(STAGE, lane))["QueueUrl"]
    clients = SimpleNamespace(iam=client("iam"), lambda_=client("lambda"), sqs=client("sqs"))
    create_source(clients, STAGE, lane, url)


def deploy_lanes(lanes: tuple[LaneSpec, ...]) -> None:
    """Write the parameter that a deployment leaves for tools."""
    client("ssm").put_parameter(
        Name=names.lanes_parameter(STAGE),
        Value=json.dumps({lane.name: lane.to_mapping() for lane in lanes}),
        Type="String",
        Overwrite=True,
    )
