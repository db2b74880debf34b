"""The staged packages that synth reads. Synth builds nothing: it needs no network and no Docker.

It only lays a function's settings beside its code: code is built once, for all stages.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import aws_lambda as lambda_

from infra.stage import ROOT
from shared.contract import names

BUILD_DIR_VARIABLE = "PENSTOCK_BUILD_DIR"
BUILT_FOR = {"runtime": "python3.13", "architecture": "arm64"}
"""What every function runs on; what `make build` stages says the same of itself."""
LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The same settings give the same archive."""


class MissingPackage(Exception):
    """A function has not been staged; the message says which command does it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """`build/<target>`: one archive per function."""

    folder: Path
    target: str

    @classmethod
    def of_stage(cls, stage: str, build_dir: str | None = None) -> Packages:
        """Stage local runs on this machine's interpreter; every other stage on the Lambda runtime."""
        target = "local" if stage == "local" else "lambda"
        return cls(folder=(Path(build_dir) if build_dir else ROOT / "build") / target, target=target)

    @classmethod
    def placeholders(cls, folder: Path, functions: Iterable[str]) -> Packages:
        """Packages with nothing in them: enough to look at templates, never to deploy."""
        folder.mkdir(parents=True, exist_ok=True)
        for function in functions:
            with zipfile.ZipFile(folder / f"{function}.zip", "w") as archive:
                _write(archive, f"functions/{function}/handler.py", "def handler(event, context): ...\n")
                _write(archive, names.BUILT_FOR_FILE, json.dumps(BUILT_FOR))
        return cls(folder=folder, target="placeholder")

    @contextmanager
    def code(self, function: str, settings: str) -> Iterator[lambda_.Code]:
        """The function's code with its settings, for as long as it takes the CDK to copy it."""
        staged = self.folder / f"{function}.zip"
        if not staged.exists():
            raise MissingPackage(
                f"the package of function {function!r} is not in {self.folder}:"
                f" run make build TARGET={self.target} first"
            )
        with tempfile.TemporaryDirectory() as place:
            archive = Path(place) / staged.name
            shutil.copyfile(staged, archive)
            if settings:
                with zipfile.ZipFile(archive, "a") as package:
                    _write(package, names.SETTINGS_FILE, settings)
            yield lambda_.Code.from_asset(str(archive))


def _write(archive: zipfile.ZipFile, name: str, text: str) -> None:
    entry = zipfile.ZipInfo(name, date_time=LONG_AGO)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
