"""The ladder of switches: the strictest counts, and each rung closes what the one below it closed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.switches import (
    CACHED_S,
    TRUSTED_S,
    Level,
    Standing,
    Switches,
    check_scope,
    level_of,
    scopes_of,
)
from tests.builders import a_job, a_switch
from tests.unit.core.strategies import few

JOB_SCOPES = ("all", "vendor/helpdesk", "lane/support", "task/support/reply", "tenant/support/tenant-1")
OTHER_SCOPES = ("vendor/openai", "lane/mail", "task/support/tag", "tenant/support/tenant-2", "tenant/mail/tenant-1")
settings_of = st.dictionaries(
    st.sampled_from(JOB_SCOPES + OTHER_SCOPES), st.tuples(st.sampled_from(Level), st.booleans())
)


def switches(setting: dict[str, tuple[Level, bool]]) -> Switches:
    entries = {
        scope: a_switch(scope, level, automation_enabled=automation) for scope, (level, automation) in setting.items()
    }
    return Switches(entries=entries)


@few
@given(setting=settings_of)
def test_the_strictest_of_the_jobs_own_scopes_counts(setting: dict[str, tuple[Level, bool]]) -> None:
    """No wider or narrower scope can soften another, and other lanes', tasks' and tenants' switches do not count."""
    standing = switches(setting).for_job(a_job(), ("helpdesk",))
    mine = {scope: values for scope, values in setting.items() if scope in JOB_SCOPES}
    strictest = max((level for level, _ in mine.values()), default=Level.NORMAL)
    assert standing.level is strictest
    if strictest is not Level.NORMAL:
        assert mine[standing.scope][0] is strictest
    unpaid = [scope for scope, (_, automation) in mine.items() if not automation]
    assert (standing.paid_calls_closed_by in unpaid) if unpaid else standing.paid_calls_closed_by is None


def closed(level: Level) -> set[str]:
    standing = Standing(level=level)
    what = ("withholds_effects", "closes_admission", "closes_claims", "closes_intent")
    return {name for name in what if getattr(standing, name)}


@pytest.mark.req("C2")
def test_each_rung_closes_one_thing_more() -> None:
    """From normal to halt nothing is opened again on the way up."""
    assert closed(Level.NORMAL) == set()
    for below, above in pairwise(Level):
        assert closed(below) < closed(above)
        assert len(closed(above) - closed(below)) == 1
    assert len({level.closes for level in Level}) == len(Level)


@pytest.mark.req("C2")
@given(level=st.sampled_from(Level))
def test_automation_off_withholds_what_safe_mode_withholds(level: Level) -> None:
    """Without paid calls there is no customer-visible effect either; claims and admission stay as they were."""
    standing = Standing(level=level, paid_calls_closed_by="all")
    assert standing.withholds_effects
    assert (standing.closes_admission, standing.closes_claims) == (
        Standing(level=level).closes_admission,
        Standing(level=level).closes_claims,
    )


@few
@given(setting=settings_of, vendor=st.sampled_from(["helpdesk", "openai"]))
def test_one_more_switch_never_opens_anything(setting: dict[str, tuple[Level, bool]], vendor: str) -> None:
    """Adding a setting can only make a job's standing stricter."""
    before = switches(setting).for_job(a_job(), (vendor,))
    for scope in set(JOB_SCOPES) - set(setting):
        after = switches({**setting, scope: (Level.DRAIN, False)}).for_job(a_job(), (vendor,))
        assert after.level >= before.level
        assert not (before.paid_calls_closed_by and not after.paid_calls_closed_by)


def test_a_job_is_in_five_kinds_of_scope() -> None:
    """Widest first; the tenant's scope is the lane's own, so another lane's tenant of that name is another."""
    assert scopes_of(a_job(), ("helpdesk",)) == JOB_SCOPES


@pytest.mark.parametrize("level", list(Level))
def test_words_and_levels_are_one_to_one(level: Level) -> None:
    """What people write is what is meant, in any case."""
    assert level_of(level.word) is level_of(level.word.upper()) is level


@pytest.mark.parametrize("word", ["", "stop", "normal ", "4"])
def test_an_unknown_word_lists_the_ladder(word: str) -> None:
    """The error says what can be written."""
    with pytest.raises(BadInput, match="normal, route_only, no_new_starts, drain, halt"):
        level_of(word)


@pytest.mark.parametrize("scope", [*JOB_SCOPES, *OTHER_SCOPES, "tenant/support/acme/eu"])
def test_well_formed_scopes_are_taken(scope: str) -> None:
    """A tenant's id may hold slashes."""
    assert check_scope(scope) == scope


@pytest.mark.parametrize(
    "scope", ["", "All", "lane", "lane/", "lane/Support", "lane/a/b", "task/support", "tenant/support/", "x/y", "all/x"]
)
def test_a_malformed_scope_is_refused(scope: str) -> None:
    """A switch that nobody is in would look closed and hold nothing."""
    with pytest.raises(BadInput) as refused:
        check_scope(scope)
    assert refused.value.field == "scope"


@pytest.mark.req("C2")
def test_a_change_is_felt_within_ten_seconds() -> None:
    """The cache is half of what is promised, so even a look just before the change is old in time."""
    assert 2 * CACHED_S <= 10
    assert TRUSTED_S == 60
