"""What the account on a table asks for: one write a step, two at most, and nothing again after a lost reply."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from moto import mock_aws

from shared.adapters.aws.budgets import CONTENDED, DynamoDbBudgetLedger
from shared.adapters.budget_rows import budget_item
from shared.adapters.meter import Meter, Usage
from shared.contract import names, table
from shared.core import feedback
from shared.core.account import Limit
from shared.core.budget import MINUTE, SECOND, Budget, Refusal, Taken, Terms, Want, us_of
from shared.core.errors import Unavailable, UnreadableRow
from tests.builders import NOW, an_account
from tests.contract.conftest import _clients
from tests.contract.tables import create_tables

NOW_US = us_of(NOW)
SPEC = an_account(requests_per_day=1000, concurrency=10)
ONE = Want(slots=1)


class Line:
    """A client on moto that notes its calls, does something before one, or loses a reply."""

    def __init__(self, client: Any) -> None:
        self.calls: list[str] = []
        self.lose: set[str] = set()
        self.before: Callable[[], object] | None = None
        self._client = client

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(**asked: Any) -> Any:
            self.calls.append(name)
            if self.before is not None and name == "update_item":
                self.before()
            answer = getattr(self._client, name)(**asked)
            if name in self.lose:
                raise ReadTimeoutError(endpoint_url="https://dynamodb")
            return answer

        return call


class Desk:
    """A table, an adapter whose calls are noted, and another environment."""

    def __init__(self) -> None:
        client = _clients().dynamodb
        create_tables(client, "unit", ["ledger"])
        where = names.table("unit", "ledger")
        self.raw, self.where = client, where
        self.line, self.meter = Line(client), Meter()
        self.ledger = DynamoDbBudgetLedger(client=self.line, table_name=where, meter=self.meter)  # type: ignore[arg-type]
        self.other = DynamoDbBudgetLedger(client=client, table_name=where)

    def take(self, want: Want = ONE, *, hold: str = "me", now_us: int = NOW_US) -> Taken | Refusal:
        """The noted environment takes."""
        self.line.calls.clear()
        return self.ledger.take(SPEC, want, least=want, now_us=now_us, hold=hold, hold_s=60)


@pytest.fixture
def desk() -> Iterator[Desk]:
    """An empty table."""
    with mock_aws():
        yield Desk()


def test_a_take_is_one_write_and_no_read(desk: Desk) -> None:
    """On an empty account, on one that is busy, on one that is idle again, and the next day."""
    for now_us in (NOW_US, NOW_US + 1, NOW_US + MINUTE, NOW_US + 1440 * MINUTE):
        assert isinstance(desk.take(now_us=now_us), Taken)
        assert desk.line.calls == ["update_item"]
    assert desk.meter.snapshot() == {("budgets", "take"): Usage(calls=4, write_units=4)}


def test_a_refusal_is_one_write_and_no_read(desk: Desk) -> None:
    """The row that refused comes with the refusal."""
    desk.take(), desk.take(now_us=NOW_US)
    assert isinstance(desk.take(now_us=NOW_US), Refusal)
    assert desk.line.calls == ["update_item"]


def test_a_new_environment_needs_one_write_more(desk: Desk) -> None:
    """It does not know the account: its first write tells it, its second takes."""
    desk.other.take(SPEC, Want(), least=Want(), now_us=NOW_US)
    assert isinstance(desk.take(), Taken)
    assert desk.line.calls == ["update_item"] * 2


def test_terms_that_refuse_are_read_not_written(desk: Desk) -> None:
    """While the account is shut or quiet, asking costs one read; when it opens, the next one who asks is served."""
    quiet = feedback.changed(Terms(), NOW_US, quiet_until_us=NOW_US + MINUTE)
    desk.ledger.change(SPEC, Terms(), quiet)
    assert isinstance(desk.take(), Refusal)
    assert desk.line.calls == ["get_item"]
    desk.other.change(SPEC, quiet, feedback.changed(quiet, NOW_US, quiet_until_us=0))
    assert isinstance(desk.take(), Taken)
    assert desk.line.calls == ["get_item", "update_item"]


def test_a_race_lost_twice_is_refused_not_tried_again(desk: Desk) -> None:
    """There is room, but others were faster: the answer is to come again, after two writes."""
    terms = [Terms()]

    def meddle() -> None:
        terms.append(feedback.changed(terms[-1], NOW_US))
        desk.other.change(SPEC, terms[-2], terms[-1])

    desk.line.before = meddle
    answer = desk.take()
    assert isinstance(answer, Refusal)
    assert (answer.limit, answer.retry_us) == (CONTENDED, NOW_US)
    assert desk.line.calls == ["update_item"] * 2
    desk.line.before = None
    assert isinstance(desk.take(), Taken)


def test_a_race_lost_twice_to_a_full_account_is_that_accounts_refusal(desk: Desk) -> None:
    """What refuses in the end is what the last row says."""
    wants = iter([Want(requests=1), Want(requests=1)])
    desk.line.before = lambda: desk.other.take(SPEC, want := next(wants), least=want, now_us=NOW_US)
    answer = desk.take()
    assert isinstance(answer, Refusal)
    assert (answer.limit, answer.retry_us) == ("requests", NOW_US + SECOND)


@pytest.mark.fault("C3")
def test_a_lost_reply_costs_permits_and_is_not_asked_for_again(desk: Desk) -> None:
    """The write was applied; nobody retries it. Asking anew pays once more and holds once."""
    desk.line.lose = {"update_item"}
    with pytest.raises(Unavailable):
        desk.take()
    assert desk.line.calls == ["update_item"]
    desk.line.lose = set()
    taken = desk.take()
    assert isinstance(taken, Taken)
    assert taken.budget.arrival_us[Limit.REQUESTS] == NOW_US + 2 * SECOND
    assert taken.budget.held(Limit.CONCURRENCY) == 1
    desk.line.calls.clear()
    desk.line.lose = {"update_item"}
    with pytest.raises(Unavailable):
        desk.ledger.give_back(SPEC, Want(), now_us=NOW_US, hold="me")
    assert desk.line.calls == ["update_item"]
    after = desk.other.read(SPEC)
    assert (after.arrival_us[Limit.REQUESTS], after.held(Limit.CONCURRENCY)) == (NOW_US + SECOND, 0)


def test_every_step_is_two_writes_at_most(desk: Desk) -> None:
    """Also for an environment whose view is of long ago."""
    desk.take()
    desk.other.take(SPEC, Want(), least=Want(), now_us=NOW_US + MINUTE)
    desk.other.reserve(SPEC, SECOND, not_before_us=NOW_US)
    desk.line.calls.clear()
    desk.ledger.give_back(SPEC, Want(tokens=-5), now_us=NOW_US + MINUTE, hold="me")
    assert len(desk.line.calls) <= 2
    desk.line.calls.clear()
    assert desk.ledger.reserve(SPEC, SECOND, not_before_us=NOW_US) == NOW_US + SECOND
    assert len(desk.line.calls) <= 2


def test_a_return_to_an_account_never_seen_is_looked_up_first(desk: Desk) -> None:
    """Another environment gives back for one that died."""
    desk.other.take(SPEC, ONE, least=ONE, now_us=NOW_US, hold="dead", hold_s=60)
    desk.ledger.give_back(SPEC, Want(requests=0), now_us=NOW_US, hold="dead")
    assert desk.line.calls == ["get_item", "update_item"]
    assert desk.other.read(SPEC).holds == {}


def test_a_return_of_nothing_is_not_written(desk: Desk) -> None:
    """No amount, no holder."""
    desk.take()
    desk.line.calls.clear()
    desk.ledger.give_back(SPEC, Want(requests=0), now_us=NOW_US)
    assert desk.line.calls == []


def test_a_removed_row_is_an_empty_account(desk: Desk) -> None:
    """A start is promised and a permit given as on the first day."""
    desk.take()
    desk.ledger.reserve(SPEC, MINUTE, not_before_us=NOW_US)
    key = {table.PK: {"S": table.budget_pk(SPEC.name)}, table.SK: {"S": table.BUDGET_SK}}
    desk.raw.delete_item(TableName=desk.where, Key=key)
    assert desk.ledger.reserve(SPEC, SECOND, not_before_us=NOW_US) == NOW_US
    desk.raw.delete_item(TableName=desk.where, Key=key)
    assert isinstance(desk.take(), Taken)


def test_a_row_that_cannot_be_read_is_told_and_left(desk: Desk) -> None:
    """Nothing is granted from it."""
    item = {**budget_item(SPEC.name, Budget()), "day": {"S": "monday"}, "version": {"N": "7"}}
    desk.raw.put_item(TableName=desk.where, Item=item)
    with pytest.raises(UnreadableRow):
        desk.ledger.read(SPEC)
    with pytest.raises(UnreadableRow):
        desk.take()
    assert desk.raw.get_item(TableName=desk.where, Key={name: item[name] for name in ("pk", "sk")})["Item"] == item
