"""The local stack for the end-to-end tests: one for the whole session, on ports of its own.

`PENSTOCK_E2E_STACK=name` uses a stack that stays: brought up if it is not running, never stopped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ops.local import stack, state
from ops.local.clients import Clients
from ops.local.state import StackState
from tests.e2e.paths import LocalStage

SHARED = "PENSTOCK_E2E_STACK"
PREFIX = "e2e-"
HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is an end-to-end test, and all of them run on one worker: they share a stack."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.e2e)
            if item.get_closest_marker("xdist_group") is None:
                item.add_marker(pytest.mark.xdist_group("e2e"))


@pytest.fixture(scope="session")
def local_stack() -> Iterator[StackState]:
    """The running stack. Its name carries this process's number, so no two test runs meet."""
    shared = os.environ.get(SHARED)
    if shared:
        yield stack.up(name=shared, app_dir=state.ROOT)
        return
    sweep()
    name = f"{PREFIX}{os.getpid()}"
    try:
        yield stack.up(name=name, app_dir=state.ROOT)
    finally:
        stack.down(name=name)


def sweep() -> None:
    """Stop and remove what test runs that were killed left behind."""
    for name in state.names():
        owner = name.removeprefix(PREFIX).partition("-")[0]
        if name.startswith(PREFIX) and owner.isdigit() and _dead(int(owner)):
            stack.down(name=name)
            shutil.rmtree(state.folder(name), ignore_errors=True)


def _dead(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


@pytest.fixture(autouse=True)
def _only_the_local_stack(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every boto3 client a test makes reaches the local stack, whatever the caller's AWS settings are."""
    running: StackState = request.getfixturevalue("local_stack")
    for name in list(os.environ):
        if name.startswith("AWS_") or (name.startswith("PENSTOCK_") and name not in _SETTINGS):
            monkeypatch.delenv(name)
    for name, value in stack.environment(running).items():
        monkeypatch.setenv(name, value)


_SETTINGS = (SHARED, "PENSTOCK_HOME", "PENSTOCK_CDK", "PENSTOCK_EMULATOR_PYTHON", "PENSTOCK_BUILD_DIR")


@pytest.fixture(scope="session")
def local_clients(local_stack: StackState) -> Clients:
    """boto3 clients of the running stack."""
    return Clients(
        endpoint=local_stack.endpoint,
        access_key=local_stack.access_key,
        region=local_stack.region,
        account=local_stack.account,
    )


@pytest.fixture(scope="session")
def stage(local_stack: StackState, local_clients: Clients) -> LocalStage:
    """The running stage, as its producers and operators reach it."""
    return LocalStage(state=local_stack, clients=local_clients)
