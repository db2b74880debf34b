"""Vendor accounts from the configuration to everybody who asks them: one account, one set of limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.stage import CONFIG, DEFAULTS, load_stage
from shared.adapters.memory.budgets import MemoryBudgetLedger
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.memory.telemetry import MemoryTelemetry
from shared.contract import env, names
from shared.core.account import AccountSpec
from shared.core.errors import BadInput
from shared.core.stage import StageSpec, merged
from shared.runtime.engine_settings import EngineSettings
from shared.runtime.settings import WorkerSettings
from shared.usecases.budgets import Budgets
from shared.usecases.permit import Denied, Permit
from tests.infra.conftest import Synthesize, Synthesized
from tests.infra.test_functions import environment, workers

RPM, TPM = "EXTRACTION_RATE_LIMIT_RPM", "EXTRACTION_RATE_LIMIT_TPM"
SHARED: dict[str, Any] = {"vendors": ["helpdesk", "openai"], "accounts": ["helpdesk", "openai"]}
"""A lane that asks the model, too, and spends the account that extraction spends."""


def a_config(folder: Path, **lanes: dict[str, Any]) -> Path:
    """The shipped defaults with these lanes' entries changed, and an empty stage file."""
    defaults = yaml.safe_load((CONFIG / DEFAULTS).read_text(encoding="utf-8"))
    (folder / DEFAULTS).write_text(yaml.safe_dump(merged(defaults, {"lanes": lanes})))
    (folder / "dev.yaml").write_text("")
    return folder


def told(stage: Synthesized) -> dict[str, dict[str, AccountSpec]]:
    """Who is told which accounts: every worker, the two engine functions that ask them, and the command line."""
    entries = stage.parameter(names.accounts_parameter(stage.spec.name)).items()
    asked = {
        name: dict(EngineSettings.from_env(environment(stage, name)).accounts) for name in ("stream", "dispatcher")
    }
    spent = {name: dict(WorkerSettings.from_env(environment(stage, name)).accounts) for name in workers(stage)}
    return {**asked, **spent, "cli": {name: AccountSpec(**{"name": name, **values}) for name, values in entries}}


def limits(spec: StageSpec, account: str = "openai") -> tuple[int | None, int | None]:
    """Requests and tokens a minute."""
    return spec.accounts[account].requests_per_minute, spec.accounts[account].tokens_per_minute


# ----------------------------------------------------------------------------------------- a lane's variables
@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, (60, 30_000)),
        ({RPM: "", TPM: ""}, (60, 30_000)),
        ({RPM: "7"}, (7, 30_000)),
        ({TPM: "1234"}, (60, 1234)),
        ({RPM: "500", TPM: "200000"}, (500, 200_000)),
    ],
)
@pytest.mark.parametrize("stage", ["dev", "stage", "prod"])
def test_the_variables_set_the_limits_and_the_defaults_stand_in_config(
    stage: str, environ: dict[str, str], expected: tuple[int, int]
) -> None:
    """60 and 30,000 unless `EXTRACTION_RATE_LIMIT_RPM` or `EXTRACTION_RATE_LIMIT_TPM` says otherwise."""
    spec = load_stage(stage, environ=environ, for_show=True)
    assert limits(spec) == expected
    assert limits(spec, "helpdesk") == (600, None)


@pytest.mark.synth
@pytest.mark.xdist_group("synth")
@pytest.mark.req("X3")
def test_everybody_is_told_what_the_variables_set(synthesize: Synthesize) -> None:
    """Worker, stream consumer, dispatcher and command line see the same account; no function has the variables."""
    spec = load_stage("dev", environ={RPM: "7", TPM: "1234"})
    stage = synthesize(spec, thorough=False)
    seen = {name: accounts["openai"] for name, accounts in told(stage).items() if "openai" in accounts}
    runs = {names.run("rewrite", role) for role in spec.lanes["rewrite"].runs}
    assert set(seen) == {"stream", "dispatcher", "support-worker", "extraction-worker", *runs, "cli"}
    assert {(one.requests_per_minute, one.tokens_per_minute) for one in seen.values()} == {(7, 1234)}
    assert not [
        variable
        for name in (*names.ENGINE_FUNCTIONS, *workers(stage))
        for variable in environment(stage, name)
        if "RATE_LIMIT" in variable
    ]


