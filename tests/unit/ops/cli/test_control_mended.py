"""Control rows that cannot be read: every command says which and what to do, and a halt is set all the same."""

from __future__ import annotations

from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.adapters import switch_rows
from shared.adapters.aws.clients import client
from shared.contract import names, table
from shared.core.switches import Level
from tests.builders import a_switch

WHY = ("--why", "wrong answers")


def plant(**attributes: Any) -> None:
    """A row of the control table as somebody wrote it by hand."""
    client("dynamodb").put_item(TableName=names.table("dev", "control"), Item=attributes)


def plant_switches(scopes: Any) -> None:
    plant(**{table.PK: {"S": table.SWITCHES}, switch_rows.SCOPES: scopes})


def plant_cap(**cap: Any) -> None:
    plant(**{table.PK: {"S": table.cap_pk("support")}, **cap})


def entries(stage: Stage) -> dict[str, Level]:
    return {scope: one.level for scope, one in stage.control.switches().entries.items()}


@pytest.mark.fault("E5", "E8")
def test_a_halt_is_set_over_a_row_that_is_no_map(penstock: Any, deployed: Stage) -> None:
    """Everything is halted with it, since nobody knows what else was closed; in words and in the JSON answer."""
    plant_switches({"S": "all"})
    document = penstock("control", "set", "lane/support", "halt", *WHY, "--json").document
    assert document["switch"]["level"] == "halt"
    assert "all is halted" in document["warnings"][0]
    assert entries(deployed) == {"all": Level.HALT, "lane/support": Level.HALT}
    (event,) = penstock("control", "show", "all", "--json").document["history"]
    assert event["detail"]["reset"]


@pytest.mark.fault("E5", "E9")
def test_a_corrupt_entry_is_named_with_the_way_out(penstock: Any, deployed: Stage) -> None:
    """By whoever shows, sets or opens; the way out is a command that works."""
    good = switch_rows.switch_attribute(a_switch("lane/support"))
    assert good is not None
    plant_switches({"M": {"lane/support": good, "lane/suport ": good}})
    for command in (("show",), ("set", "lane/mail", "normal", *WHY), ("check",)):
        told = " ".join(penstock("control", *command, code=1).err.split())
        assert "'lane/suport ': is no scope there can be" in told
        assert "control set all halt --reset --why" in told
    answer = penstock("control", "set", "all", "halt", "--reset", *WHY)
    assert "nothing else is set any more" in answer.out
    assert entries(deployed) == {"all": Level.HALT}
    refused = " ".join(penstock("control", "set", "all", "halt", "--reset", *WHY, code=1).err.split())
    assert "these can be read" in refused


@pytest.mark.parametrize("command", [("lane/support", "halt"), ("all", "drain"), ("all", "halt", "--automation")])
def test_a_reset_opens_nothing(penstock: Any, deployed: Stage, command: tuple[str, ...]) -> None:
    """It stands with a halt of all, and with nothing else."""
    plant_switches({"S": "all"})
    told = " ".join(penstock("control", "set", *command, "--reset", *WHY, code=1).err.split())
    assert "give `all halt --reset`" in told
    penstock("control", "show", code=1)


@pytest.mark.fault("E5", "E9")
def test_a_corrupt_cap_is_named_and_mended_by_a_command(penstock: Any, deployed: Stage) -> None:
    """It holds up no other lane; what every page says to do mends it, with who and why."""
    plant_cap(cap={"N": "-5"})
    for command in (("capacity", "show"), ("control", "show"), ("status",)):
        answer = penstock(*command)
        told = " ".join((answer.out + answer.err).split())
        assert "cap is below 0" in told
        assert "capacity unpin support --reset --why" in told
        assert "mail" in told
    (support, mail) = penstock("capacity", "show", "--json").document["lanes"]
    assert (support["cap"], mail["cap"], mail["problem"]) == (None, 2, None)
    (support, _) = penstock("status", "--json").document["lanes"]
    assert "cap is below 0" in support["troubles"][0]
    assert "--reset" in penstock("capacity", "pin", "support", "4", "--for", "2h", *WHY, code=1).err
    assert "its cap is 2" in penstock("capacity", "unpin", "support", "--reset", *WHY).out
    penstock("capacity", "pin", "support", "4", "--for", "2h", *WHY)
    assert [event.kind for event in deployed.history.of("capacity/support", limit=5)] == ["pin", "reset"]
