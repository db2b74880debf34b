"""`penstock redrive` and `penstock jobs resolve`: two people, sentences that say what to do, and a whole redrive."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ops.cli.redrive import native_desk
from ops.cli.stage import Caller, SilentTelemetry, Stage
from shared.core.errors import BadInput
from shared.core.job import Job, Status
from shared.core.plan import Ending
from shared.usecases.run_redrive import Redriver
from tests.builders import an_effect_row
from tests.unit.ops.cli.test_dlq import a_failed

CAUSE = ("--cause", "the token had expired; it was renewed")
Be = Callable[[str], Any]


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> Be:
    """Be somebody: who AWS says is asking."""

    @contextmanager
    def being(name: str) -> Iterator[None]:
        with monkeypatch.context() as patch:
            caller = Caller(account="123456789012", arn=f"arn:aws:iam::1:user/{name}", region="eu-central-1")
            patch.setattr(Stage, "caller", caller)
            yield

    return being


@pytest.fixture
def failed(deployed: Stage) -> list[Job]:
    """Three failed jobs."""
    return [a_failed(deployed, str(n)) for n in range(3)]


def planned(penstock: Any, somebody: Be, *options: str) -> str:
    """Ada's plan."""
    with somebody("ada"):
        return str(penstock("redrive", "plan", "support", *CAUSE, *options, "--json").document["plan"]["plan_id"])


def tick(stage: Stage) -> None:
    """One run of the executor with time for one look."""
    desk = Redriver(
        jobs=stage.jobs,
        plans=stage.plans,
        history=stage.history,
        queues=stage.queues,
        dead_letters=stage.dead_letters,
        viewer=stage.viewer(),
        clock=stage.clock,
        telemetry=SilentTelemetry(),
    )
    desk.run(stage.lane("support"), stop_at=stage.clock.now())


@pytest.mark.req("C9")
@pytest.mark.fault("J6")
def test_a_redrive_takes_two_people(penstock: Any, deployed: Stage, failed: list[Job], somebody: Be) -> None:
    """Ada plans and cannot approve; Bob approves; it starts, releases its canary, and can be watched and aborted."""
    plan_id = planned(penstock, somebody)
    with somebody("ada"):
        assert "somebody else must approve it" in penstock("redrive", "approve", plan_id, code=1).err
        assert "must be approved first" in penstock("redrive", "start", plan_id, code=1).err
    with somebody("bob"):
        assert f"penstock redrive start {plan_id}" in penstock("redrive", "approve", plan_id).out
        said = penstock("redrive", "start", plan_id)
    assert f"penstock redrive watch {plan_id}" in said.out
    assert "safe-mode on lane/support" in said.err
    tick(deployed)
    released = [job for job in failed if (row := deployed.jobs.get(job.job_id)) and row.status is Status.QUEUED]
    assert len(released) == 1
    watched = penstock("redrive", "watch", plan_id, "--json").document
    assert (watched["tried"], watched["under_way"], watched["ending"]) == (1, 1, None)
    assert "under way" in penstock("redrive", "watch", plan_id).out
    with somebody("cat"):
        assert "nothing more is released" in penstock("redrive", "abort", plan_id, "--why", "wrong").out
    tick(deployed)
    assert penstock("redrive", "watch", plan_id, "--json").document["ending"] == Ending.ABORTED
    (line,) = penstock("redrive", "list", "support", "--json").lines
    assert (line["plan"]["plan_id"], line["plan"]["approver"]) == (plan_id, "arn:aws:iam::1:user/bob")
    assert "aborted" in penstock("redrive", "list", "support").out
    assert "is over" in penstock("redrive", "abort", plan_id, "--why", "x", code=1).err


def test_a_plan_tells_what_it_costs(penstock: Any, failed: list[Job], somebody: Be) -> None:
    """Jobs, cost, time, hash and the command for the second person."""
    with somebody("ada"):
        said = penstock("redrive", "plan", "support", *CAUSE)
    for part in ("costs about", "takes at least", "hash", "good until", "penstock redrive approve"):
        assert part in said.out


def test_what_is_left_out_is_named(penstock: Any, deployed: Stage, failed: list[Job], somebody: Be) -> None:
    """An unknown outcome is not replayed; a plan of it alone is refused with what to do."""
    deployed.effects.intend(an_effect_row(job_id=failed[0].job_id))
    with somebody("ada"):
        assert f"left out: {failed[0].job_id}" in penstock("redrive", "plan", "support", *CAUSE).err
        alone = penstock("redrive", "plan", "support", *CAUSE, "--job", failed[0].job_id, code=1)
    assert "penstock jobs resolve" in alone.err


def test_bad_input(penstock: Any, deployed: Stage, failed: list[Job], somebody: Be) -> None:
    """An unknown plan, an empty cohort, no cause, a validity above a day: each refused with a sentence."""
    with somebody("ada"):
        for words in (("approve",), ("start",), ("watch",), ("abort", "--why", "x")):
            said = penstock("redrive", words[0], "nobody", *words[1:], code=1)
            assert "does not exist in this stage: see `penstock redrive list LANE`" in said.err
        empty = penstock("redrive", "plan", "support", *CAUSE, "--category", "poison", code=1)
        assert "penstock dlq list support" in empty.err
        assert "how it was put right" in penstock("redrive", "plan", "support", "--cause", "x", code=1).err
        assert "at most 24 hours" in penstock("redrive", "plan", "support", *CAUSE, "--valid", "2d", code=1).err
        penstock("redrive", "plan", "support", *CAUSE, "--job", failed[0].job_id, "--tenant", "x", code=2)
    assert "No redrive of lane mail" in penstock("redrive", "list", "mail").out


