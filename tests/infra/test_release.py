"""What `make diff` compares with: one release, named, whole, and recorded by the commit that raised the version."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from infra import diff, naming, release
from infra.deployment import project_version
from infra.stage import DEFAULTS, ROOT, load_stage
from shared.core.stage import STAGES

pytestmark = [pytest.mark.fault("K5")]


def git(*arguments: str) -> list[str]:
    """Lines of git's answer; none where there is no history to ask."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def test_the_release_names_its_version_and_nobody_changed_it_since() -> None:
    """It is the last one or this one; a template that is edited by hand is noticed."""
    recorded = release.version()
    assert recorded is not None
    assert release.order(recorded) <= release.order(project_version())
    assert release.is_whole(), "infra/release differs from what was recorded: git checkout infra/release"


def test_it_changes_only_in_a_commit_that_raises_the_version() -> None:
    """Each commit that touched it since releases are named changed the version in the same step, and to that one; it
    holds every lane that there was."""
    named = "infra/release/version.json"
    first = (git("log", "--diff-filter=A", "--format=%H", "--", named) or ["HEAD"])[-1]
    for commit in git("log", "--format=%H", f"{first}..HEAD", "--", "infra/release"):
        raised = [line for line in git("show", commit, "--", "pyproject.toml") if line.startswith("+version = ")]
        recorded = json.loads("\n".join(git("show", f"{commit}:{named}")))["version"]
        assert raised == [f'+version = "{recorded}"'], commit
        lanes = yaml.safe_load("\n".join(git("show", f"{commit}:config/{DEFAULTS}")))["lanes"]
        for stage in STAGES:
            held = {Path(one).stem for one in git("ls-tree", "--name-only", commit, f"infra/release/{stage}/")}
            assert {of(lane) for lane in lanes for of in (naming.lane_part, naming.lane_watch_part)} <= held, commit


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A release of its own, of a project whose templates are small."""
    for function in (release.read, release.write, release.version, release.name, release.digest, release.is_whole):
        monkeypatch.setattr(function, "__defaults__", (tmp_path,))
    templates = {
        part: {"Resources": {}} for part in ("State", *map(naming.lane_part, load_stage("prod", for_show=True).lanes))
    }
    monkeypatch.setattr(diff, "current", lambda stage: templates)
    return tmp_path


def test_a_version_is_recorded_once(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With every stage and every lane of it; again only under a later version."""
    monkeypatch.setattr(diff, "project_version", lambda: "0.9.0")
    assert diff.main(["--accept"]) == 0
    lanes = {naming.lane_part(lane) for lane in load_stage("prod", for_show=True).lanes}
    assert all(lanes < set(release.read(stage)) for stage in STAGES)
    assert (release.version(), release.is_whole()) == ("0.9.0", True)
    assert diff.main(["--accept"]) == 1
    assert "0.9.0 is recorded already: raise the version" in capsys.readouterr().err
    monkeypatch.setattr(diff, "project_version", lambda: "0.10.0")
    assert diff.main(["--accept"]) == 0
    assert release.version() == "0.10.0"


def test_an_edit_by_hand_is_noticed(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte in one template of one stage; a file more; a file less."""
    monkeypatch.setattr(diff, "project_version", lambda: "0.9.0")
    assert diff.main(["--accept"]) == 0
    state = elsewhere / "dev" / "State.json"
    written = state.read_text()
    state.write_text(written.replace("{}", "{ }"))
    assert not release.is_whole()
    state.write_text(written)
    assert release.is_whole()
    (elsewhere / "dev" / "More.json").write_text("{}")
    assert not release.is_whole()
