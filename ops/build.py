"""`python -m ops.build`: stages what each Lambda carries; `make build`.

    python -m ops.build --target lambda          build/lambda/<function>/ and .zip, for AWS
    python -m ops.build --target local           the same for the emulator on this machine
    python -m ops.build --target local --check   and import every handler in a clean interpreter

Nothing is fetched or written when nothing changed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from ops.packaging.errors import BuildError
from ops.packaging.importing import ImportFailure, check_imports, native_modules
from ops.packaging.staging import Build, Package, stage_functions
from ops.packaging.targets import LAMBDA_PYTHON, Target, lambda_target, local_target

ROOT = Path(__file__).resolve().parent.parent


def main(argv: Sequence[str] | None = None) -> int:
    """Builds, checks if asked, prints; 1 when something is wrong, with what to do about it."""
    options = _parser().parse_args(argv)
    started = time.perf_counter()
    try:
        root = options.root.resolve()
        out = options.out if options.out.is_absolute() else root / options.out
        build = Build(root=root, out=out, target=_target(options.target, root, options.compile_with))
        packages = stage_functions(build)
        failures = _check(build, packages) if options.check else []
    except BuildError as error:
        print(f"build: {error}", file=sys.stderr)
        return 1
    if options.json:
        listed = [asdict(package) for package in packages]
        problems = [asdict(failure) for failure in failures]
        print(json.dumps({"target": build.target.name, "packages": listed, "failures": problems}, indent=2))
    else:
        _print(build, packages, seconds=time.perf_counter() - started, quiet=options.quiet)
    for failure in failures:
        print(f"build: {failure.function} does not import: {failure.reason}", file=sys.stderr)
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m ops.build", description="Stage the packages of every function.")
    parser.add_argument("--target", choices=("lambda", "local"), default="lambda")
    parser.add_argument("--out", type=Path, default=Path("build"), help="where to stage (default: build)")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project to build (default: this one)")
    parser.add_argument("--check", action="store_true", help="import every staged handler in a clean interpreter")
    parser.add_argument(
        "--compile-with",
        metavar="PYTHON",
        help=f"write bytecode into the Lambda packages with this Python {LAMBDA_PYTHON} (faster cold starts)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="print one line, and only if something was rebuilt")
    return parser


def _target(name: str, root: Path, compile_with: str | None) -> Target:
    if name == "local":
        return local_target(root)
    return lambda_target(compiler=_compiler(compile_with) if compile_with else None)


def _compiler(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise BuildError(f"--compile-with: {name} is not on the PATH")
    version = _version(Path(found))
    if version != LAMBDA_PYTHON:
        raise BuildError(f"--compile-with: {name} is Python {version}; the Lambda runtime is {LAMBDA_PYTHON}")
    return Path(found)


def _version(python: Path) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([str(python), "-I", "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "(does not start)"


def _check(build: Build, packages: Sequence[Package]) -> list[ImportFailure]:
    """The import check of the staged packages; those with foreign machine code can only be checked there."""
    sdk = next(ROOT.glob(".venv-emulator/lib/python3.*/site-packages"), None)
    if sdk is None:
        raise BuildError("the emulator's environment (.venv-emulator) is missing; run `make setup`")
    names = [package.function for package in packages]
    if build.target.name == "lambda":
        foreign = [name for name in names if native_modules(build.stage / name)]
        for name in foreign:
            print(f"build: {name} has native modules; only `--target local` can check it here", file=sys.stderr)
        names = [name for name in names if name not in foreign]
    return check_imports(build.stage, names, python=_checker(build.target), sdk_from=sdk)


def _checker(target: Target) -> Path:
    """The interpreter to import with: the target's own version where this machine has it."""
    if target.compiler is not None:
        return target.compiler
    found = shutil.which(f"python{LAMBDA_PYTHON}")
    return Path(found) if found and _version(Path(found)) == LAMBDA_PYTHON else Path(sys.executable)


def _print(build: Build, packages: Sequence[Package], *, seconds: float, quiet: bool) -> None:
    rebuilt = sum(package.rebuilt for package in packages)
    if quiet:
        if rebuilt:
            print(f"built {rebuilt} of {len(packages)} packages for {build.target.name} in {seconds:.1f} s")
        return
    if not packages:
        print("no function has a handler.py yet; nothing to stage")
        return
    width = max(len(package.function) for package in packages)
    print(f"{'function':<{width}}  {'zipped':>9}  {'unzipped':>9}  {'files':>6}")
    for package in sorted(packages, key=lambda package: -package.zipped_bytes):
        sizes = f"{_megabytes(package.zipped_bytes):>9}  {_megabytes(package.unzipped_bytes):>9}"
        news = "" if package.rebuilt else "  unchanged"
        print(f"{package.function:<{width}}  {sizes}  {package.files:>6}{news}")
    print(f"{len(packages)} packages in {build.stage}, {rebuilt} rebuilt, {seconds:.2f} s")


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.2f} MB"


if __name__ == "__main__":
    sys.exit(main())
