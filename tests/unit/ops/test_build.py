"""The build: what a Lambda's package carries, and what makes it anew."""

from __future__ import annotations

import json
import os
import stat
import sys
import textwrap
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from infra.packages import BUILT_FOR
from ops import build as command
from ops.packaging.errors import BuildError, RefusedContent
from ops.packaging.importing import check_imports
from ops.packaging.layers import Fill, prune, requirement_lines
from ops.packaging.staging import Build, function_names, requirements_of, source_files, stage_functions
from ops.packaging.targets import Target, lambda_target, local_target

HERE = Target(
    name="here", identity="here-1", runtime="python3.12", architecture="arm64", installer=Path(sys.executable)
)
COMPILED = replace(HERE, identity="here-2", compiler=Path(sys.executable))


@dataclass
class FakeInstaller:
    """Fills a dependency layer from a table instead of a registry, and counts how often it was asked."""

    wheels: Mapping[str, str] = field(default_factory=lambda: {"vendored/__init__.py": "NAME = 'vendored'\n"})
    installed: list[str] = field(default_factory=list)

    def __call__(self, requirements: Path, target: Target) -> Fill:
        def fill(folder: Path) -> None:
            self.installed.append(requirements.parent.name)
            write(folder, self.wheels)
            prune(folder)

        return fill


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project with two functions."""
    root = tmp_path / "project"
    files = {
        "shared/__init__.py": "",
        "shared/core/__init__.py": "",
        "shared/core/job.py": "STATUS = 'queued'\n",
        "shared/adapters/__init__.py": "",
        "shared/adapters/memory/__init__.py": "",
        "shared/adapters/memory/store.py": "",
        "shared/README.md": "words\n",
        "functions/__init__.py": "",
        "functions/requirements.txt": "vendored==1\n",
        "functions/mail/__init__.py": "",
        "functions/mail/handler.py": "import vendored\nfrom shared.core import job\n",
        "functions/mail/test_tasks.py": "assert False\n",
        "functions/stream/__init__.py": "",
        "functions/stream/handler.py": "import boto3\nfrom shared.core import job\n",
        "functions/draft/__init__.py": "",
    }
    write(root, files)
    return root


@pytest.fixture
def build(project: Path, tmp_path: Path) -> Build:
    return Build(root=project, out=tmp_path / "out", target=HERE, installer=FakeInstaller())


def staged(build: Build, function: str) -> set[str]:
    folder = build.stage / function
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def rebuilt(build: Build) -> list[str]:
    return [package.function for package in stage_functions(build) if package.rebuilt]


# ------------------------------------------------------------------------------------------------ content
def test_a_function_is_a_folder_with_a_handler(project: Path) -> None:
    """Only folders of functions/ that hold a handler.py are packaged."""
    assert function_names(project) == ["mail", "stream"]


def test_a_package_holds_shared_its_own_folder_and_its_dependencies(build: Build) -> None:
    """Nothing of another function, of the tests, or of the memory adapters travels."""
    stage_functions(build)

    assert staged(build, "mail") == {
        "functions/__init__.py",
        "functions/mail/__init__.py",
        "functions/mail/handler.py",
        "shared/__init__.py",
        "shared/core/__init__.py",
        "shared/core/job.py",
        "shared/adapters/__init__.py",
        "vendored/__init__.py",
        "built_for.json",
    }
    told = json.loads((build.stage / "mail" / "built_for.json").read_text(encoding="utf-8"))
    assert told == {"runtime": "python3.12", "architecture": "arm64"}


def test_the_lambda_target_is_what_every_function_runs_on() -> None:
    """Wheels, runtime and architecture are of one place; synth judges templates by the same words."""
    told = lambda_target()
    assert {"runtime": told.runtime, "architecture": told.architecture} == BUILT_FOR
    fetched = dict(zip(told.pip_options[::2], told.pip_options[1::2], strict=True))
    assert fetched["--python-version"] == told.runtime.removeprefix("python")
    assert fetched["--platform"].endswith({"arm64": "_aarch64", "x86_64": "_x86_64"}[told.architecture])


def test_the_zip_is_the_folder(build: Build) -> None:
    """The archive that is deployed holds byte for byte what the staged folder shows."""
    for package in stage_functions(build):
        with zipfile.ZipFile(build.out / package.archive) as archive:
            assert archive.testzip() is None
            assert set(archive.namelist()) == staged(build, package.function)
            for name in archive.namelist():
                assert archive.read(name) == (build.stage / package.function / name).read_bytes()


@pytest.mark.parametrize("target", [HERE, COMPILED], ids=["source", "compiled"])
def test_the_same_input_gives_the_same_bytes(project: Path, tmp_path: Path, target: Target) -> None:
    """Two builds in two places give identical archives, so unchanged code is never deployed again."""
    archives = []
    for place in ("one", "two"):
        for path in project.rglob("*.py"):
            os.utime(path, None)
        build = Build(root=project, out=tmp_path / place, target=target, installer=FakeInstaller())
        archives.append([(build.out / package.archive).read_bytes() for package in stage_functions(build)])

    assert archives[0] == archives[1]


def test_dates_and_modes_are_fixed(build: Build, project: Path) -> None:
    """Neither the builder's umask nor the time of day is visible in a package."""
    (project / "functions/mail/handler.py").chmod(0o700)
    stage_functions(build)

    for path in build.stage.rglob("mail/**/*.py"):
        assert path.stat().st_mtime == 315_532_800
        assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_bytecode_is_found_by_the_interpreter_that_wrote_it(project: Path, tmp_path: Path) -> None:
    """A compiled package carries bytecode that stays valid whatever date its files get when unpacked."""
    build = Build(root=project, out=tmp_path / "out", target=COMPILED, installer=FakeInstaller())
    stage_functions(build)

    tag = sys.implementation.cache_tag
    written = build.stage / f"mail/shared/core/__pycache__/job.{tag}.pyc"
    assert int.from_bytes(written.read_bytes()[4:8], "little") == 0b01  # hash-based, unchecked


