"""Whether the app changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ops.local.fingerprint import fingerprint


@pytest.fixture
def app(tmp_path: Path) -> Path:
    for name in ("app.py", "infra/state.py", "build/local/stream.zip", "tests/test_x.py", ".git/HEAD", "docs/a.md"):
        place = tmp_path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x")
    return tmp_path


@pytest.mark.parametrize("name", ["app.py", "infra/state.py", "build/local/stream.zip"])
def test_what_the_app_is_made_of_counts(app: Path, name: str) -> None:
    """A changed, added or removed source changes the fingerprint."""
    before = fingerprint(app)
    (app / name).write_text("xy")
    changed = fingerprint(app)
    (app / name).unlink()
    removed = fingerprint(app)
    (app / f"{name}.new").write_text("x")
    assert len({before, changed, removed, fingerprint(app)}) == 4


def test_a_rewrite_of_the_same_size_counts(app: Path) -> None:
    """The time is looked at, not only the size."""
    before = fingerprint(app)
    (app / "app.py").write_text("y")
    os.utime(app / "app.py", ns=(1, 1))
    assert fingerprint(app) != before


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_x.py",
        ".git/HEAD",
        "docs/a.md",
        "infra/__pycache__/state.pyc",
        "build/reports/proof.json",
        "build/lambda/stream.zip",
        "build/local/stream/handler.py",
    ],
)
def test_what_the_app_is_not_made_of_does_not_count(app: Path, name: str) -> None:
    """Tests, documents, reports, other stages' packages, and a package's folder beside its archive deploy nothing."""
    before = fingerprint(app)
    (app / name).parent.mkdir(parents=True, exist_ok=True)
    (app / name).write_text("something else")
    assert fingerprint(app) == before


def test_a_broken_link_is_no_trouble(app: Path) -> None:
    """An editor's lock file points nowhere."""
    before = fingerprint(app)
    (app / "infra" / "lock.py").symlink_to("nowhere")
    assert fingerprint(app) == before
