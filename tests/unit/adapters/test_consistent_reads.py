"""What is acted on is read as it stands. Emulators always answer so: only the request tells whether DynamoDB would."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.adapters.aws.batches import DynamoDbBatchStore
from shared.adapters.aws.budgets import DynamoDbBudgetLedger
from shared.adapters.aws.control import DynamoDbControlStore
from shared.adapters.aws.effects import DynamoDbEffectStore
from shared.adapters.aws.history import DynamoDbHistory
from shared.adapters.aws.jobs import DynamoDbJobStore
from shared.adapters.aws.ledger import DynamoDbLedger
from shared.adapters.aws.plans import DynamoDbPlanStore
from shared.adapters.aws.resolutions import DynamoDbResolutionStore
from shared.adapters.aws.signals import DynamoDbSignalLedger
from tests.builders import NOW, a_job, a_lane, an_account
from tests.unit.adapters.test_dynamodb import Recorder

ADAPTERS = Path(__file__).resolve().parents[3] / "shared" / "adapters" / "aws"
JOB_ID = a_job().job_id
READS: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "a job": (DynamoDbJobStore, lambda jobs: jobs.get(JOB_ID)),
    "a job's effects": (DynamoDbEffectStore, lambda effects: effects.of_job(JOB_ID)),
    "the switches": (DynamoDbControlStore, lambda control: control.switches()),
    "a capacity": (DynamoDbControlStore, lambda control: control.capacity("support")),
    "a schedule's runs": (DynamoDbLedger, lambda ledger: ledger.runs("dispatcher", limit=1)),
    "a history": (DynamoDbHistory, lambda history: history.of("support", limit=1)),
    "a plan": (DynamoDbPlanStore, lambda plans: plans.get("plan-1")),
    "a manifest": (DynamoDbPlanStore, lambda plans: plans.manifest("plan-1")),
    "a plan's steps": (DynamoDbPlanStore, lambda plans: plans.steps("plan-1")),
    "the plan that has a lane": (DynamoDbPlanStore, lambda plans: plans.plan_of("support")),
    "a resolution": (DynamoDbResolutionStore, lambda resolutions: resolutions.get(JOB_ID, 1)),
    "batches under way": (DynamoDbBatchStore, lambda batches: batches.under_way("rewrite")),
    "batches that ended": (DynamoDbBatchStore, lambda batches: batches.ended("rewrite", limit=1)),
    "who is in a batch": (DynamoDbBatchStore, lambda batches: batches.members("tag-1")),
    "an account": (DynamoDbBudgetLedger, lambda budgets: budgets.read(an_account())),
    "a lane's minutes": (DynamoDbSignalLedger, lambda signals: signals.minutes("support", since=NOW)),
}
LATE_IS_FINE = {
    ("jobs.py", "scan"): "the audit and listings: whoever acts on a row reads it again",
    ("jobs.py", "_partition"): "the waiting index only nominates, and DynamoDB reads no index consistently",
}
READING = {"get_item", "query", "scan", "batch_get_item", "transact_get_items"}


@pytest.mark.fault("C4")
@pytest.mark.parametrize(("store", "read"), READS.values(), ids=READS)
def test_what_is_acted_on_is_asked_for_as_it_stands(store: type[Any], read: Callable[[Any], Any]) -> None:
    """Every request of the read says so."""
    client = Recorder({"Items": []})
    read(
        store(client=client, table_name="t", **({"lanes": {"support": a_lane()}} if store is DynamoDbJobStore else {}))
    )
    assert client.calls
    assert [(name, asked.get("ConsistentRead")) for name, asked in client.calls] == [
        (name, True) for name, _ in client.calls
    ]


@pytest.mark.fault("C4")
def test_no_other_read_of_a_table_may_be_late() -> None:
    """Every call that reads, wherever it stands among the adapters, asks for it or is named here with a reason."""
    late: set[tuple[str, str]] = set()
    reads = 0
    for path in sorted(ADAPTERS.glob("*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in READING:
                    if "TableName" not in {keyword.arg for keyword in call.keywords}:
                        continue
                    reads += 1
                    said = {keyword.arg: keyword.value for keyword in call.keywords}
                    asked = said.get("ConsistentRead")
                    if not (isinstance(asked, ast.Constant) and asked.value is True):
                        late.add((path.name, function.name))
    assert late == set(LATE_IS_FINE)
    assert reads > len(LATE_IS_FINE) + 5
