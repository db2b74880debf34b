"""Staging: `build/<target>/<function>/` and `<function>.zip`, put together from layers.

The folder is for people, for the import check and for tests; the zip holds the same files and is what the
CDK app deploys (one file to hash and to copy, where a folder is six hundred).
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ops.packaging.errors import BuildError, RefusedContent
from ops.packaging.layers import (
    NEVER_NAMES,
    NEVER_SUFFIXES,
    Fill,
    Layer,
    LayerCache,
    copy_sources,
    dependency_key,
    install_dependencies,
    place_key,
    source_key,
    tell_place,
)
from ops.packaging.targets import Target

#: Provided by the Lambda runtime: carrying it costs 13 MB and freezes the SDK.
PROVIDED_BY_RUNTIME = ("boto3", "botocore", "s3transfer")

#: Parts of `shared/` that only tests and the simulator use.
NOT_FOR_LAMBDA = ("shared/adapters/memory/",)

#: How a dependency layer is filled; tests bring their own, which asks no network.
Installer = Callable[[Path, Target], Fill]


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """One staged function; its places are absolute."""

    function: str
    folder: str
    archive: str
    zipped_bytes: int
    unzipped_bytes: int
    files: int
    layers: tuple[str, ...]
    #: False: it was already there, unchanged.
    rebuilt: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """What to stage from, where to, and for whom."""

    root: Path
    out: Path
    target: Target
    installer: Installer = install_dependencies

    @property
    def stage(self) -> Path:
        return self.out / self.target.name

    @property
    def stamps(self) -> Path:
        return self.stage / ".stamps"


def stage_functions(build: Build) -> list[Package]:
    """Stages every function that has a handler; those that did not change are left untouched.

    A function that is gone loses its package. Two builds at once wait for each other.
    """
    with _alone(build.out):
        cache = LayerCache(build.out / ".cache")
        names = function_names(build.root)
        shared = source_files(build.root, "shared")
        packages = [_stage_one(build, cache, name, shared) for name in names]
        _remove_others(build, names)
        cache.keep_only(key for stamp in build.out.glob("*/.stamps/*.json") for key in _read(stamp).layers)
    return packages


def function_names(root: Path) -> list[str]:
    """The functions of the app: every folder of `functions/` with a `handler.py`."""
    return sorted(path.parent.name for path in (root / "functions").glob("*/handler.py"))


def source_files(root: Path, folder: str) -> dict[str, Path]:
    """Our own files under a folder that travel to Lambda, by their path in the package."""
    found = {}
    for path in sorted((root / folder).rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and _travels(name):
            found[name] = path
    return found


def requirements_of(root: Path, function: str) -> Path:
    """A function's own pins if it brings any, else those of all functions."""
    own = root / "functions" / function / "requirements.txt"
    return own if own.exists() else root / "functions" / "requirements.txt"


def _travels(name: str) -> bool:
    parts = name.split("/")
    return not (
        NEVER_NAMES.intersection(parts)
        or name.endswith(NEVER_SUFFIXES)
        or name.startswith(NOT_FOR_LAMBDA)
        or parts[-1].startswith(("test_", "requirements", "."))
    )


