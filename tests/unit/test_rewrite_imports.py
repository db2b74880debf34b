"""The provider's SDK is large: only the functions that speak with it pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ops.packaging.layers import requirement_lines
from ops.packaging.staging import requirements_of
from tests.mutants.mutant import ROOT

IMPORTING = "import sys, importlib; importlib.import_module(sys.argv[1]); print('openai' in sys.modules)"


@pytest.mark.parametrize("function", ["support", "extraction", "stream", "sweeper", "rewrite"])
def test_nobody_imports_the_sdk_by_being_imported(function: str) -> None:
    """Neither other functions nor the rewrite functions before their first question to a provider."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, f"functions.{function}.handler"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"


def test_only_the_rewrite_functions_carry_it() -> None:
    """By the pins that each package is built from."""
    functions = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))
    carrying = [
        name
        for name in functions
        if any(line.startswith("openai==") for line in requirement_lines(requirements_of(ROOT, name)))
    ]
    assert carrying == ["rewrite"]
