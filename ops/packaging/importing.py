"""The import check: every staged handler imports with what its package and the runtime bring, and no more.

The emulator runs Lambdas on its own interpreter and lends them its site-packages, so a dependency that was
forgotten is found there by nobody, and on AWS by the first customer.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ops.packaging.errors import BuildError

#: What the Lambda runtime puts on the path besides the standard library.
RUNTIME_MODULES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")

_IMPORT = """
import importlib, sys
staged, sdk, module = sys.argv[1:]
sys.path[:0] = [staged]
sys.path.append(sdk)
importlib.import_module(module)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportFailure:
    """A handler that does not import, with the last words of the interpreter."""

    function: str
    reason: str


def check_imports(stage: Path, functions: Sequence[str], *, python: Path, sdk_from: Path) -> list[ImportFailure]:
    """Imports each `functions.<name>.handler` in an interpreter of its own, with an empty environment.

    No site-packages (`-S`), no user's paths (`-I`), no bytecode left behind (`-B`). An empty environment,
    because a module that reads its settings at import cannot be imported by a test or a tool.
    """
    with tempfile.TemporaryDirectory(prefix="penstock-sdk-") as folder, ThreadPoolExecutor(2) as pool:
        sdk = Path(folder)
        for name in RUNTIME_MODULES:
            source = sdk_from / name
            if not source.exists():
                raise BuildError(f"{name} is not in {sdk_from}; run `make setup`")
            (sdk / name).symlink_to(source)
        found = pool.map(lambda function: _import_one(stage, function, python=python, sdk=sdk), functions)
        return [failure for failure in found if failure is not None]


def _import_one(stage: Path, function: str, *, python: Path, sdk: Path) -> ImportFailure | None:
    module = f"functions.{function}.handler"
    command = [str(python), "-I", "-S", "-B", "-c", _IMPORT, str(stage / function), str(sdk), module]
    done = subprocess.run(command, capture_output=True, text=True, env={}, check=False)
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return ImportFailure(function=function, reason=lines[-1])


def native_modules(folder: Path) -> list[str]:
    """Compiled modules in a package: they import only on the machine they were built for."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.so"))
