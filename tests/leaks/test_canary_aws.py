"""The same on the AWS adapters, at DEBUG, with the command line: what an SDK or a tool could show, it does not."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws

from shared.adapters.aws.clients import client
from shared.adapters.aws.dead_letters import SqsDeadLetterQueues
from shared.adapters.content_rows import payload_from_item
from shared.client import Penstock
from shared.contract import env, names
from shared.core.errors import BadInput, EnqueueConflict
from shared.core.lane import LaneSpec
from shared.runtime import wiring
from shared.runtime.door import DoorFailed
from tests.builders import ROUTING
from tests.contract.tables import create_queues, table_shape
from tests.functions.stage import LambdaContext, stream_event
from tests.leaks.sweep import CANARY, Sweep, holds, sweeping
from tests.settings import settings_file
from tests.unit.vendors import sockets
from tests.unit.vendors.sockets import RawServer

STAGE, ACCOUNT, REGION = "dev", "123456789012", "eu-central-1"
LANE = {"tasks": ["answer_event"], "vendors": ["helpdesk"], "parallel": 1, "routing": ROUTING}
PAYLOAD = {"text": CANARY, CANARY: [CANARY], "conversation_id": "c-1"}
REPLY = sockets.reply("201 Created", json.dumps({"id": "r-1", "text": CANARY}).encode())


@dataclass
class Account:
    """A stage on moto, with the real handlers on the real wiring."""

    sweep: Sweep
    door: Penstock
    urls: dict[str, str]
    bucket: str

    def invoke(self, function: str, event: Any) -> None:
        handler = importlib.reload(importlib.import_module(f"functions.{function}.handler")).handler
        try:
            answer = handler(event, LambdaContext())
            self.sweep.export(f"{function}.json", json.dumps(answer))
        except DoorFailed as exc:
            self.sweep.lambda_prints(exc)

    def rows(self, table: str) -> list[dict[str, Any]]:
        return list(client("dynamodb").scan(TableName=names.table(STAGE, table))["Items"])

    def messages(self, queue: str) -> list[dict[str, Any]]:
        sqs, found = client("sqs"), []
        while got := sqs.receive_message(
            QueueUrl=self.urls[queue], MaxNumberOfMessages=10, MessageSystemAttributeNames=["All"]
        ).get("Messages"):
            found += got
        return found

    def stored(self) -> list[str]:
        """What stands in the content store."""
        listed = client("s3").list_objects_v2(Bucket=self.bucket).get("Contents", [])
        objects = [client("s3").get_object(Bucket=self.bucket, Key=one["Key"])["Body"].read() for one in listed]
        rows = [payload_from_item(item, datetime.now(UTC)) or b"" for item in self.rows(names.CONTENT_TABLE)]
        return [data.decode() for data in (*objects, *rows)]

    def tell(self, *arguments: str) -> None:
        """One command of the command line, its answer taken away as a file."""
        from typer.testing import CliRunner

        from ops.cli.main import app

        result = CliRunner().invoke(app, list(arguments))
        name = "-".join(arguments[:2])
        self.sweep.export(f"cli-{name}-{len(list(self.sweep.exports.iterdir()))}.txt", result.stdout + result.stderr)


@contextmanager
def an_account(tmp_path: Path, vendor_url: str) -> Iterator[Account]:
    lanes = {"support": LaneSpec.from_mapping("support", LANE)}
    with mock_aws(), sweeping(tmp_path) as sweep, pytest.MonkeyPatch.context() as patch:
        for table in (*names.TABLES, names.CONTENT_TABLE):
            client("dynamodb").create_table(**table_shape(STAGE, table))
        queues, dead = create_queues(client("sqs"), STAGE, ["support"])
        bucket = names.bucket(STAGE, ACCOUNT, REGION)
        client("s3").create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": REGION})  # type: ignore[typeddict-item]
        client("ssm").put_parameter(
            Name=names.lanes_parameter(STAGE), Value=json.dumps({"support": LANE}), Type="String"
        )
        vendor = {"kind": "helpdesk", "base_url": vendor_url, "lookup": "exact", "read_timeout_s": 60}
        variables = {
            env.STAGE: STAGE,
            env.LANE: "support",
            env.SETTINGS: settings_file(lanes={"support": LANE}, vendors={"helpdesk": vendor}),
            **{name: names.table(STAGE, name.split("_")[1].lower()) for name in TABLE_VARIABLES},
            env.CONTENT_BUCKET: bucket,
            env.CONTENT_TABLE: names.table(STAGE, names.CONTENT_TABLE),
            env.ACCOUNT_ID: ACCOUNT,
            env.PERIOD_S: "60",
            "PENSTOCK_HOME": str(tmp_path / "nowhere"),
        }
        for name, value in variables.items():
            patch.setenv(name, value)
        # Looking into an empty queue does not need to wait here.
        patch.setattr(
            wiring,
            "dead_letter_queues",
            lambda settings: SqsDeadLetterQueues(client=client("sqs"), urls=dict(dead), wait_s=0),
        )
        urls = {"support": queues["support"], "support-dlq": dead["support"]}
        yield Account(sweep, Penstock(STAGE, lanes=lanes), urls, bucket)


TABLE_VARIABLES = (env.JOBS_TABLE, env.EFFECTS_TABLE, env.CONTROL_TABLE, env.LEDGER_TABLE, env.HISTORY_TABLE)


def drive(account: Account) -> None:
    """Good and bad requests, every handler, a dead letter nobody can read, and the command line."""
    for key in ("a", "b"):
        account.door.enqueue("support", "answer_event", "acme", key, PAYLOAD)
    with pytest.raises(EnqueueConflict) as conflict:
        account.door.enqueue("support", "answer_event", "acme", "a", {**PAYLOAD, "more": CANARY})
    account.sweep.lambda_prints(conflict.value)
    with pytest.raises(BadInput) as refused:
        account.door.enqueue("support", "answer_event", CANARY, "a", PAYLOAD)
    account.sweep.lambda_prints(refused.value)
    account.invoke("stream", stream_event(*account.rows("jobs")))
    client("sqs").send_message(QueueUrl=account.urls["support"], MessageBody=CANARY)
    client("sqs").send_message(QueueUrl=account.urls["support-dlq"], MessageBody=CANARY)
    records = [
        {"messageId": m["MessageId"], "body": m["Body"], "attributes": m["Attributes"]}
        for m in account.messages("support")
    ]
    assert len(records) == 3
    account.invoke("support", {"Records": records})
    for function in ("dispatcher", "sweeper", "triage", "auditor", "redriver", "governor"):
        account.invoke(function, {"text": CANARY})
    account.invoke("stream", stream_event(*account.rows("jobs")))


@pytest.mark.req("R14")
@pytest.mark.fault("I1", "I3", "I5", "I6", "I8")
def test_on_aws_nothing_but_the_content_store_holds_the_words(tmp_path: Path) -> None:
    """All five tables, both queues, logs at DEBUG, metrics, failures, and what the command line prints."""
    with RawServer(lambda request: [REPLY]) as server, an_account(tmp_path, server.url) as account:
        drive(account)
        (job_id,) = [row["pk"]["S"][4:] for row in account.rows("jobs") if row["key"]["S"] == "a"]
        account.tell("jobs", "list", "--json")
        account.tell("jobs", "show", job_id, "--json")
        for payload in (f'{{"a": {CANARY}', json.dumps(PAYLOAD)):
            account.tell("enqueue", "support", "answer_event", "--tenant", "t", "--key", "k", "--payload", payload)
        # The client's words went out to the vendor and in to the content store, and nowhere else.
        stored = account.stored()
        assert server.requests
        account.tell("jobs", "erase", job_id, "--why", "the customer asked")
        assert sum(map(holds, account.stored())) < sum(map(holds, stored))
        account.sweep.look_at(
            tables={table: account.rows(table) for table in names.TABLES},
            # What was planted comes back once nobody hides it any longer, which on a busy machine may be by now.
            queues={
                name: [repr(message) for message in account.messages(name) if message["Body"] != CANARY]
                for name in account.urls
            },
        )
        assert account.sweep.hits() == []
        assert account.sweep.forged() == []
        assert sum(holds(text) for text in stored) >= 3
        states = sorted(row["status"]["S"] for row in account.rows("jobs"))
        assert states.count("completed") == 2
        assert states.count("failed") == 1
        assert "door_failed" not in account.sweep.stdout.getvalue()
