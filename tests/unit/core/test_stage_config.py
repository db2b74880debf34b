"""A stage's configuration: the defaults with one overlay, and the files that are shipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.stage import STAGES, StageSpec, merged
from tests.builders import ROUTING

CONFIG = Path(__file__).parents[3] / "config"
BASE: dict[str, Any] = {
    "vendors": {"helpdesk": {"kind": "helpdesk", "base_url": "https://helpdesk.example.com"}},
    "lanes": {"support": {"tasks": ["answer_event"], "vendors": ["helpdesk"]}},
}
settings_names = st.sampled_from("abc")
leaves = st.none() | st.integers(0, 9) | st.lists(st.integers(0, 9), max_size=2)
trees = leaves | st.dictionaries(settings_names, leaves | st.dictionaries(settings_names, leaves))
tables = st.dictionaries(settings_names, trees)


def shipped(stage: str) -> StageSpec:
    """A stage as its files say."""
    defaults = yaml.safe_load((CONFIG / "parameter_defaults.yaml").read_text())
    return StageSpec.from_mappings(stage, defaults, yaml.safe_load((CONFIG / f"{stage}.yaml").read_text()))


@pytest.mark.parametrize("stage", STAGES)
def test_every_shipped_stage_is_valid(stage: str) -> None:
    """Each stage file over the defaults passes every check."""
    spec = shipped(stage)
    assert spec.name == stage
    assert "support" in spec.lanes


@pytest.mark.req("C7")
@pytest.mark.parametrize("stage", STAGES)
def test_every_shipped_lane_has_its_ceiling(stage: str) -> None:
    """The hard ceiling is a setting of every lane, and in prod it is reserved as well."""
    spec = shipped(stage)
    assert all(2 <= lane.baseline <= lane.ceiling <= 1000 for lane in spec.lanes.values())
    assert spec.reserved_concurrency == (stage in ("stage", "prod"))


@pytest.mark.fault("J9")
@pytest.mark.parametrize("stage", STAGES)
def test_names_are_free_on_a_developers_machine_alone(stage: str) -> None:
    """What takes two people takes two wherever others work; prod cannot be told otherwise, and a word is no yes."""
    assert shipped(stage).free_session_names == (stage == "local")
    if stage == "prod":
        with pytest.raises(BadInput, match=r"free_session_names.*must stay false in prod"):
            StageSpec.from_mappings(stage, BASE, {"free_session_names": True})
    else:
        assert StageSpec.from_mappings(stage, BASE, {"free_session_names": True}).free_session_names
    with pytest.raises(BadInput, match=r"free_session_names.*must be true or false"):
        StageSpec.from_mappings(stage, BASE, {"free_session_names": "no"})


@given(base=tables, overlay=tables)
def test_an_overlay_wins_and_the_rest_stays(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    """Tables are merged, everything else is replaced; neither input is changed."""
    before = repr(base)
    result = merged(base, overlay)
    assert repr(base) == before
    assert set(result) == set(base) | set(overlay)
    for key, value in result.items():
        if key not in overlay:
            assert value == base[key]
        elif isinstance(overlay[key], dict) and isinstance(base.get(key), dict):
            assert value == merged(base[key], overlay[key])
        else:
            assert value == overlay[key]
    assert merged(base, {}) == base
    assert merged(base, base) == base


def vendor(**changes: Any) -> dict[str, Any]:
    return merged(BASE, {"vendors": {"helpdesk": changes}})


def accounts(*names: str, **entries: dict[str, Any]) -> dict[str, Any]:
    """A stage in which support names these accounts and these are defined; it calls the help desk only."""
    openai = {"kind": "openai", "base_url": "https://api.openai.com/v1"}
    more = {"vendors": {"openai": openai}, "accounts": entries, "lanes": {"support": {"accounts": list(names)}}}
    return merged(BASE, more)


DESK = {"vendor": "helpdesk", "requests_per_minute": 600}

REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "an unknown setting": ("dev", {**BASE, "colour": "red"}),
    "lanes as a list": ("lanes", {**BASE, "lanes": ["support"]}),
    "a lane as a list": ("lanes.support", {**BASE, "lanes": {"support": ["reply"]}}),
    "a vendor nobody defines": ("lanes.support.vendors", {**BASE, "vendors": {}}),
    "a vendor as text": ("vendors.helpdesk", {**BASE, "vendors": {"helpdesk": "https://x.example.com"}}),
    "a vendor without a kind": ("vendors.x", {**BASE, "vendors": {"x": {"base_url": "https://x.example.com"}}}),
    "a vendor's unknown setting": ("vendors.helpdesk", vendor(colour="red")),
    "a vendor's lookup": ("vendors.helpdesk.lookup", vendor(lookup="sometimes")),
    "a vendor's window": ("vendors.helpdesk.dedupe_window_s", vendor(dedupe_window_s="1d")),
    "a negative window": ("vendors.helpdesk.dedupe_window_s", vendor(dedupe_window_s=-1)),
    "a vendor's time-out": ("vendors.helpdesk.read_timeout_s", vendor(read_timeout_s=0)),
    "a vendor's endless time-out": ("vendors.helpdesk.connect_timeout_s", vendor(connect_timeout_s=float("inf"))),
    "accounts as a list": ("accounts", {**BASE, "accounts": ["desk"]}),
    "an account without a vendor": ("accounts.desk", accounts(desk={"requests_per_minute": 600})),
    "an account's unknown setting": ("accounts.desk", accounts(desk={**DESK, "rpm": 600})),
    "an account with a vendor nobody defines": ("accounts.desk.vendor", accounts(desk={"vendor": "mailer"})),
    "an account nobody defines": ("lanes.support.accounts", accounts("other", desk=DESK)),
    "an account with a vendor the lane does not call": (
        "lanes.support.accounts",
        accounts("a", a={"vendor": "openai"}),
    ),
    "two accounts with one vendor": ("lanes.support.accounts", accounts("desk", "more", desk=DESK, more=DESK)),
    "a Tier 0 without an intent": (
        "lanes.support.routing.tier_0",
        merged(BASE, {"lanes": {"support": {"routing": {**ROUTING, "tier_0": ["fraud"]}}}}),
    ),
    "a task's vendor that its lane does not call": (
        "lanes.support.task_vendors.answer_event",
        merged(BASE, {"lanes": {"support": {"task_vendors": {"answer_event": ["openai"]}}}}),
    ),
    "schedules as a number": ("schedules", {**BASE, "schedules": 60}),
    "a schedule's unknown name": ("schedules", {**BASE, "schedules": {"cleaner": 60}}),
    **{
        f"schedules.triage = {period!r}": ("schedules.triage", {**BASE, "schedules": {"triage": period}})
        for period in (0, 30, 61, 90.0, "60", None, True)
    },
    **{
        f"base_url = {url!r}": ("vendors.helpdesk.base_url", vendor(base_url=url))
        for url in (
            *("http://helpdesk.example.com", "ftp://x", "", "helpdesk.example.com", 7, None, "https://", "http://["),
            *("http://127.0.0.1.example.com", "http://localhost.example.com", "http://localhost@example.com"),
        )
    },
}


@pytest.mark.parametrize(("field", "values"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_refused_by_name(field: str, values: dict[str, Any]) -> None:
    """A token is never sent in the clear, and no error is a bare TypeError."""
    with pytest.raises(BadInput) as refused:
        StageSpec.from_mappings("dev", values)
    assert refused.value.field == field


def test_a_lane_may_spend_an_account_for_each_vendor_it_calls() -> None:
    """And an account that no lane names is no mistake: a lane may be given it later."""
    both = merged(
        accounts("desk", "model", desk=DESK, model={"vendor": "openai"}, spare={"vendor": "openai"}),
        {"lanes": {"support": {"vendors": ["helpdesk", "openai"]}}},
    )
    spec = StageSpec.from_mappings("dev", both)
    assert spec.lanes["support"].accounts == ("desk", "model")
    assert set(spec.accounts) == {"desk", "model", "spare"}


@pytest.mark.parametrize("url", ["https://x.example.com/v1", "http://127.0.0.1:9", "http://localhost:8080/x"])
def test_tls_or_this_machine(url: str) -> None:
    """The two kinds of address a vendor may have."""
    assert StageSpec.from_mappings("dev", vendor(base_url=url)).vendors["helpdesk"].base_url == url