@pytest.mark.fault("F2")
def test_two_redrives_at_once_are_refused(penstock: Any, deployed: Stage, failed: list[Job], somebody: Be) -> None:
    """The second start names the first plan and how to abort it."""
    first, second = planned(penstock, somebody), planned(penstock, somebody)
    with somebody("bob"):
        for plan_id in (first, second):
            penstock("redrive", "approve", plan_id)
        penstock("redrive", "start", first)
        assert f"penstock redrive abort {first}" in penstock("redrive", "start", second, code=1).err


# ---------------------------------------------------------------------------------------------- resolve
@pytest.mark.req("C9")
@pytest.mark.fault("J6")
def test_an_unknown_outcome_is_resolved_by_two(penstock: Any, deployed: Stage, failed: list[Job], somebody: Be) -> None:
    """Ada requests, Bob confirms with the command she was given; the job is completed by evidence."""
    job_id = failed[0].job_id
    then = deployed.clock.now() - timedelta(hours=1)
    deployed.effects.intend(replace(an_effect_row(job_id=job_id), first_intent_at=then, intent_at=then))
    words = ("jobs", "resolve", job_id, "--accepted", "--evidence", "ticket/4711")
    with somebody("ada"):
        assert f"penstock {' '.join(words)} --confirm" in penstock(*words).out
        assert "somebody else must confirm it" in penstock(*words, "--confirm", code=1).err
    with somebody("bob"):
        assert "it is completed" in penstock(*words, "--confirm").out
    row = deployed.jobs.get(job_id)
    assert row is not None
    assert row.status is Status.COMPLETED
    penstock("jobs", "resolve", job_id, "--evidence", "x", code=2)


def test_not_sent_points_to_a_plan(penstock: Any, deployed: Stage, failed: list[Job], somebody: Be) -> None:
    """It stays failed, and the answer is the next command."""
    job_id = failed[0].job_id
    then = deployed.clock.now() - timedelta(hours=1)
    deployed.effects.intend(replace(an_effect_row(job_id=job_id), first_intent_at=then, intent_at=then))
    words = ("jobs", "resolve", job_id, "--not-sent", "--evidence", "case/12")
    with somebody("ada"):
        assert penstock(*words, "--json").document["resolution"]["finding"] == "not_sent"
    with somebody("bob"):
        assert f"penstock redrive plan support --job {job_id}" in penstock(*words, "--confirm").out
    with somebody("ada"):
        assert penstock("redrive", "plan", "support", *CAUSE, "--job", job_id, "--json").document["plan"]["count"] == 1


def test_of_several_open_effects_one_is_named(penstock: Any, deployed: Stage, failed: list[Job], somebody: Be) -> None:
    """Without a name it is refused with all of them; the command for the second person has the name, too."""
    job_id = failed[0].job_id
    then = deployed.clock.now() - timedelta(hours=1)
    for name in ("reply", "tag"):
        row = an_effect_row(job_id=job_id, name=name)
        deployed.effects.intend(replace(row, first_intent_at=then, intent_at=then))
    words = ("jobs", "resolve", job_id, "--accepted", "--evidence", "t/1")
    with somebody("ada"):
        assert "reply, tag open" in penstock(*words, code=1).err
        assert f"penstock {' '.join(words)} --effect tag --confirm" in penstock(*words, "--effect", "tag").out
    with somebody("bob"):
        assert "it stays failed" in penstock(*words, "--effect", "tag", "--confirm").out


@pytest.mark.req("C10")
@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ((), 1, "has no canary: replay one job with the error"),
        (("--tenant", "tenant-1"), 1, "leave the filters out"),
        (("--rate", "501"), 1, "must be 1 to 500"),
    ],
)
def test_a_native_plan_is_refused_with_what_to_do(
    penstock: Any, deployed: Stage, failed: list[Job], somebody: Be, options: tuple[str, ...], code: int, says: str
) -> None:
    """No canary yet, a choice beside it, a rate that SQS does not know."""
    with somebody("ada"):
        assert says in penstock("redrive", "plan", "support", *CAUSE, "--native", *options, code=code).err


def test_a_rate_is_for_native_plans(penstock: Any, deployed: Stage, failed: list[Job], somebody: Be) -> None:
    """The others are paced by what the lane has to spare."""
    with somebody("ada"):
        assert "--rate goes with --native" in penstock("redrive", "plan", "support", *CAUSE, "--rate", "5", code=2).err


def test_the_local_stage_has_no_move_tasks(deployed: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence that says so, instead of an error of the emulator's."""
    lane = deployed.lane("support")
    monkeypatch.setattr(deployed, "name", "local")
    with pytest.raises(BadInput, match="local stage, whose SQS has no move tasks: leave --native out"):
        native_desk(lane, deployed)