@pytest.mark.req("X3")
@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5", "1e3", str(10**13)])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    """The variable is named, and nothing is built."""
    with pytest.raises(BadInput, match=rf"{RPM}.*must be a whole number above 0"):
        load_stage("dev", environ={RPM: text})


def test_a_variable_that_could_mean_two_accounts_is_refused(tmp_path: Path) -> None:
    """Support spends two accounts with requests a minute: which one? Only one has tokens, so that is clear."""
    config = a_config(tmp_path, support=SHARED)
    with pytest.raises(BadInput, match=r"SUPPORT_RATE_LIMIT_RPM.*could mean helpdesk or openai"):
        load_stage("dev", config=config, environ={"SUPPORT_RATE_LIMIT_RPM": "5"})
    assert limits(load_stage("dev", config=config, environ={"SUPPORT_RATE_LIMIT_TPM": "5000"})) == (60, 5000)


def test_two_lanes_cannot_set_one_account_differently(tmp_path: Path) -> None:
    """One account has one limit: the last lane does not win, the deploy is refused."""
    config = a_config(tmp_path, support=SHARED)
    with pytest.raises(
        BadInput, match=f"SUPPORT_RATE_LIMIT_TPM.* is 1, but {TPM} sets the same limit of account openai to 2"
    ):
        load_stage("dev", config=config, environ={"SUPPORT_RATE_LIMIT_TPM": "1", TPM: "2"})
    assert limits(load_stage("dev", config=config, environ={"SUPPORT_RATE_LIMIT_TPM": "2", TPM: "2"})) == (60, 2)


def test_a_variable_of_a_lane_without_an_account_is_refused(tmp_path: Path) -> None:
    """What would have no effect is a mistake."""
    config = a_config(tmp_path, extraction={"accounts": []})
    with pytest.raises(BadInput, match=f"{RPM}.*lane extraction spends no account"):
        load_stage("dev", config=config, environ={RPM: "5"})


# --------------------------------------------------------------------------------------- one account, two lanes
@pytest.mark.synth
@pytest.mark.xdist_group("synth")
@pytest.mark.req("X9")
def test_a_lane_with_two_accounts_keeps_the_limits_of_each(synthesize: Synthesize, tmp_path: Path) -> None:
    """Whoever asks an account is told its own limits, never its neighbour's."""
    stage = synthesize(load_stage("dev", config=a_config(tmp_path, support=SHARED)), thorough=False)
    everybody = told(stage)
    assert set(everybody["support-worker"]) == {"helpdesk", "openai"}
    for name, accounts in everybody.items():
        assert accounts == {account: stage.spec.accounts[account] for account in accounts}, name


@pytest.mark.synth
@pytest.mark.xdist_group("synth")
@pytest.mark.req("X9")
def test_two_lanes_that_name_one_account_draw_from_one_row(synthesize: Synthesize, tmp_path: Path) -> None:
    """What a worker of extraction took, a worker of support no longer finds; they differ in nothing but the lane."""
    stage = synthesize(load_stage("dev", config=a_config(tmp_path, support=SHARED)), thorough=False)
    lanes = {
        lane: WorkerSettings.from_env(environment(stage, names.worker(lane))) for lane in ("support", "extraction")
    }
    assert len({settings.text(env.LEDGER_TABLE) for settings in lanes.values()}) == 1
    ledger, clock = MemoryBudgetLedger(), VirtualClock()
    budgets = {
        lane: Budgets.of(
            settings.accounts.values(),
            ledger=ledger,
            clock=clock,
            telemetry=MemoryTelemetry(),
            owner=lane,
            chance=lambda: 0.5,
        )
        for lane, settings in lanes.items()
    }

    def ask(lane: str, tokens: int) -> Permit | Denied:
        checked = budgets[lane].try_consume("openai", tokens)
        assert checked is not None
        return checked.answer

    assert isinstance(ask("extraction", 15_000), Permit)
    refused = ask("support", 15_000)
    assert isinstance(refused, Denied)
    assert (refused.account, refused.limit) == ("openai", "tokens")
    clock.advance_to(refused.until)
    assert isinstance(ask("support", 15_000), Permit)
    assert isinstance(ask("extraction", 15_000), Denied)


@pytest.mark.synth
@pytest.mark.xdist_group("synth")
@pytest.mark.req("X9")
def test_one_entry_gives_a_lane_its_budget(synthesize: Synthesize, tmp_path: Path) -> None:
    """`accounts: [openai]` in a lane's entry is all: its worker gets the account; the ledger and the right to it every
    worker has, for its signals."""
    before = merged(SHARED, {"accounts": []})
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    old = load_stage("dev", config=a_config(tmp_path / "before", support=before))
    new = load_stage("dev", config=a_config(tmp_path / "after", support={**before, "accounts": ["openai"]}))
    assert {name: lane for name, lane in old.lanes.items() if name != "support"} == {
        name: lane for name, lane in new.lanes.items() if name != "support"
    }
    without, having = synthesize(old, thorough=False), synthesize(new, thorough=False)
    assert "accounts" not in without.settings("support-worker")
    settings = WorkerSettings.from_env(environment(having, "support-worker"))
    assert dict(settings.accounts) == {"openai": new.accounts["openai"]}
    assert settings.text(env.LEDGER_TABLE) == names.table("dev", "ledger")
    ledger = names.table("dev", "ledger")
    assert ledger in json.dumps(policies(having, "Lane-support"))


def policies(stage: Synthesized, stack: str) -> list[Any]:
    """What the functions of a stack may do."""
    found = [one for one in stage.assembly.resources("AWS::IAM::Policy") if one.stack == stack]
    assert found
    return [one.properties for one in found]


# ------------------------------------------------------------------------------------------------- two of a name
@pytest.mark.parametrize("table", ["accounts", "lanes", "vendors"])
def test_two_of_one_name_are_refused_not_merged(tmp_path: Path, table: str) -> None:
    """YAML takes the last and drops the first without a word; here the file and the line are named."""
    text = f"{table}:\n  openai: {{}}\n  openai: {{}}\n"
    (tmp_path / DEFAULTS).write_text(text)
    (tmp_path / "dev.yaml").write_text("")
    with pytest.raises(BadInput, match=f"{DEFAULTS}.*has openai twice in one table, at line 3"):
        load_stage("dev", config=tmp_path)
