"""`python app.py` for whoever has just cloned the project: no credentials, no Docker, no network, clear sentences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra import naming
from infra.main import main
from infra.packages import MissingPackage, Packages
from infra.stage import CONFIG, DEFAULTS, ROOT, load_stage
from shared.contract import names
from shared.core.errors import BadInput
from shared.core.stage import STAGES, merged
from tests.infra.conftest import Stages, Synthesized
from tests.waiting import PATIENCE_S

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]


def synth(stage: str, *, build: Path, out: Path, **context: str) -> subprocess.CompletedProcess[str]:
    """Run the app with an environment that holds nothing of AWS and can reach no proxy."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(out.parent),
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps({"stage": stage, **context}),
        "CDK_VALIDATION": "false",
        "PENSTOCK_BUILD_DIR": str(build),
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    } | {name: os.environ[name] for name in ("PYTHONPYCACHEPREFIX",) if name in os.environ}
    return subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_the_app_needs_nothing_of_aws(tmp_path: Path) -> None:
    """With an empty environment the app writes a template per stack, under the stack names of the contract."""
    functions = (*names.ENGINE_FUNCTIONS, names.INTAKE, *load_stage("dev").lanes)
    Packages.placeholders(tmp_path / "build" / "lambda", functions)
    done = synth("dev", build=tmp_path / "build", out=tmp_path / "out")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    stacks = {
        artifact["properties"].get("stackName", name)
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    lanes = {part(lane) for lane in load_stage("dev").lanes for part in (naming.lane_part, naming.lane_watch_part)}
    assert stacks == {names.stack("dev", part) for part in {"State", "Control", "Watch"} | lanes}


def test_a_missing_package_says_what_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Synth builds nothing; it names the function and the command, and ends with 1."""
    monkeypatch.setenv("PENSTOCK_BUILD_DIR", str(tmp_path / "nothing"))
    monkeypatch.setenv("CDK_OUTDIR", str(tmp_path / "out"))
    monkeypatch.setenv("CDK_VALIDATION", "false")
    assert main() == 1
    assert "run make build TARGET=lambda first" in capsys.readouterr().err
    with (
        pytest.raises(MissingPackage, match="TARGET=local"),
        Packages.of_stage("local", str(tmp_path)).code("stream", ""),
    ):
        pass


def test_the_same_settings_give_the_same_package(stages: Stages, tmp_path: Path) -> None:
    """A function whose code and settings stay is not deployed again; other settings are another package."""

    def packed(settings: str) -> bytes:
        with Packages.placeholders(tmp_path, ["stream"]).code("stream", settings) as code:
            return Path(str(code.path)).read_bytes()  # type: ignore[attr-defined]

    assert packed("{}") == packed("{}") != packed("[]")


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"parameter_defaults.yaml": "lanes: {}"}, r"dev\.yaml"),
        ({"parameter_defaults.yaml": "a: [", "dev.yaml": ""}, r"not valid YAML at line"),
        ({"parameter_defaults.yaml": "- 1", "dev.yaml": ""}, r"must be a table"),
        ({"parameter_defaults.yaml": "lanez: {}", "dev.yaml": ""}, r"unknown setting 'lanez'"),
        (
            {
                "parameter_defaults.yaml": "lanes: {a: {tasks: [x], secret: s}, b: {tasks: [x], secret: s}}",
                "dev.yaml": "",
            },
            r"lanes\.b\.secret.* already the secret of lane a",
        ),
    ],
)
def test_a_mistake_in_config_is_named(tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    """What is wrong in `config/` is said in one sentence with its place."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=sentence):
        load_stage("dev", config=tmp_path)


def test_a_stage_for_customers_is_not_synthesized_with_the_host_of_an_example(tmp_path: Path) -> None:
    """As cloned, prod names no help desk: the sentence says which setting, and in which file."""
    done = synth("prod", build=tmp_path / "build", out=tmp_path / "out")
    assert done.returncode == 1
    assert "vendors.helpdesk.base_url: is the host of an example" in done.stderr
    assert "config/prod.yaml" in done.stderr


HOST = "https://desk.acme-support.com/api"


@pytest.mark.fault("E5")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "address",
    [
        *("https://helpdesk.example.com", "https://EXAMPLE.org./v2", "https://a.b.example.net:8443"),
        *("https://desk.example", "https://desk.invalid", "https://desk.test/api"),
        *("https://localhost", "http://127.0.0.1:8080", "https://[::1]/"),
    ],
)
def test_an_address_that_nobody_owns_is_for_show(tmp_path: Path, stage: str, address: str) -> None:
    """Where customers are served, it is refused when the file is read; elsewhere it does no harm."""
    config = a_config(tmp_path, stage, vendors={"helpdesk": {"base_url": address}})
    if stage in ("local", "dev"):
        assert load_stage(stage, config=config).vendors["helpdesk"].base_url == address
        return
    with pytest.raises(BadInput, match=rf"vendors\.helpdesk\.base_url.*config/{stage}\.yaml"):
        load_stage(stage, config=config)
    assert load_stage(stage, config=config, for_show=True)


