"""The supply chain: every package is pinned by hash, and what is pinned is what is installed."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.packaging.errors import BuildError
from ops.packaging.layers import install_dependencies, requirement_lines
from ops.packaging.targets import Target

ROOT = Path(__file__).resolve().parents[3]
PIN_FILES = [
    "requirements.txt",
    "functions/requirements.txt",
    "functions/engine.txt",
    "functions/rewrite/requirements.txt",
    "ops/emulator/requirements.txt",
]
HERE = Target(name="here", identity="here", runtime="", architecture="", installer=Path(sys.executable))


def pins(name: str) -> Iterator[tuple[str, str, int]]:
    """Package, version and number of hashes of each pin in a file."""
    text = "\n".join(requirement_lines(ROOT / name))
    for block in re.split(r"\n(?=[a-z0-9])", text):
        found = re.match(r"([a-z0-9._-]+)(?:\[[a-z0-9,-]+\])?==(\S+)", block)
        assert found, f"{name}: {block.splitlines()[0]!r} is no exact pin"
        yield found[1], found[2], block.count("--hash=sha256:")


@pytest.mark.parametrize("name", PIN_FILES)
@pytest.mark.fault("J8")
def test_every_package_is_pinned_with_hashes(name: str) -> None:
    """No pin file holds a package without an exact version and a hash."""
    assert [package for package, _, hashes in pins(name) if hashes == 0] == []


@pytest.mark.parametrize("name", PIN_FILES)
def test_pin_files_name_no_registry(name: str) -> None:
    """Where packages come from is the installation's choice: no index, no address, no local path."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"^--|://|file:|^[./~]", text, re.MULTILINE)


def test_the_node_lock_names_no_registry() -> None:
    """What comes from npm is pinned exactly, by integrity hash, without an address."""
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert not any("resolved" in entry for entry in packages.values())
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert {name: packages[f"node_modules/{name}"]["version"] for name in wanted} == wanted


@pytest.mark.parametrize("name", ["functions/requirements.txt", "functions/engine.txt"])
def test_developers_run_what_lambdas_carry(name: str) -> None:
    """Each package of a Lambda has the same version in the developer's environment."""
    developer = {(package, version) for package, version, _ in pins("requirements.txt")}
    assert {(package, version) for package, version, _ in pins(name)} <= developer


def test_lambdas_do_not_carry_the_sdk() -> None:
    """boto3 comes from the runtime."""
    carried = {package for package, _, _ in pins("functions/requirements.txt")}
    assert carried.isdisjoint({"boto3", "botocore", "s3transfer"})


def test_tests_and_local_lambdas_run_the_same_sdk() -> None:
    """The emulator pins its SDK; the developer's environment follows it."""
    developer = {package: version for package, version, _ in pins("requirements.txt")}
    emulator = {package: version for package, version, _ in pins("ops/emulator/requirements.txt")}
    assert {name: developer[name] for name in ("boto3", "botocore")} == {
        name: emulator[name] for name in ("boto3", "botocore")
    }


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel `tiny` 1.0 that pip finds without any registry."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    files = {
        "tiny.py": "NAME = 'tiny'\n",
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(text)}\n"
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr("tiny-1.0.dist-info/RECORD", record + "tiny-1.0.dist-info/RECORD,,\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return path


def install(requirement: str, tmp_path: Path) -> Path:
    pin_file = tmp_path / "requirements.txt"
    pin_file.write_text(requirement + "\n", encoding="utf-8")
    folder = tmp_path / "layer"
    folder.mkdir()
    install_dependencies(pin_file, HERE)(folder)
    return folder


@pytest.mark.fault("J8")
def test_the_right_hash_installs(wheel: Path, tmp_path: Path) -> None:
    """The control of the two below: with its own hash the wheel is taken."""
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    folder = install(f"tiny==1.0 --hash=sha256:{digest}", tmp_path)

    assert (folder / "tiny.py").read_text() == "NAME = 'tiny'\n"


@pytest.mark.fault("J8")
def test_a_tampered_package_is_refused(wheel: Path, tmp_path: Path) -> None:
    """A wheel whose bytes are not those that were locked does not reach a package."""
    with pytest.raises(BuildError, match="DO NOT MATCH THE HASHES"):
        install(f"tiny==1.0 --hash=sha256:{'0' * 64}", tmp_path)


@pytest.mark.fault("J8")
def test_a_package_without_hash_is_refused(wheel: Path, tmp_path: Path) -> None:
    """A pin that somebody wrote by hand, without a hash, does not reach a package."""
    with pytest.raises(BuildError, match="hash"):
        install("tiny==1.0", tmp_path)
