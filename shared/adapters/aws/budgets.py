"""Vendor accounts on the ledger table: one row each, one conditional write a step, two at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.adapters.attributes import Item
from shared.adapters.aws import budget_writes
from shared.adapters.aws.budget_writes import Write
from shared.adapters.aws.errors import ConditionFalse, ask, write_if
from shared.adapters.budget_rows import USUAL, budget_from_item, budget_item, budget_key
from shared.adapters.meter import UNMETERED, Meter
from shared.core import rate
from shared.core.account import AccountSpec
from shared.core.budget import Budget, Refusal, Taken, Terms, Want
from shared.core.rate import Arrivals

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "budgets"
WRITES = 2
"""A step that two writes cannot make is refused, not tried a third time."""
CONTENDED = "contended"
"""The limit of a refusal for which there is room, but others were faster twice."""


class DynamoDbBudgetLedger:
    """`BudgetLedger` on DynamoDB.

    Each account as this environment last saw it chooses the branches of the next write; the write's conditions judge.
    The client must ask once only (`client("dynamodb", tries=1)`): a return whose reply was lost, sent again by the
    SDK, would give back twice.
    """

    def __init__(self, *, client: DynamoDBClient, table_name: str, meter: Meter = UNMETERED) -> None:
        self._client, self._table, self._meter = client, table_name, meter
        self._seen: dict[str, Budget] = {}

    def read(self, spec: AccountSpec) -> Budget:
        """The account as it stands now. Raises Unavailable and UnreadableRow."""
        answer = ask(
            PORT,
            lambda: self._client.get_item(TableName=self._table, Key=budget_key(spec.name), ConsistentRead=True),
        )
        item = answer.get("Item")
        self._meter.read(PORT, "read", [item], consistent=True)
        return self._saw(spec, item)

    def take(
        self,
        spec: AccountSpec,
        want: Want,
        *,
        least: Want,
        now_us: int,
        hold: str = "",
        hold_s: float = 0,
        told_us: Arrivals | None = None,
        ahead_us: int = 0,
        used_tokens: int = 0,
    ) -> Taken | Refusal:
        """Take `want`, or the most that fits down to `least`, as far as the last look tells; or say why not.

        A refusal is computed from the row that refused the write, so it is exact. Where the terms themselves refuse,
        no write could be granted: they are read again, at a fifth of a write's price.
        """
        seen = self._seen.get(spec.name, Budget())
        by_terms = _refused_by_terms(spec, seen, least, now_us)
        if by_terms:
            seen = self.read(spec)

        def by_law(seen: Budget) -> Taken | Refusal:
            return rate.take_most(
                spec, seen, want, least, now_us, hold=hold, hold_s=hold_s, told_us=told_us, ahead_us=ahead_us
            )

        law = by_law(seen)
        if by_terms and isinstance(law, Refusal):
            return law
        some = law.want if isinstance(law, Taken) else _worth_a_try(spec, seen, want, least, now_us)
        for _ in range(WRITES):
            write = budget_writes.take(
                spec,
                seen,
                some,
                now_us,
                hold=hold,
                hold_s=hold_s,
                told_us=told_us,
                ahead_us=ahead_us,
            )
            if used_tokens:
                write.put(USUAL, ":usual", usual=rate.usual_after(seen, used_tokens))
            found = self._update("take", spec, write)
            if not isinstance(found, ConditionFalse):
                return Taken(want=some, budget=found, at_us=rate.moment_of(spec, found, some, now_us))
            seen = self._saw(spec, found.item)
            law = by_law(seen)
            if isinstance(law, Refusal):
                return law
            some = law.want
        return Refusal(limit=CONTENDED, deficit=0, retry_us=now_us, budget=seen)

    def give_back(self, spec: AccountSpec, want: Want, *, now_us: int, hold: str = "") -> None:
        """Return what was not used. One who loses two races returns nothing: permits are void in two seconds, what
        is held is free when its time is over."""
        seen = self._seen[spec.name] if spec.name in self._seen else self.read(spec)
        for _ in range(WRITES):
            write = budget_writes.give_back(spec, seen, want, now_us, hold=hold)
            if not write.update:
                return
            found = self._update("give_back", spec, write)
            if not isinstance(found, ConditionFalse):
                return
            seen = self._saw(spec, found.item)

    def reserve(self, spec: AccountSpec, span_us: int, *, not_before_us: int, backlog_us: int = 0) -> int:
        """Promise a start behind every earlier promise. The line only grows, so the second write cannot be refused."""
        seen = self._seen.get(spec.name, Budget())
        for _ in range(WRITES):
            found = self._update("reserve", spec, budget_writes.reserve(seen, span_us, not_before_us, backlog_us))
            if not isinstance(found, ConditionFalse):
                return found.line_us - span_us
            seen = self._saw(spec, found.item)
        # Only where the row was removed in between: a start that others may have too is no harm, only a crowd.
        return max(seen.line_us, not_before_us)

    def change(self, spec: AccountSpec, seen: Terms, after: Terms) -> Budget:
        """Write the terms if nobody has changed them since."""
        found = self._update("change", spec, budget_writes.change(seen, after))
        return self._saw(spec, found.item) if isinstance(found, ConditionFalse) else found

    def reset(self, spec: AccountSpec, terms: Terms) -> Budget:
        """Begin the account anew, whatever stands there."""
        item = budget_item(spec.name, Budget(terms=terms))
        ask(PORT, lambda: self._client.put_item(TableName=self._table, Item=item))
        self._meter.write(PORT, "reset", old=None, new=item)
        return self._saw(spec, item)

    def _update(self, operation: str, spec: AccountSpec, write: Write) -> Budget | ConditionFalse:
        """One conditional update; the account after it."""
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=budget_key(spec.name),
                UpdateExpression=write.update,
                ConditionExpression=write.condition,
                ExpressionAttributeNames=write.names,
                **({"ExpressionAttributeValues": write.values} if write.values else {}),  # type: ignore[arg-type]
                ReturnValues="ALL_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, operation, old=answer.item)
            return answer
        item: Item = answer.get("Attributes", {})
        self._meter.write(PORT, operation, old=None, new=item)
        return self._saw(spec, item)

    def _saw(self, spec: AccountSpec, item: Item | None) -> Budget:
        budget = budget_from_item(spec.name, item)
        self._seen[spec.name] = budget
        return budget


def _refused_by_terms(spec: AccountSpec, seen: Budget, least: Want, now_us: int) -> bool:
    """True where no write can be granted under these terms: shut, quiet, or a request that never fits."""
    terms = seen.terms
    if terms.shut is not None or terms.quiet_until_us > now_us:
        return True
    return rate.too_large(spec, seen, least, now_us) is not None


def _worth_a_try(spec: AccountSpec, seen: Budget, want: Want, least: Want, now_us: int) -> Want:
    """What to ask for where the last look leaves no room: somebody may have returned something since."""
    return want if rate.too_large(spec, seen, want, now_us) is None else least
