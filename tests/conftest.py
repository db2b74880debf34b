"""Settings every test shares: fake credentials, no real AWS, and the report of what is proven."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.collector import look_seldom

pytest_plugins = ["tests.proof", "tests.crash.report", "tests.strange.report", "tests.engine.report"]

# Deterministic, and no minutes of shrinking: `HYPOTHESIS_PROFILE=deep` looks further and shrinks what it finds.
settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=60,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("deep", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


SLOW = (
    "tests/crash",
    "tests/leaks/test_canary_aws.py",
    "tests/unit/ops/cli",
    "tests/unit/ops/local",
    "tests/unit/ops/vendors",
    "tests/unit/ops/test_bench.py",
    "tests/unit/ops/test_build.py",
    "tests/unit/ops/test_pins.py",
)
"""Explorations, and tools tested with real processes, sockets and installs: left out of `make test-fast`."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what `make test-fast` leaves out."""
    for item in items:
        if item.path.relative_to(config.rootpath).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Everything is imported."""
    look_seldom()


@pytest.fixture(autouse=True)
def _no_real_aws(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test can reach a real account: the environment's AWS settings are replaced by fake ones."""
    if request.node.get_closest_marker("e2e"):
        return
    for name in list(os.environ):
        if name.startswith(("AWS_", "PENSTOCK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
