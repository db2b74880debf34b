"""The jobs table. Every write is one conditional call; the index only nominates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from shared.adapters import attributes, rows
from shared.adapters.attributes import Item
from shared.adapters.aws import conditions
from shared.adapters.aws.errors import ConditionFalse, ask, code_of, write_if
from shared.adapters.aws.pages import pages
from shared.adapters.meter import UNMETERED, Meter
from shared.contract import names, table
from shared.core import moment
from shared.core.errors import BadInput, RowMoved, Unavailable, UnknownLane, UnreadableRow
from shared.core.job import PRIORITIES, Job, Move, Status
from shared.core.lane import LaneSpec
from shared.core.lifecycle import DUE_SLACK_S
from shared.core.ports import Claimed, NotClaimed, WaitingEntry
from shared.core.run import FAR_AHEAD

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORT = "jobs"

_CLAIMED = (
    "SET #status = :processing, #claimed_at = :now, #updated_at = :now, #claimed_by = :by,"
    " #fence = if_not_exists(#fence, :zero) + :one,"
    " #moves = list_append(if_not_exists(#moves, :none), :claim)"
)
CLAIM = f"{_CLAIMED} REMOVE #wpk, #wsk, #blocked_by, #route"
CLAIM_IN_RUN = f"{_CLAIMED}, #wpk = :wpk, #wsk = :wsk REMOVE #blocked_by, #route"
CLAIM_CONDITION = conditions.all_of(conditions.STILL_QUEUED, conditions.DUE)
CLAIM_NAMES = conditions.names(
    (
        *("status", "claimed_at", "updated_at", "claimed_by", "fence", "moves", "wpk", "wsk", "blocked_by", "route"),
        *("not_before_at", "scheduled_at"),
    )
)


class DynamoDbJobStore:
    """`JobStore` on DynamoDB."""

    def __init__(
        self,
        *,
        client: DynamoDBClient,
        table_name: str,
        lanes: Mapping[str, LaneSpec],
        meter: Meter = UNMETERED,
    ) -> None:
        self._client, self._table, self._lanes, self._meter = client, table_name, lanes, meter

    def put(self, job: Job) -> Job | None:
        """Write a new job. None: written (or this very write was applied before). A job: it exists already."""
        item = self._item(job)
        answer = write_if(
            PORT,
            lambda: self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=conditions.NO_ROW_YET,
                ExpressionAttributeNames=conditions.names([table.PK]),
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if not isinstance(answer, ConditionFalse):
            self._meter.write(PORT, "put", old=None, new=item)
            return None
        self._meter.refused(PORT, "put", old=answer.item)
        existing = _found(answer)
        if existing is None:
            # The row that was in the way expired in this very moment.
            raise Unavailable(PORT, "row_went_away")
        # Ours to the last field: an earlier try was applied and its reply lost. Once a worker has claimed it,
        # it is a job that exists, which is just as true.
        return None if self._item_before(existing) == item else existing

    def get(self, job_id: str) -> Job | None:
        """The row as it stands now (a consistent read). Raises UnreadableRow."""
        answer = ask(
            PORT,
            lambda: self._client.get_item(TableName=self._table, Key=_key(job_id), ConsistentRead=True),
        )
        item = answer.get("Item")
        self._meter.read(PORT, "get", [item], consistent=True)
        return None if item is None else rows.job_from_item(item)

    def claim(self, job_id: str, *, by: str, now: datetime) -> Claimed | NotClaimed:
        """Take a queued, due job: one write, no read. Asking again with the same `by` is safe."""
        return self._claim(job_id, by, now)

    def _claim(
        self, job_id: str, by: str, now: datetime, *, run: tuple[str, str] | None = None, early: bool = False
    ) -> Claimed | NotClaimed:
        try:
            answer = write_if(
                PORT,
                lambda: self._client.update_item(
                    TableName=self._table,
                    Key=_key(job_id),
                    UpdateExpression=CLAIM if run is None else CLAIM_IN_RUN,
                    ConditionExpression=CLAIM_CONDITION,
                    ExpressionAttributeNames=CLAIM_NAMES,
                    ExpressionAttributeValues=_claim_values(by, now, run, early=early),
                    # The row before says whether it stood in the index; what the claim makes of it is known.
                    ReturnValues="ALL_OLD",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                ),
            )
        except ClientError as error:
            if code_of(error) == "ValidationException":
                # An attribute of another type than ours: `get` raises UnreadableRow and names it.
                self.get(job_id)
            raise
        if isinstance(answer, ConditionFalse):
            self._meter.refused(PORT, "claim", old=answer.item)
            job = _found(answer)
            if job is not None and job.status is Status.PROCESSING and job.claimed_by == by:
                return Claimed(job=job)
            return NotClaimed(job=job)
        before = answer["Attributes"]
        after = rows.claimed_item(before, by=by, now=now, run=run)
        self._meter.write(PORT, "claim", old=before, new=after)
        return Claimed(job=rows.job_from_item(after))

    def claim_in_run(
        self, lane: LaneSpec, entry: WaitingEntry, *, by: str, now: datetime, early: bool = False
    ) -> Claimed | NotClaimed:
        """As `claim`, and the job stands among the claims of runs. `early`: also before its time."""
        return self._claim(entry.job_id, by, now, run=rows.run_place(lane, entry, now), early=early)

    def move(self, before: Job, after: Job) -> None:
        """Write what differs, if the row still has `before`'s status, fence and place in the index."""
        wanted = self._item(after)
        update, condition, marks, values = _move_expression(before, self._item_before(before), wanted)
        answer = write_if(
            PORT,
            lambda: self._client.update_item(
                TableName=self._table,
                Key=_key(before.job_id),
                UpdateExpression=update,
                ConditionExpression=condition,
                ExpressionAttributeNames=marks,
                ExpressionAttributeValues=values,
                ReturnValues="ALL_OLD" if self._meter.counts else "NONE",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            ),
        )
        if not isinstance(answer, ConditionFalse):
            self._meter.write(PORT, "move", old=answer.get("Attributes"), new=wanted)
            return
        self._meter.refused(PORT, "move", old=answer.item)
        current = _found(answer)
        # Equal to the last field: this very move was applied before, and its reply lost.
        if current is None or self._item_before(current) != wanted:
            raise RowMoved(before.job_id, current)

    def waiting(
        self,
        lane: LaneSpec,
        *,
        due_before: datetime,
        limit: int,
        due_after: datetime | None = None,
        line: str | None = None,
    ) -> list[WaitingEntry]:
        """What the index nominates: each priority's entries oldest due first, at most `limit` of each."""
        if lane.admission == "fair":
            raise BadInput(f"lanes.{lane.name}.admission", "is fair: its waiting jobs are found by its ring")
        nominated: list[WaitingEntry] = []
        for priority in PRIORITIES:
            shards = [
                self._partition("waiting", table.ordered_wpk(name, shard, priority), due_before, limit, due_after)
                for name in (lane.lines if line is None else (line,))
                for shard in range(lane.shards)
            ]
            nominated += islice(merge(*shards, key=lambda entry: (entry.due, entry.created, entry.job_id)), limit)
        return nominated

    def claimed_by_runs(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Jobs claimed by a scheduled run before `before`, oldest claim first."""
        return self._partition("claimed_by_runs", table.claimed_wpk(lane.name), before, limit)

    def letters_missing(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Failed jobs whose dead letter was moved without a plan before `before`, oldest first."""
        return self._partition("letters_missing", table.letters_wpk(lane.name), before, limit)

    def failed(self, lane: LaneSpec, *, before: datetime, limit: int) -> list[WaitingEntry]:
        """Failed jobs that ask for no letter, oldest failure first."""
        return self._partition("failed", table.failed_wpk(lane.name), before, limit)

    def scan(self, *, segment: int = 0, segments: int = 1) -> Iterator[Job | UnreadableRow]:
        """Every job of one segment; a row that cannot be read is given as its error."""
        for items in pages(
            PORT,
            lambda start: self._client.scan(TableName=self._table, Segment=segment, TotalSegments=segments, **start),
        ):
            self._meter.read(PORT, "scan", items, consistent=False)
            for item in filter(rows.is_job, items):
                try:
                    yield rows.job_from_item(item)
                except UnreadableRow as unreadable:
                    yield unreadable

    def _partition(
        self, operation: str, wpk: str, until: datetime, limit: int, since: datetime | None = None
    ) -> list[WaitingEntry]:
        first = table.FIRST_DUE if since is None else moment.iso(since)
        found: list[WaitingEntry] = []
        for items in pages(
            PORT,
            lambda start: self._client.query(
                TableName=self._table,
                IndexName=names.WAITING_INDEX,
                KeyConditionExpression="#wpk = :wpk AND #wsk BETWEEN :first AND :due",
                ExpressionAttributeNames=conditions.names([table.WAITING_PK, table.WAITING_SK]),
                ExpressionAttributeValues={
                    ":wpk": attributes.text(wpk),
                    ":first": attributes.text(first),
                    ":due": attributes.text(table.due_until(moment.iso(until))),
                },
                Limit=limit,
                **start,
            ),
        ):
            self._meter.read(PORT, operation, items, consistent=False)
            found += _readable(items)
            if len(found) >= limit:
                break
        return found[:limit]

    def _item(self, job: Job) -> Item:
        if not job.waits:
            return rows.job_item(job)
        lane = self._lanes.get(job.lane)
        if lane is None:
            raise UnknownLane(job.lane, tuple(sorted(self._lanes)))
        return rows.job_item(job, rows.lane_wpk(job, lane))

    def _item_before(self, job: Job) -> Item:
        # A job of a lane that is no longer configured can still leave the index.
        lane = self._lanes.get(job.lane)
        return rows.job_item(job, job.lane if lane is None else rows.lane_wpk(job, lane))


def _found(answer: ConditionFalse) -> Job | None:
    return None if answer.item is None else rows.job_from_item(answer.item)


def _key(job_id: str) -> Item:
    return {table.PK: attributes.text(table.job_pk(job_id))}


def _claim_values(by: str, now: datetime, run: tuple[str, str] | None, *, early: bool) -> Item:
    queued, pending = rows.spellings(Status.QUEUED)
    due_until = now + (FAR_AHEAD if early else timedelta(seconds=DUE_SLACK_S))
    place = {} if run is None else {":wpk": attributes.text(run[0]), ":wsk": attributes.text(run[1])}
    return {
        **place,
        ":queued": attributes.text(queued),
        ":pending": attributes.text(pending),
        ":processing": attributes.text(Status.PROCESSING.value),
        ":due_until": attributes.time(due_until),
        ":now": attributes.time(now),
        ":by": attributes.text(by),
        ":zero": attributes.whole(0),
        ":one": attributes.whole(1),
        ":none": {"L": []},
        ":claim": {"L": [rows.move_attribute(Move(at=now, to=Status.PROCESSING, reason="claim"))]},
    }


def _move_expression(before: Job, old: Item, new: Item) -> tuple[str, str, dict[str, str], Item]:
    """Update, condition, names and values of one move: only what differs is written.

    Always written: the status, the place of a waiting job (a lane's number of shards may have changed since),
    and fields that had another name once, whose older names are removed.
    """
    again = ("status", table.WAITING_PK, *rows.FIELD_ALIASES)
    sets = {name: value for name, value in new.items() if name in again or old.get(name) != value}
    gone = [*(name for name in old if name not in new), *rows.FIELD_ALIASES.values()]
    was = rows.spellings(before.status)
    values: Item = {f":new_{name}": value for name, value in sets.items()}
    values |= {
        ":was": attributes.text(was[0]),
        ":was_once": attributes.text(was[-1]),
        ":fence": attributes.whole(before.fence),
    }
    if (wsk := rows.job_wsk(before)) is not None:
        values[":wsk"] = attributes.text(wsk)
    condition = conditions.all_of(
        conditions.SAME_STATUS,
        conditions.SAME_FENCE if before.fence else conditions.NO_FENCE_YET,
        conditions.NOT_IN_LINE if wsk is None else conditions.SAME_PLACE_IN_LINE,
    )
    update = "SET " + ", ".join(f"#{name} = :new_{name}" for name in sets)
    update += " REMOVE " + ", ".join(f"#{name}" for name in gone)
    return update, condition, conditions.names({*sets, *gone, "fence", table.WAITING_SK}), values


def _readable(items: Iterable[Item]) -> Iterator[WaitingEntry]:
    for item in items:
        try:
            yield rows.waiting_entry(item)
        except UnreadableRow:
            # One strange key must not stop its lane, nor take the place of another; the audit reads the whole row
            # and reports it.
            continue
