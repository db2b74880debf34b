"""What is uploaded: the zipped package of each function."""

from __future__ import annotations

import zipfile
from pathlib import Path

from ops.bench.table import Measured, Row
from ops.packaging.errors import BuildError
from ops.packaging.staging import Build, stage_functions
from ops.packaging.targets import lambda_target
from shared.contract import names

GROUP = "zipped package"
ROOT = Path(__file__).resolve().parents[2]
PROMISED_MB = 3.0
OUR_FOLDERS = ("functions/", "shared/")


def package(*, root: Path = ROOT) -> Measured:
    """The largest engine function, and the worker, as they are deployed."""
    try:
        staged = stage_functions(Build(root=root, out=root / "build", target=lambda_target()))
    except BuildError as error:
        return Measured(rows=(), notes=(f"Package sizes were not measured: {error}",))
    archives = {one.function: Path(one.archive) for one in staged}
    engine = {name: archives[name] for name in names.ENGINE_FUNCTIONS if name in archives}
    workers = {name: archive for name, archive in archives.items() if name not in engine}
    rows = []
    for what, group in (("largest engine function", engine), ("largest worker", workers)):
        archive = max(group.values(), key=_size_mb)
        rows.append(
            Row(
                group=GROUP,
                what=f"{what} ({archive.stem})",
                ours=_size_mb(archive),
                standard=_without_ours_mb(archive),
                unit="MB",
                digits=2,
                at_most=PROMISED_MB if group is engine else None,
            )
        )
    return Measured(
        rows=tuple(rows),
        notes=(
            "As uploaded for the Lambda runtime, megabytes of a million bytes. Standard: the same archive without our "
            "own code, since the standard way needs the same dependencies; the SDK comes with the runtime for both.",
        ),
    )


def _size_mb(archive: Path) -> float:
    return archive.stat().st_size / 1e6


def _without_ours_mb(archive: Path) -> float:
    """Less each of our files as packed, with its two headers."""
    with zipfile.ZipFile(archive) as opened:
        ours = [entry for entry in opened.infolist() if entry.filename.startswith(OUR_FOLDERS)]
    packed = sum(entry.compress_size + 76 + 2 * len(entry.filename.encode()) for entry in ours)
    return (archive.stat().st_size - packed) / 1e6
