"""A lane of your own: the scaffold, in a copy of the project, through memory and through the local stack."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ops.local.state import ROOT

NAME = "orders"
COPIED = ("shared", "functions", "infra", "ops", "config", "tests", "app.py", "cdk.json", "pyproject.toml")
LINKED = (".venv", ".venv-emulator", "node_modules")
RUN = """
import os
from pathlib import Path
from ops.local import stack
state = stack.up(name="orders-{pid}", app_dir=Path.cwd())
try:
    os.environ.update(stack.environment(state))
    from shared.client import Penstock
    from shared.adapters.aws.clients import client
    from shared.adapters.aws.jobs import DynamoDbJobStore
    from shared.contract import names
    from tests.waiting import until
    penstock = Penstock("local")
    ref = penstock.enqueue("orders", "notify", "acme", "order-1", {{"conversation_id": "c-1"}})
    jobs = DynamoDbJobStore(client=client("dynamodb"), table_name=names.table("local", "jobs"), lanes=penstock.lanes)
    until(lambda: jobs.get(ref.job_id).status.ended, "the job to end")
    job = jobs.get(ref.job_id)
    print("ended:", job.status, job.result)
finally:
    stack.down(name="orders-{pid}")
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project as a newcomer has it after `make setup`."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, tmp_path / name)
    for name in LINKED:
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def test_a_new_lane_runs_on_memory_and_on_the_local_stack(copy: Path) -> None:
    """One command writes it, nothing else is changed, and a job goes through it."""
    before = _snapshot(copy)
    written = json.loads(_ran(copy, "-m", "ops.cli", "new", "lane", NAME, "--json"))
    after = _snapshot(copy)
    assert {*written["files"], written["config"]} == {path for path in after if before.get(path) != after[path]}
    assert set(before) <= set(after)
    assert "1 passed" in _ran(copy, "-m", "pytest", f"functions/{NAME}")
    _ran(copy, "-m", "ops.build", "--target", "local")
    assert "ended: completed notified" in _ran(copy, "-c", RUN.format(pid=os.getpid()))


def _ran(where: Path, *arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PENSTOCK_"))}
    # The copy, not the installed project, is what is imported.
    env |= {"PYTHONPATH": str(where), "PENSTOCK_HOME": str(where / ".penstock")}
    done = subprocess.run([sys.executable, *arguments], cwd=where, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def _snapshot(where: Path) -> dict[str, bytes]:
    paths = [path for name in COPIED for path in [where / name, *(where / name).rglob("*")] if path.is_file()]
    return {str(path.relative_to(where)): path.read_bytes() for path in paths if "__pycache__" not in path.parts}