def test_a_module_that_does_not_compile_stops_the_build(project: Path, tmp_path: Path) -> None:
    """A syntax error is found by the build, not by the first message."""
    write(project, {"functions/mail/handler.py": "def handler(:\n"})
    build = Build(root=project, out=tmp_path / "out", target=COMPILED, installer=FakeInstaller())

    with pytest.raises(BuildError, match=r"handler\.py"):
        stage_functions(build)


# -------------------------------------------------------------------------------------------- dependencies
def test_a_function_may_bring_its_own_pins(project: Path, build: Build) -> None:
    """A function with a requirements.txt carries those packages instead of everybody's."""
    write(project, {"functions/stream/requirements.txt": "small==1\n"})
    stage_functions(build)

    assert requirements_of(project, "stream") == project / "functions/stream/requirements.txt"
    assert requirements_of(project, "mail") == project / "functions/requirements.txt"
    assert isinstance(build.installer, FakeInstaller)
    assert sorted(build.installer.installed) == ["functions", "stream"]


def test_equal_pins_are_fetched_once(build: Build) -> None:
    """Two functions with the same pins share one dependency layer."""
    stage_functions(build)

    assert isinstance(build.installer, FakeInstaller)
    assert build.installer.installed == ["functions"]


def test_included_pins_count(project: Path) -> None:
    """A pin file that includes another is as new as the included one."""
    write(project, {"functions/stream/requirements.txt": "# engine\n-r ../requirements.txt\n"})

    assert list(requirement_lines(project / "functions/stream/requirements.txt")) == ["vendored==1"]