# ---------------------------------------------------------------------------------------------- one function
def _stage_one(build: Build, cache: LayerCache, function: str, shared: Mapping[str, Path]) -> Package:
    target = build.target
    requirements = requirements_of(build.root, function)
    own = source_files(build.root, f"functions/{function}")
    own["functions/__init__.py"] = build.root / "functions" / "__init__.py"
    wanted: list[tuple[str, Fill]] = [
        (dependency_key(requirements, target), build.installer(requirements, target)),
        (source_key(shared, target), copy_sources(shared)),
        (source_key(own, target), copy_sources(own)),
        (place_key(target), tell_place(target)),
    ]
    keys = tuple(key for key, _ in wanted)
    stamp = build.stamps / f"{function}.json"
    folder, archive = build.stage / function, build.stage / f"{function}.zip"
    if stamp.exists() and folder.is_dir() and archive.exists():
        package = _read(stamp)
        if package.layers == keys:
            return replace(package, folder=str(folder), archive=str(archive))  # the tree may have moved

    layers = [cache.get(key, fill, compiler=target.compiler) for key, fill in wanted]
    build.stamps.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unfinished-", dir=build.stage) as unfinished:
        fresh = Path(unfinished) / function
        files = _link_all(layers, fresh)
        _refuse_runtime_sdk(function, fresh)
        merge_archives([layer.archive for layer in layers], Path(unfinished) / "package.zip")
        shutil.rmtree(folder, ignore_errors=True)
        fresh.rename(folder)
        (Path(unfinished) / "package.zip").replace(archive)
    package = Package(
        function=function,
        folder=str(folder),
        archive=str(archive),
        zipped_bytes=archive.stat().st_size,
        unzipped_bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
        files=files,
        layers=keys,
    )
    stamp.write_text(json.dumps(asdict(package), indent=2), encoding="utf-8")
    return package


def _link_all(layers: Sequence[Layer], folder: Path) -> int:
    """Links every file of every layer into the folder; a file two layers bring is an error, not a choice."""
    folder.mkdir()
    count = 0
    for layer in layers:
        for here, folders, files in os.walk(layer.files):
            place = folder / Path(here).relative_to(layer.files)
            for name in folders:
                (place / name).mkdir(exist_ok=True)
            for name in files:
                source, destination = Path(here) / name, place / name
                if destination.exists():
                    raise BuildError(f"two layers bring {destination.relative_to(folder)}")
                try:
                    os.link(source, destination)
                except OSError:  # another file system, or one without links
                    shutil.copy2(source, destination)
                count += 1
    return count


def merge_archives(archives: Sequence[Path], merged: Path) -> None:
    """One zip from several, entry by entry. Entries are copied as they are, still compressed: compressing
    six hundred files again for every function would be most of the build.
    """
    with zipfile.ZipFile(merged, "w", zipfile.ZIP_DEFLATED) as out:
        for archive in archives:
            with zipfile.ZipFile(archive) as source, archive.open("rb") as raw:
                for info in source.infolist():
                    _copy_entry(info, raw.fileno(), out)


def _copy_entry(info: zipfile.ZipInfo, raw: int, out: zipfile.ZipFile) -> None:
    # The local header's name and extra lengths stand at 26 and 28; they may differ from the directory's.
    header = os.pread(raw, 30, info.header_offset)
    lengths = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    size = 30 + lengths + info.compress_size
    entry = os.pread(raw, size, info.header_offset)
    if len(entry) != size or out.fp is None:
        raise BuildError(f"the layer's archive is cut short at {info.filename}; remove build/.cache")
    info.header_offset = out.fp.tell()
    out.fp.write(entry)
    out.filelist.append(info)
    out.NameToInfo[info.filename] = info
    out.start_dir = out.fp.tell()
    out._didModify = True  # type: ignore[attr-defined]  # else close() writes no directory


def _refuse_runtime_sdk(function: str, folder: Path) -> None:
    carried = [name for name in PROVIDED_BY_RUNTIME if (folder / name).exists()]
    if carried:
        raise RefusedContent(
            f"{function}: {', '.join(carried)} must not be packaged, the Lambda runtime provides it; "
            f"take it out of the function's requirements"
        )


# -------------------------------------------------------------------------------------------------- upkeep
def _remove_others(build: Build, names: Sequence[str]) -> None:
    for entry in build.stage.iterdir() if build.stage.exists() else ():
        if entry.name != ".stamps" and entry.name.removesuffix(".zip") not in names:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for stamp in build.stamps.glob("*.json"):
        if stamp.stem not in names:
            stamp.unlink()


def _read(stamp: Path) -> Package:
    fields = json.loads(stamp.read_text(encoding="utf-8"))
    return Package(**{**fields, "layers": tuple(fields["layers"]), "rebuilt": False})


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
