"""`penstock validate`: a report in three files, a verdict in the exit code, and no pass by omission."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ops.cli.stage import Stage
from shared.core.job import Status
from shared.core.switches import Level
from shared.usecases.set_switch import set_switch
from tests.builders import a_job, an_effect_row

CALLER = "arn:aws:sts::123456789012:user/moto"


@pytest.fixture
def aftermath(deployed: Stage, penstock: Any) -> Stage:
    """An incident that was opened and closed, a switch, a decision, and a job that was answered."""
    penstock("incident", "open", "support", "--why", "429s | a pipe, <b>tags</b>")
    set_switch(
        "lane/support",
        Level.ROUTE_ONLY,
        by="arn:ada",
        why="wrong answers",
        lanes=deployed.lanes,
        control=deployed.control,
        history=deployed.history,
        clock=deployed.clock,
    )
    penstock("incident", "close", "support", "--cause", "the token had expired")
    now = deployed.clock.now()
    job = a_job(status=Status.COMPLETED, created_at=now, updated_at=now, completed_at=now)
    deployed.jobs.put(job)
    deployed.effects.intend(an_effect_row(job_id=job.job_id, intent_at=now, first_intent_at=now))
    return deployed


@pytest.mark.req("C12")
def test_what_cannot_be_asked_leaves_it_incomplete(penstock: Any, aftermath: Stage, tmp_path: Path) -> None:
    """Without the worker's settings no vendor is asked, and without a group no log is read: exit code 3, not 0."""
    answer = penstock("validate", "support", "--since", "1h", "--to", str(tmp_path / "v"), "--json", code=3).document
    assert answer["verdict"] == "incomplete"
    verdicts = {check["name"]: check["verdict"] for check in answer["checks"]}
    assert verdicts == {
        "documented": "pass",
        "effects": "not checked",
        "tier_0": "not checked",
        "leaks": "not checked",
        "replays": "pass",
        "states": "pass",
    }
    assert (answer["made_by"], answer["incidents"][0]["cause"]) == (CALLER, "the token had expired")
    assert json.loads((tmp_path / "v" / "report.json").read_text())["checks"] == answer["checks"]


@pytest.mark.req("C12")
def test_a_violation_ends_with_1(penstock: Any, aftermath: Stage, tmp_path: Path) -> None:
    """An incident that is open: the sentence says so, and where to read on."""
    penstock("incident", "open", "support", "--why", "again")
    said = penstock("validate", "support", "--since", "1h", "--to", str(tmp_path / "v"), code=1)
    assert "The validation fails." in said.out
    assert "report.md" in said.out


def test_the_page_opens_with_the_incident(penstock: Any, aftermath: Stage, tmp_path: Path) -> None:
    """The record first, then the checks; what people wrote makes no table and no tag of its own."""
    penstock("validate", "support", "--since", "1h", "--to", str(tmp_path / "v"), code=3)
    page = (tmp_path / "v" / "report.md").read_text()
    assert page.startswith("# Validation of lane support: incomplete\n")
    assert page.index("## Incident") < page.index("## Checks") < page.index("## Changed by hand")
    assert "429s \\| a pipe, \\<b\\>tags\\</b\\>" in page
    assert "Root cause: the token had expired" in page
    assert "lane/support set to route_only" in page
    assert "](timeline.svg)" in page
    picture = (tmp_path / "v" / "timeline.svg").read_text()
    assert "<svg" in picture
    assert "lane/support" in picture


def test_by_its_incident(penstock: Any, aftermath: Stage, tmp_path: Path) -> None:
    """The incident's own time is looked at, with half an hour around it."""
    (incident,) = penstock("incident", "show", "support", "--json").document["incidents"]
    found = penstock("incident", "show", "support").out
    name = incident["events"][0]["event_id"][:8]
    assert name in found
    answer = penstock("validate", "support", "--incident", name, "--to", str(tmp_path / "v"), "--json", code=3).document
    assert answer["incidents"][0]["incident_id"] == name
    assert answer["since"] < incident["opened_at"]


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        (("support",), 2, "--since"),
        (("nowhere", "--since", "1h"), 1, "nowhere"),
        (("support", "--since", "yesterday"), 1, "since"),
        (("support", "--since", "1h", "--until", "2h"), 1, "since"),
        (("support", "--since", "1h", "--incident", "nope"), 1, "nope"),
        (("support", "--since", "1h", "--marker", "x"), 1, "marker"),
        (("support", "--since", "1h", "--sample", "0"), 2, "--sample"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    penstock: Any, aftermath: Stage, tmp_path: Path, options: tuple[str, ...], code: int, word: str
) -> None:
    """One sentence that names it, and nothing is written."""
    assert word in penstock("validate", *options, "--to", str(tmp_path / "v"), code=code).err
    assert not (tmp_path / "v").exists()


def test_a_report_is_not_written_over(penstock: Any, aftermath: Stage, tmp_path: Path) -> None:
    """Another folder is asked for."""
    penstock("validate", "support", "--since", "1h", "--to", str(tmp_path / "v"), code=3)
    assert "another folder" in penstock("validate", "support", "--since", "1h", "--to", str(tmp_path / "v"), code=1).err


def test_a_report_has_a_place_of_its_own(
    penstock: Any, aftermath: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without --to, a folder named by lane and time, where one stands."""
    monkeypatch.chdir(tmp_path)
    since = (aftermath.clock.now() - timedelta(minutes=5)).isoformat()
    penstock("validate", "support", "--since", since, code=3)
    (folder,) = tmp_path.glob("validation-support-*Z")
    assert sorted(path.name for path in folder.iterdir()) == ["report.json", "report.md", "timeline.svg"]