@pytest.mark.parametrize("name", ["boto3", "botocore"])
def test_the_runtime_sdk_is_refused(build: Build, name: str) -> None:
    """boto3 comes from the Lambda runtime; a package that would carry it is not staged."""
    heavy = replace(build, installer=FakeInstaller(wheels={f"{name}/__init__.py": ""}))

    with pytest.raises(RefusedContent, match=name):
        stage_functions(heavy)


def test_pruning_keeps_code_and_licences(tmp_path: Path) -> None:
    """Stubs, tests, scripts and pip's own notes go; modules, data, licences and metadata stay."""
    stay = {"p/__init__.py", "p/cacert.pem", "p-1.dist-info/METADATA", "p-1.dist-info/licenses/LICENSE.md"}
    go = {
        "p/x.pyi",
        "p/py.typed",
        "p/tests/test_x.py",
        "p/__pycache__/x.pyc",
        "bin/p",
        "p-1.dist-info/RECORD",
    }
    write(tmp_path, dict.fromkeys(stay | go, ""))

    prune(tmp_path)

    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == stay


# -------------------------------------------------------------------------------------------------- caching
def test_nothing_changed_nothing_rebuilt(build: Build) -> None:
    """The second build touches nothing."""
    assert rebuilt(build) == ["mail", "stream"]
    before = {path: path.stat().st_ino for path in build.stage.rglob("*")}

    assert rebuilt(build) == []
    assert {path: path.stat().st_ino for path in build.stage.rglob("*")} == before


def test_a_change_in_one_function_rebuilds_that_one(project: Path, build: Build) -> None:
    """A lane's own change leaves every other package, and so every other asset hash, alone."""
    stage_functions(build)
    write(project, {"functions/mail/handler.py": "import vendored\n"})

    assert rebuilt(build) == ["mail"]
    assert (build.stage / "mail/functions/mail/handler.py").read_text() == "import vendored\n"


def test_a_change_in_shared_rebuilds_all(project: Path, build: Build) -> None:
    """shared/ is in every package."""
    stage_functions(build)
    write(project, {"shared/core/job.py": "STATUS = 'failed'\n"})

    assert rebuilt(build) == ["mail", "stream"]


def test_a_change_that_does_not_travel_rebuilds_nothing(project: Path, build: Build) -> None:
    """Tests and documents of a lane are not code of its Lambda."""
    stage_functions(build)
    write(
        project,
        {"functions/mail/test_tasks.py": "assert True\n", "shared/adapters/memory/store.py": "X = 1\n"},
    )

    assert rebuilt(build) == []


def test_a_function_that_is_gone_loses_its_package(project: Path, build: Build) -> None:
    """What is staged is what the source says, also after a deletion."""
    stage_functions(build)
    (project / "functions/mail/handler.py").unlink()
    stage_functions(build)

    assert not (build.stage / "mail").exists()
    assert not (build.stage / "mail.zip").exists()


def test_layers_that_nobody_uses_are_forgotten(project: Path, build: Build) -> None:
    """The cache does not grow with every edit."""
    for number in range(3):
        write(project, {"shared/core/job.py": f"STATUS = {number}\n"})
        packages = stage_functions(build)

    wanted = {key for package in packages for key in package.layers}
    assert {path.name for path in (build.out / ".cache").iterdir()} == wanted


def test_an_installation_that_fails_leaves_no_layer(project: Path, tmp_path: Path) -> None:
    """A layer appears whole or not at all: the next build tries again."""

    def broken(requirements: Path, target: Target) -> Fill:
        def fill(folder: Path) -> None:
            write(folder, {"half.py": ""})
            raise BuildError("no network")

        return fill

    with pytest.raises(BuildError, match="no network"):
        stage_functions(Build(root=project, out=tmp_path / "out", target=HERE, installer=broken))

    assert list((tmp_path / "out/.cache").iterdir()) == []