@pytest.mark.fault("E5")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    "address", ["https://me:hunter2@desk.acme-support.com", f"{HOST}?key=hunter2", f"{HOST}#hunter2"]
)
def test_an_address_holds_nothing_but_an_address(tmp_path: Path, stage: str, address: str) -> None:
    """A user, a query or a fragment is refused in every stage; the sentence does not repeat what may be a token."""
    config = a_config(tmp_path, stage, vendors={"helpdesk": {"base_url": address}})
    with pytest.raises(BadInput, match=r"vendors\.helpdesk\.base_url.*no user, query or fragment") as refused:
        load_stage(stage, config=config)
    assert "hunter2" not in str(refused.value)


@pytest.mark.fault("K5")
@pytest.mark.parametrize("stage", STAGES)
def test_what_customers_depend_on_is_kept(tmp_path: Path, stage: str) -> None:
    """`retain: false` is for stages whose data nobody misses."""
    config = a_config(tmp_path, stage, retain=False, vendors={"helpdesk": {"base_url": HOST}})
    if stage in ("local", "dev"):
        assert not load_stage(stage, config=config).retain
        return
    with pytest.raises(BadInput, match=rf"retain.*must stay true in {stage}"):
        load_stage(stage, config=config)
    for word in ("no", 0, None):
        with pytest.raises(BadInput, match=r"retain.*must be true or false"):
            load_stage(stage, config=a_config(tmp_path, stage, retain=word, vendors={"helpdesk": {"base_url": HOST}}))


def a_config(folder: Path, stage: str, **settings: Any) -> Path:
    """The shipped files of a stage, with some settings changed."""
    (folder / DEFAULTS).write_text((CONFIG / DEFAULTS).read_text(encoding="utf-8"))
    shipped = yaml.safe_load((CONFIG / f"{stage}.yaml").read_text(encoding="utf-8"))
    (folder / f"{stage}.yaml").write_text(yaml.safe_dump(merged(shipped, settings)))
    return folder


def test_an_unknown_stage_is_refused() -> None:
    """Only the four stages exist."""
    with pytest.raises(BadInput, match="must be one of local, dev, stage, prod"):
        load_stage("production")


def test_stages_can_share_an_account(stages: Stages) -> None:
    """No two stages claim the same physical name."""
    claimed: dict[str, str] = {}
    for name in STAGES:
        stage = stages(name)
        for resource in stage.assembly.resources():
            for key in ("TableName", "QueueName", "FunctionName", "AlarmName", "DashboardName", "Name", "TopicName"):
                value = resource.properties.get(key)
                if isinstance(value, str) and resource.type != "AWS::Lambda::Alias":
                    place = f"{resource.type} {value}"
                    assert claimed.setdefault(place, name) == name, place


def test_no_stack_holds_on_to_another(every_stage: Synthesized) -> None:
    """References between stacks go by name or are weak: no exports, no imports."""
    for template in every_stage.assembly.templates.values():
        text = json.dumps(template)
        assert "Fn::ImportValue" not in text
        assert '"Export"' not in text
