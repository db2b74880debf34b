"""The staged packages that synth reads. Synth builds nothing: it needs no network and no Docker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from aws_cdk import aws_lambda as lambda_

from infra.stage import ROOT

BUILD_DIR_VARIABLE = "PENSTOCK_BUILD_DIR"


class MissingPackage(Exception):
    """A function has not been staged; the message says which command does it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """`build/<target>`: one archive (or folder) per function."""

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
        for function in functions:
            handler = folder / function / "functions" / function / "handler.py"
            handler.parent.mkdir(parents=True, exist_ok=True)
            handler.write_text("def handler(event, context): ...\n", encoding="utf-8")
        return cls(folder=folder, target="placeholder")

    def code(self, function: str) -> lambda_.Code:
        """The function's code. The archive is preferred: one file to hash and copy where a folder is hundreds."""
        for candidate in (self.folder / f"{function}.zip", self.folder / function):
            if candidate.exists():
                return lambda_.Code.from_asset(str(candidate))
        raise MissingPackage(
            f"the package of function {function!r} is not in {self.folder}: run make build TARGET={self.target} first"
        )