# ---------------------------------------------------------------------------------------------- import check
@pytest.fixture
def sdk(tmp_path: Path) -> Path:
    """A stand-in for the runtime's SDK."""
    names = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "urllib3")
    write(tmp_path / "sdk", {**{f"{name}/__init__.py": "" for name in names}, "six.py": ""})
    return tmp_path / "sdk"


def test_a_missing_dependency_is_found(build: Build, sdk: Path) -> None:
    """A handler that imports what neither its package nor the runtime brings is reported by name."""
    bare = replace(build, installer=FakeInstaller(wheels={}))
    stage_functions(bare)

    failures = check_imports(bare.stage, ["mail", "stream"], python=Path(sys.executable), sdk_from=sdk)

    assert [failure.function for failure in failures] == ["mail"]
    assert "vendored" in failures[0].reason


def test_the_developer_environment_is_not_lent(project: Path, build: Build, sdk: Path) -> None:
    """A module of the interpreter's own site-packages does not hide a missing dependency."""
    write(project, {"functions/stream/handler.py": "import pytest\n"})
    stage_functions(build)

    failures = check_imports(build.stage, ["stream"], python=Path(sys.executable), sdk_from=sdk)

    assert [failure.function for failure in failures] == ["stream"]


def test_settings_are_not_read_at_import(project: Path, build: Build, sdk: Path) -> None:
    """Handlers are imported with an empty environment; one that reads a variable at import is reported."""
    write(project, {"functions/stream/handler.py": "import os\nTABLE = os.environ['HOME']\n"})
    stage_functions(build)

    failures = check_imports(build.stage, ["stream"], python=Path(sys.executable), sdk_from=sdk)

    assert "HOME" in failures[0].reason


# ---------------------------------------------------------------------------------------------- targets, CLI
def test_lambda_wheels_are_for_arm_and_the_runtime_python() -> None:
    """The Lambda target names its platform and Python; the build machine's own do not matter."""
    assert lambda_target().pip_options == (
        "--platform",
        "manylinux2014_aarch64",
        "--python-version",
        "3.13",
        "--implementation",
        "cp",
    )


def test_targets_share_no_layer(tmp_path: Path) -> None:
    """Bytecode or not, here or there: another identity, hence another layer."""
    write(tmp_path, {".venv-emulator/bin/python": "", ".venv-emulator/pyvenv.cfg": "version = 3.11.7\n"})
    compiled = lambda_target(compiler=Path(sys.executable))

    assert len({lambda_target().identity, compiled.identity, local_target(tmp_path).identity}) == 3


def test_a_missing_emulator_says_what_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the emulator's environment the local target points to `make setup`."""
    assert command.main(["--target", "local", "--root", str(project)]) == 1
    assert "make setup" in capsys.readouterr().err


def test_a_missing_pin_file_says_what_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without pins nothing is fetched."""
    (project / "functions/requirements.txt").unlink()

    assert command.main(["--root", str(project)]) == 1
    assert "make lock" in capsys.readouterr().err


def test_bytecode_only_by_the_runtime_python(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytecode of another version would be dead weight: refused."""
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 3.9\n", encoding="utf-8")
    other.chmod(0o755)

    assert command.main(["--root", str(project), "--compile-with", str(other)]) == 1
    assert "3.9" in capsys.readouterr().err


def test_json_lists_every_package(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--json` gives sizes and places to a program; a project without dependencies needs no network."""
    write(project, {"functions/requirements.txt": "# nothing\n"})

    assert command.main(["--root", str(project), "--json"]) == 0

    packages = json.loads(capsys.readouterr().out)["packages"]
    assert [package["function"] for package in packages] == ["mail", "stream"]
    assert all(package["zipped_bytes"] > 0 for package in packages)


def test_source_files_skip_what_does_not_travel(project: Path) -> None:
    """Documents and memory adapters stay at home."""
    assert "shared/README.md" not in source_files(project, "shared")
    assert not any("memory" in name for name in source_files(project, "shared"))
