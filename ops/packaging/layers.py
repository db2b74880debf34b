"""Layers: the parts a package is put together from, each made once and kept by the hash of its content.

A function's package is the union of four layers: its dependencies, `shared/`, its own folder, and a file that says
where it runs. A change in one lane's task makes one small layer anew; the dependencies are fetched when their pins
change.

A layer is a folder `files/` and the same content as `layer.zip`, with fixed dates, modes and order, so that
the same input gives the same bytes and AWS sees no new code where there is none.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ops.packaging.errors import BuildError
from ops.packaging.targets import Target
from shared.contract import names

#: Part of every key; raise it when the way layers are made changes.
FORMAT = 1

#: The earliest date a zip can hold; bytecode is marked as unchecked, so no date is ever compared.
FIXED_DATE = (1980, 1, 1, 0, 0, 0)
FIXED_MTIME = 315_532_800

#: Names (of any depth) that a package never needs at run time.
NEVER_NAMES = frozenset({"__pycache__", "tests", "bin", "py.typed", ".DS_Store"})
NEVER_SUFFIXES = (".pyi", ".pyc", ".pyo", ".in", ".md")

#: What pip writes beside a package about its own installation. METADATA and the licences stay: the licences
#: ask to travel with the code, and `importlib.metadata` works.
PIP_NOTES = frozenset({"RECORD", "INSTALLER", "REQUESTED", "WHEEL", "direct_url.json", "top_level.txt"})

#: Large parts of dependencies that nothing in a Lambda reads, by path, with the reason.
UNUSED_PARTS: Mapping[str, str] = {
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/swagger-ui-bundle.min.js": "no API browser",
    "aws_lambda_powertools/event_handler/openapi/swagger_ui/swagger-ui.min.css": "no API browser",
}

_COMPILE = """
import py_compile, sys
from pathlib import Path
for folder in sys.argv[1:]:
    for source in sorted(Path(folder).rglob("*.py")):
        py_compile.compile(
            str(source),
            dfile="/var/task/" + source.relative_to(folder).as_posix(),
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """A finished layer in the cache."""

    key: str
    folder: Path

    @property
    def files(self) -> Path:
        return self.folder / "files"

    @property
    def archive(self) -> Path:
        return self.folder / "layer.zip"


#: Fills an empty folder with the layer's files.
Fill = Callable[[Path], None]


class LayerCache:
    """Layers by key, under one folder. A layer appears whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, fill: Fill, *, compiler: Path | None) -> Layer:
        """The layer of this key, filled, compiled and zipped if it is not there yet."""
        layer = Layer(key=key, folder=self._folder / key)
        if layer.archive.exists():
            return layer
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=self._folder))
        try:
            files = unfinished / "files"
            files.mkdir()
            fill(files)
            if compiler is not None:
                _compile(files, compiler)
            _fix_dates_and_modes(files)
            write_archive(files, unfinished / "layer.zip")
            shutil.rmtree(layer.folder, ignore_errors=True)
            unfinished.rename(layer.folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
        return layer

    def keep_only(self, keys: Iterable[str]) -> None:
        """Forgets every layer that no staged package uses any more."""
        wanted = set(keys)
        for entry in self._folder.iterdir() if self._folder.exists() else ():
            if entry.name not in wanted:
                shutil.rmtree(entry, ignore_errors=True)


# ------------------------------------------------------------------------------------------------ sources
def source_key(sources: Mapping[str, Path], target: Target) -> str:
    """The key of a layer of our own files: their paths in the package and their content."""
    digest = _digest("source", target.identity)
    for name in sorted(sources):
        content = sources[name].read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:24]


def copy_sources(sources: Mapping[str, Path]) -> Fill:
    """Fills a layer with our own files, each at its path in the package."""

    def fill(folder: Path) -> None:
        for name, source in sources.items():
            destination = folder / name
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, destination)

    return fill


# ----------------------------------------------------------------------------------------------- its place
def place_key(target: Target) -> str:
    """The key of a layer that says where the package runs."""
    return _digest("place", target.identity).hexdigest()[:24]


def tell_place(target: Target) -> Fill:
    """Fills a layer with the runtime and architecture of its target: synth compares them with the function's."""

    def fill(folder: Path) -> None:
        told = {"runtime": target.runtime, "architecture": target.architecture}
        (folder / names.BUILT_FOR_FILE).write_text(json.dumps(told), encoding="utf-8")

    return fill


# ------------------------------------------------------------------------------------------- dependencies
def dependency_key(requirements: Path, target: Target) -> str:
    """The key of a dependency layer: the pins, includes followed, and the target they are fetched for."""
    digest = _digest("dependencies", target.identity)
    for line in requirement_lines(requirements):
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()[:24]


def requirement_lines(requirements: Path) -> Iterator[str]:
    """The lines of a pin file that mean something, with `-r other.txt` replaced by its lines."""
    if not requirements.exists():
        raise BuildError(f"{requirements} is missing; run `make lock`")
    for raw in requirements.read_text(encoding="utf-8").splitlines():
        line = raw.strip()
        if line.startswith("-r "):
            yield from requirement_lines(requirements.parent / line.removeprefix("-r ").strip())
        elif line and not line.startswith("#"):
            yield line


def install_dependencies(requirements: Path, target: Target) -> Fill:
    """Fills a layer with the pinned wheels of the target: hashes required, nothing built from source."""

    def fill(folder: Path) -> None:
        if not any(requirement_lines(requirements)):
            return
        options = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "--no-compile", "--no-input"]
        command = [str(target.installer), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += [*options, *target.pip_options, "--target", str(folder), "-r", str(requirements)]
        # A caller's habits (PIP_USER, PIP_TARGET) must not decide where these files go; a mirror may stay.
        habits = {
            "PIP_USER",
            "PIP_TARGET",
            "PIP_PREFIX",
            "PIP_REQUIRE_VIRTUALENV",
            "PYTHONPATH",
            "PYTHONHOME",
        }
        environment = {name: value for name, value in os.environ.items() if name not in habits}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        if done.returncode != 0:
            raise BuildError(f"pip could not fetch {requirements} for {target.name}:\n{done.stderr.strip()}")
        prune(folder)

    return fill


def prune(folder: Path) -> None:
    """Removes from installed wheels what no Lambda needs."""
    for path in sorted(folder.rglob("*"), reverse=True):
        name = path.relative_to(folder).as_posix()
        about = ".dist-info/" in name
        if path.is_dir():
            if path.name in NEVER_NAMES or not any(path.iterdir()):
                shutil.rmtree(path)
        elif about:
            if path.name in PIP_NOTES:
                path.unlink()
        elif path.name in NEVER_NAMES or path.name.endswith(NEVER_SUFFIXES) or name in UNUSED_PARTS:
            path.unlink()


# ------------------------------------------------------------------------------------------------ archives
def write_archive(folder: Path, archive: Path) -> None:
    """Zips a folder: sorted names, fixed dates and modes, so the same files give the same bytes."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as out:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            info = zipfile.ZipInfo(path.relative_to(folder).as_posix(), FIXED_DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o100644 << 16
            out.writestr(info, path.read_bytes())


def _compile(folder: Path, compiler: Path) -> None:
    done = subprocess.run(
        [str(compiler), "-I", "-B", "-c", _COMPILE, str(folder)],
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "0"},
        check=False,
    )
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()
        raise BuildError("a module does not compile:\n" + "\n".join(reason[-4:]))


def _fix_dates_and_modes(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.chmod(0o755 if path.is_dir() else 0o644)
        os.utime(path, (FIXED_MTIME, FIXED_MTIME))


def _digest(kind: str, identity: str) -> hashlib._Hash:
    return hashlib.sha256(f"{FORMAT}\0{kind}\0{identity}\0".encode())
