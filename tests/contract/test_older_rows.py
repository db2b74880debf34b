"""Rows from before a field existed run to their end on every adapter, and so do ours without what we added."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from shared.adapters import rows
from shared.adapters.attributes import Item
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.adapters.memory.vendor import MemoryVendor
from shared.contract import envelope, table
from shared.core import feedback, lifecycle
from shared.core.account import AccountSpec, Limit
from shared.core.effects import EffectState
from shared.core.job import Category, Job, Status
from shared.core.ports import Claimed, Delivery, NotClaimed
from shared.core.rate import Taken, Want, us_of
from shared.usecases.admit import admit
from shared.usecases.audit import Auditor
from shared.usecases.budgets import Budgets
from shared.usecases.deadline import Deadline
from shared.usecases.dispatch import dispatch
from shared.usecases.run_attempt import Answer, Worker, run_attempt
from shared.usecases.switchboard import SwitchBoard
from shared.usecases.view import CACHED_S, Viewer
from tests.builders import NOW, a_job, an_account, an_effect_row
from tests.contract.worlds import LANES, World
from tests.vendors_and_tasks import TASKS, VendorKind, a_vendor

LANE = LANES["support"]
HOUR = timedelta(hours=1)
NEEDED = {"pk", "status", "lane", "tenant", "task", "key", "created_at", "updated_at"}
"""What every version has written; all else has a meaning when it is absent."""


class Engine:
    """The use cases of one lane on a world's stores; with `account` the lane spends it."""

    def __init__(self, world: World, account: AccountSpec | None = None) -> None:
        self.world, self.clock, self.telemetry = world, VirtualClock(), MemoryTelemetry()
        self.vendor: MemoryVendor = a_vendor(VendorKind.NEITHER, self.clock)
        self.board = SwitchBoard(control=world.control, clock=self.clock)
        accounts = {} if account is None else {account.name: account}
        self.lane = replace(LANE, accounts=tuple(accounts))
        self.viewer = Viewer(
            lanes={**LANES, LANE.name: self.lane},
            board=self.board,
            control=world.control,
            queues=world.queues,
            clock=self.clock,
            accounts=accounts,
            budgets=world.budgets,
        )
        self.budgets = Budgets.of(
            accounts.values(),
            ledger=world.other_budgets(),
            clock=self.clock,
            telemetry=self.telemetry,
            owner="w",
            chance=lambda: 0.5,
        )

    def consume(self, job: Job) -> None:
        """What the stream consumer does with the row."""
        admit(
            [job],
            jobs=self.world.jobs,
            queues=self.world.queues,
            dead_letters=self.world.dead_letters,
            viewer=self.viewer,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def dispatch(self) -> int:
        return dispatch(
            self.lane,
            look_ahead_s=0,
            limit=10,
            stop_at=self.clock.now() + HOUR,
            jobs=self.world.jobs,
            queues=self.world.queues,
            viewer=self.viewer,
            clock=self.clock,
            telemetry=self.telemetry,
        ).sent

    def audit(self) -> list[str]:
        report = Auditor(
            lanes=LANES,
            jobs=self.world.jobs,
            effects=self.world.effects,
            queues=self.world.queues,
            dead_letters=self.world.dead_letters,
            clock=self.clock,
            telemetry=self.telemetry,
        ).run(repair=True)
        return [finding.fault.name for finding in report.findings if finding.repaired]

    def work(self) -> list[Answer]:
        """Every message that stands in the queue, to a worker."""
        worker = Worker(
            lane=self.lane,
            tasks=TASKS,
            jobs=self.world.jobs,
            effects=self.world.effects,
            content=self.world.content,
            vendors={self.vendor.name: self.vendor},
            board=self.board,
            clock=self.clock,
            telemetry=self.telemetry,
            budgets=self.budgets,
        )
        answers = []
        for number, message in enumerate(self.world.sent(LANE.name)):
            ticket = envelope.decode_ticket(message.body)
            delivery = Delivery(
                message_id=f"m{number}", job_id=ticket.job_id, lane=ticket.lane, receive_count=1, body=message.body
            )
            deadline = Deadline(at=self.clock.now() + timedelta(seconds=16), clock=self.clock)
            answers.append(run_attempt(delivery, worker, by=f"w/{number}", deadline=deadline))
        return answers


def stored(world: World, job: Job) -> Job:
    found = world.jobs.get(job.job_id)
    assert found is not None
    return found


def older(job: Job, **changed: Any) -> Item:
    """The row an older system would have written: only what every version has, and what is given."""
    item = {name: value for name, value in rows.job_item(job).items() if name in NEEDED}
    return item | {name: {"S": value} if isinstance(value, str) else value for name, value in changed.items()}


OLDER: dict[str, dict[str, Any]] = {
    "nothing but what every version has": {},
    "pending": {"status": "pending"},
    "pending, its time has come": {"status": "pending", "scheduled_at": "2025-12-31T23:59:00.000Z"},
    "a time without milliseconds": {"status": "pending", "scheduled_at": "2025-12-31T23:59:00Z"},
    "a time in another zone": {"status": "pending", "scheduled_at": "2026-01-01T00:59:00+01:00"},
    "tried before": {"status": "pending", "attempts": {"N": "1"}, "error_message": "Rate limit exceeded"},
}


@pytest.mark.req("X8")
@pytest.mark.parametrize("account", [None, an_account()], ids=["no account", "an account"])
@pytest.mark.parametrize("changed", OLDER.values(), ids=OLDER)
def test_a_row_from_before_the_fields_existed_runs_to_its_end(
    world: World, changed: dict[str, Any], account: AccountSpec | None
) -> None:
    """Found by the audit, sent, claimed, its effect made once, settled; its attempts are still counted. In a lane with
    an account it takes its permit like any other."""
    engine = Engine(world, account)
    job = a_job()
    world.plant("jobs", older(job, **changed))
    engine.clock.advance(2 * 3600)
    assert engine.audit() == ["NO_MESSAGE"]
    # A time in another zone is no text that can be compared: held once, it is written in ours.
    for _ in range(2):
        engine.work()
        engine.dispatch()
    after = stored(world, job)
    assert (after.status, after.fence, len(engine.vendor.accepts)) == (Status.COMPLETED, 1, 1)
    assert after.attempt_count == int(changed.get("attempts", {"N": "0"})["N"])
    row = world.row("jobs", table.job_pk(job.job_id))
    assert row is not None
    assert not set(rows.FIELD_ALIASES.values()) & set(row)
    assert row["status"] == {"S": "completed"}
    if account is not None:
        assert world.budgets.read(account).arrival_us[Limit.REQUESTS] > us_of(NOW)


@pytest.mark.req("X8")
def test_an_older_row_with_a_future_time_waits_for_it(world: World) -> None:
    """It enters the index in our words, and is sent when its time has come, not before."""
    engine = Engine(world)
    job = a_job()
    at = NOW + HOUR
    world.plant("jobs", older(job, status="pending", scheduled_at="2026-01-01T01:00:00.000Z"))
    engine.consume(stored(world, job))
    assert (engine.dispatch(), stored(world, job).due, stored(world, job).not_before_at) == (0, at, at)
    engine.clock.advance_to(at)
    assert engine.dispatch() == 1
    assert engine.work() == [Answer.ACKNOWLEDGE]
    assert stored(world, job).status is Status.COMPLETED


def spend(world: World, account: AccountSpec, now: datetime) -> None:
    """Others have spent the account for a minute and a half."""
    whole, ahead = Want(requests=account.requests_per_minute or 1), timedelta(seconds=30)
    assert isinstance(world.budgets.take(account, whole, least=whole, now_us=us_of(now + ahead)), Taken)


@pytest.mark.req("X8")
def test_an_older_row_waits_for_its_account_and_then_runs(world: World) -> None:
    """It knows nothing of tokens and turns: a spent account holds it with its reason, and lets it go in its time."""
    account = an_account()
    engine = Engine(world, account)
    job = a_job()
    world.plant("jobs", older(job, status="pending"))
    spend(world, account, engine.clock.now())
    engine.consume(stored(world, job))
    held = stored(world, job)
    assert (held.status, held.blocked_by, held.attempt_count) == (Status.QUEUED, "budget:desk_account", 0)
    assert (engine.dispatch(), engine.work()) == (0, [])
    engine.clock.advance(90)
    assert engine.dispatch() == 1
    assert engine.work() == [Answer.ACKNOWLEDGE]
    assert (stored(world, job).status, stored(world, job).attempt_count) == (Status.COMPLETED, 0)


# --------------------------------------------------------------------------------------------------- the flag
def flagged(world: World, account: AccountSpec, now: datetime, *, enforced: bool) -> None:
    """An operator's word, without a deploy."""
    terms = world.budgets.read(account).terms
    world.budgets.change(account, terms, feedback.changed(terms, us_of(now), enforced=enforced))


def ended(world: World, engine: Engine, job: Job) -> Status:
    """How a job stands after admission, a dispatcher run and a worker had it."""
    world.jobs.put(job)
    engine.consume(job)
    engine.dispatch()
    engine.work()
    return stored(world, job).status


@pytest.mark.req("X8")
def test_the_flag_in_the_configuration_turns_the_gate_off_and_on(world: World) -> None:
    """`enforced: false` and a deploy: a spent account holds nobody, at admission or at the worker; and back."""
    account = an_account()
    spend(world, account, NOW)
    seen = [
        ended(world, Engine(world, replace(account, enforced=enforced)), a_job(key=f"{number}"))
        for number, enforced in enumerate((True, False, True))
    ]
    assert seen == [Status.QUEUED, Status.COMPLETED, Status.QUEUED]


@pytest.mark.req("X8")
def test_the_flag_set_live_turns_the_gate_off_and_on(world: World) -> None:
    """`penstock budget set --enforced`: felt by admission and by workers that run already, both ways."""
    account = an_account()
    engine = Engine(world, account)
    spend(world, account, engine.clock.now())
    assert ended(world, engine, a_job(key="held")) is Status.QUEUED
    flagged(world, account, engine.clock.now(), enforced=False)
    engine.clock.advance(CACHED_S)
    assert ended(world, engine, a_job(key="passes")) is Status.COMPLETED
    # The one that was held goes with it.
    assert stored(world, a_job(key="held")).status is Status.COMPLETED
    flagged(world, account, engine.clock.now(), enforced=True)
    engine.clock.advance(CACHED_S)
    assert ended(world, engine, a_job(key="waits")) is Status.QUEUED


@pytest.mark.req("X8")
def test_an_older_row_whose_worker_died_is_recovered(world: World) -> None:
    """`running`, with no word of when and by whom it was claimed: its last change counts as the claim."""
    engine = Engine(world)
    job = a_job()
    world.plant("jobs", older(job, status="running", attempts={"N": "1"}))
    engine.clock.advance(600)
    assert engine.audit() == ["DEAD_CLAIM"]
    assert (stored(world, job).attempt_count, stored(world, job).fence) == (2, 1)
    assert engine.dispatch() == 1
    assert engine.work() == [Answer.ACKNOWLEDGE]
    assert stored(world, job).status is Status.COMPLETED


# ----------------------------------------------------------------------------------------------- effects
ADDED_TO_EFFECTS = ("fingerprint", "customer_visible", "taken_over", "also_accepted")


@pytest.mark.fault("A19")
@pytest.mark.parametrize("state", list(EffectState))
def test_an_effect_of_before_is_of_its_vendor_and_seen(world: World, state: EffectState) -> None:
    """It does not say what it was, who saw it or how it came to be held: its name and vendor count, a customer saw it,
    it was begun, and it was accepted once. Accepted it is not sent again, open it is parked, refused it is made."""
    engine = Engine(world)
    job = a_job()
    times = {"first_intent_at": NOW - HOUR, "intent_at": NOW - HOUR}
    row = an_effect_row(job_id=job.job_id, state=state, vendor_id="v-1" if state == "accepted" else None, **times)
    item = {name: value for name, value in rows.effect_item(row).items() if name not in ADDED_TO_EFFECTS}
    world.plant("effects", item)
    (read,) = world.effects.of_job(job.job_id)
    assert (read.fingerprint, read.customer_visible, read.taken_over, read.also_accepted) == ("", True, False, ())
    world.jobs.put(job)
    engine.consume(stored(world, job))
    engine.work()
    after, sent = stored(world, job), len(engine.vendor.accepts)
    wanted = {
        EffectState.ACCEPTED: ("already_done", None, 0),
        EffectState.INTENT: (None, Category.OUTCOME_UNKNOWN, 0),
        EffectState.REFUSED: ("replied", None, 1),
    }
    assert (after.result, after.category, sent) == wanted[state]


@pytest.mark.fault("A19")
def test_an_effect_of_before_at_another_vendor_is_not_sent(world: World) -> None:
    """The vendor is what an older row says: another one under the same name is another effect."""
    engine = Engine(world)
    job = a_job()
    item = rows.effect_item(an_effect_row(job_id=job.job_id, vendor="mailer", state=EffectState.REFUSED))
    world.plant("effects", {name: value for name, value in item.items() if name not in ADDED_TO_EFFECTS})
    world.jobs.put(job)
    engine.consume(stored(world, job))
    engine.work()
    assert (stored(world, job).category, engine.vendor.requests) == (Category.MALFORMED, 0)


# ----------------------------------------------------------------------------------------------- failed jobs
def as_an_older_version_reads(job: Job) -> Job:
    """One that takes every key for a time at which something is due."""
    return replace(job, due=job.updated_at, place_as_read=None)


def unlisted(job: Job) -> Item:
    """A failed job as a version without the list of failed jobs writes it."""
    return {name: value for name, value in rows.job_item(job).items() if name not in ("wpk", "wsk")}


@pytest.mark.req("X8")
def test_older_failed_rows_enter_the_list_by_the_auditor(world: World) -> None:
    """Once; that is no finding, and costs no second letter."""
    engine = Engine(world)
    jobs = [a_job(key=f"{n}", status=Status.FAILED) for n in range(3)]
    for job in jobs:
        world.plant("jobs", unlisted(job))
        engine.consume(job)
    engine.clock.advance(3600)
    assert world.jobs.failed(LANE, before=engine.clock.now(), limit=10) == []
    assert engine.audit() == []
    listed = world.jobs.failed(LANE, before=engine.clock.now(), limit=10)
    assert {(entry.job_id, entry.due) for entry in listed} == {(job.job_id, job.updated_at) for job in jobs}
    assert [stored(world, job) for job in jobs] == jobs
    before = world.meter.total().write_units
    engine.clock.advance(3600)
    assert engine.audit() == []
    assert world.meter.total().write_units == before
    assert world.dead_letters.depth(LANE.name).total == 3


@pytest.mark.req("X8")
@pytest.mark.parametrize("out", ["replayed", "dismissed", "accepted after all", "letter"])
def test_an_older_version_takes_our_failed_rows_out_of_the_list(world: World, out: str) -> None:
    """The way back: to such a version the key is a time, and the row a failed one. It sends none of them; whatever it
    does with one leaves the list, and nothing of it stays behind. What it fails itself enters when we are back."""
    engine = Engine(world)
    job = a_job(status=Status.FAILED)
    world.jobs.put(job)
    engine.clock.advance(3600)
    now = engine.clock.now()
    assert (engine.dispatch(), engine.work()) == (0, [])
    read = as_an_older_version_reads(job)
    after = {
        "replayed": lifecycle.replayed(read, "p", now),
        "dismissed": lifecycle.canceled(read, LANE, "ops", now),
        "accepted after all": lifecycle.completed_by_evidence(read, LANE, now, "done", None),
        "letter": lifecycle.letter_taken(read, now),
    }[out]
    world.jobs.move(read, after)
    assert world.jobs.failed(LANE, before=now, limit=10) == []
    assert stored(world, job) == rows.stored(after)
    assert (engine.dispatch(), engine.work()) == (0, [])
    if out == "replayed":
        engine.consume(stored(world, job))
        assert engine.work() == [Answer.ACKNOWLEDGE]
        assert (stored(world, job).status, len(engine.vendor.accepts)) == (Status.COMPLETED, 1)


# ------------------------------------------------------------------------------------------- the way back
@pytest.mark.req("X8")
def test_our_rows_without_our_fields_run_at_once(world: World) -> None:
    """The way back: whoever does not know our fields, or drops them, runs a deferred job now, and never twice.

    That is what dropping the column did in the system before, and all that it did.
    """
    engine = Engine(world)
    job = a_job(not_before_at=NOW + HOUR, due=NOW + HOUR, blocked_by="vendor:helpdesk:429", attempt_count=1)
    world.jobs.put(job)
    row = world.row("jobs", table.job_pk(job.job_id))
    assert row is not None
    dropped = {name: value for name, value in row.items() if name in NEEDED}
    world.plant("jobs", dropped)
    assert lifecycle.is_due(stored(world, job), NOW)
    engine.consume(stored(world, job))
    assert engine.work() == [Answer.ACKNOWLEDGE]
    assert (stored(world, job).status, len(engine.vendor.accepts)) == (Status.COMPLETED, 1)
    # And forward again: even the row as it was before finds the effect standing.
    world.plant("jobs", row)
    engine.clock.advance_to(NOW + HOUR)
    assert engine.dispatch() == 1
    engine.work()
    assert (stored(world, job).result, len(engine.vendor.accepts)) == ("already_done", 1)


@pytest.mark.req("X8")
def test_a_row_that_lost_what_its_account_promised_runs_like_any_other(world: World) -> None:
    """Deferred by an account, then rolled back and forward: turn and estimates are gone, and nothing else."""
    account = an_account()
    engine = Engine(world, account)
    at = NOW + HOUR
    job = a_job(
        not_before_at=at,
        due=at,
        permit_at=at,
        blocked_by="budget:desk_account",
        estimated_tokens=9_000,
        estimated_requests=3,
    )
    world.jobs.put(job)
    row = world.row("jobs", table.job_pk(job.job_id))
    assert row is not None
    added = {"permit_at", "estimated_tokens", "estimated_requests"}
    assert added < set(row)
    world.plant("jobs", {name: value for name, value in row.items() if name not in added})
    assert engine.dispatch() == 0
    engine.clock.advance_to(at)
    assert engine.dispatch() == 1
    assert engine.work() == [Answer.ACKNOWLEDGE]
    assert (stored(world, job).status, len(engine.vendor.accepts)) == (Status.COMPLETED, 1)


@pytest.mark.req("X8")
@pytest.mark.parametrize(("ours_s", "theirs_s"), [(60, -60), (-60, 60)])
def test_where_both_names_stand_ours_counts(world: World, ours_s: int, theirs_s: int) -> None:
    """Old code that came back may have written its own name beside ours: one of the two counts, everywhere the same."""
    ours, theirs = (NOW + timedelta(seconds=s) for s in (ours_s, theirs_s))
    job = a_job(not_before_at=ours)
    other = rows.job_item(replace(job, not_before_at=theirs))["not_before_at"]
    world.plant("jobs", {**rows.job_item(job), "scheduled_at": other})
    assert stored(world, job).not_before_at == ours
    answer = world.jobs.claim(job.job_id, by="w/1", now=NOW)
    assert isinstance(answer, NotClaimed if ours > NOW else Claimed)
