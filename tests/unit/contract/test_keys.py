"""Keys of the tables and names of the resources: no two things share one."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared.contract import env, metrics, names, table
from shared.core import moment
from tests.unit.core.strategies import few, identifiers, moments
from tests.unit.core.strategies import names as words

STAGES = ("local", "dev", "stage", "prod")


@few
@given(due=moments, other=moments, created=moments, job=st.uuids())
def test_the_waiting_index_sorts_by_due_time(due: object, other: object, created: object, job: object) -> None:
    """Up to and including a moment means exactly the entries due by then."""
    key = table.waiting_sk(moment.iso(due), moment.iso(created), str(job))  # type: ignore[arg-type]
    assert table.due_from(key) == moment.iso(due)  # type: ignore[arg-type]
    assert (key <= table.due_until(moment.iso(other))) == (due <= other)  # type: ignore[arg-type,operator]


@few
@given(lane=words, tenant=identifiers, shard=st.integers(0, 63), priority=st.integers(0, 3), other=words)
def test_partitions_of_the_waiting_index_do_not_mix(
    lane: str, tenant: str, shard: int, priority: int, other: str
) -> None:
    """Ordered, fair, claimed and ring entries of any two lanes stand in partitions of their own."""
    assume(lane != other)
    mine = {
        table.ordered_wpk(lane, shard, priority),
        table.claimed_wpk(lane),
        table.letters_wpk(lane),
        table.ring_wpk(lane),
        table.fair_wpk(lane, f"t{tenant}", priority),
    }
    others = {
        table.ordered_wpk(other, shard, priority),
        table.claimed_wpk(other),
        table.letters_wpk(other),
        table.ring_wpk(other),
        table.fair_wpk(other, f"t{tenant}", priority),
    }
    assert len(mine) == 5
    assert not mine & others


@few
@given(job=st.uuids(), effect=words)
def test_keys_are_read_back(job: object, effect: str) -> None:
    """A job's key gives its id again, and an effect stands under its job."""
    assert table.job_id_from(table.job_pk(str(job))) == str(job)
    assert table.effect_sk(effect) != table.effect_sk(f"{effect}x")


def test_no_two_resources_of_a_stage_share_a_name() -> None:
    """A lane may be called like an engine function: its worker has a name of its own."""
    for stage in STAGES:
        lanes = ("support", "dispatcher", "stream", "jobs")
        functions = [names.function(stage, name) for name in names.ENGINE_FUNCTIONS]
        functions += [names.function(stage, names.worker(lane)) for lane in lanes]
        queues = [names.queue(stage, lane) for lane in lanes] + [names.dead_letter_queue(stage, x) for x in lanes]
        for kind in (functions, queues, [names.table(stage, name) for name in (*names.TABLES, names.CONTENT_TABLE)]):
            assert len(set(kind)) == len(kind)


def test_stages_share_nothing() -> None:
    """Every name carries its stage."""
    one = [names.table("dev", "jobs"), names.queue("dev", "a"), names.bucket("dev", "1", "r"), names.secret("dev", "a")]
    two = [
        names.table("prod", "jobs"),
        names.queue("prod", "a"),
        names.bucket("prod", "1", "r"),
        names.secret("prod", "a"),
    ]
    assert not set(one) & set(two)


def test_environment_names_are_ours_and_metrics_a_closed_list() -> None:
    """One prefix, no variable twice; every metric constant is in the list and none twice."""
    variables = [value for name, value in vars(env).items() if name.isupper() and isinstance(value, str)]
    assert all(re.fullmatch(r"PENSTOCK_[A-Z_]+", value) for value in variables)
    assert len(set(variables)) == len(variables)
    constants = {
        value
        for name, value in vars(metrics).items()
        if name.isupper()
        and isinstance(value, str)
        and name not in ("NAMESPACE", "LANE", "ALL_LANES", "STAGE", "NO_STAGE", "ACCOUNT")
    }
    assert constants == set(metrics.ALL)
    assert len(set(metrics.ALL)) == len(metrics.ALL)


@pytest.mark.fault("I2")
def test_variables_that_make_libraries_talk_are_listed() -> None:
    """Synth refuses these on every function."""
    assert "POWERTOOLS_LOGGER_LOG_EVENT" in env.FORBIDDEN
    assert "POWERTOOLS_DEBUG" in env.FORBIDDEN
