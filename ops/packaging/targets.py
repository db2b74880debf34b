"""Where a package will run: on AWS Lambda, or on this machine under the emulator.

No production code asks which; only the wheels, the bytecode and the interpreter of the import check differ.
"""

from __future__ import annotations

import platform
import sys
from dataclasses import dataclass
from pathlib import Path

from ops.packaging.errors import BuildError

LAMBDA_PYTHON = "3.13"
LAMBDA_ARCHITECTURE = "arm64"
LAMBDA_PLATFORM = "manylinux2014_aarch64"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One place to run. `identity` is in every cache key: two targets never share a layer by accident."""

    name: str
    identity: str
    #: The words of Lambda for it: a package tells them to synth, which compares.
    runtime: str
    architecture: str
    #: The interpreter whose pip fetches the wheels.
    installer: Path
    #: What tells that pip which wheels to take.
    pip_options: tuple[str, ...] = ()
    #: The interpreter that writes bytecode into the package; none: the runtime compiles at every cold start.
    compiler: Path | None = None


def lambda_target(*, compiler: Path | None = None) -> Target:
    """The Lambda runtime on arm64. The build machine needs neither that processor nor that Python.

    Bytecode is written only by an interpreter of the runtime's own version, and only when one is named:
    finding one by chance would give the same source another asset hash on another machine.
    """
    return Target(
        name="lambda",
        identity=f"{LAMBDA_PLATFORM}-{LAMBDA_PYTHON}-{'compiled' if compiler else 'source'}",
        runtime=f"python{LAMBDA_PYTHON}",
        architecture=LAMBDA_ARCHITECTURE,
        installer=Path(sys.executable),
        pip_options=(
            "--platform",
            LAMBDA_PLATFORM,
            "--python-version",
            LAMBDA_PYTHON,
            "--implementation",
            "cp",
        ),
        compiler=compiler,
    )


def local_target(root: Path) -> Target:
    """This machine, with the emulator's interpreter: the emulator runs Lambdas on its own Python."""
    venv = root / ".venv-emulator"
    python = venv / "bin" / "python"
    if not python.exists():
        raise BuildError("the emulator's environment (.venv-emulator) is missing; run `make setup`")
    version = _venv_version(venv)
    return Target(
        name="local",
        identity=f"{sys.platform}-{platform.machine()}-{version}-compiled",
        runtime=f"python{version.rpartition('.')[0]}",
        architecture=platform.machine(),
        installer=python,
        compiler=python,
    )


def _venv_version(venv: Path) -> str:
    """Read, not asked: starting an interpreter costs more than the whole of a build with nothing to do."""
    for line in (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "version":
            return value.strip()
    raise BuildError(f"{venv.name}/pyvenv.cfg names no version; run `make clean setup`")
