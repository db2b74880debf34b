"""Whether the app changed since it was deployed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

_IGNORED = {"tests", "docs", "ops", "node_modules", "cdk.out", "__pycache__"}
"""Folders that no template and no function is made of."""
_BUILD = "build/"
_PACKAGES = "build/local"
"""All of `build` that counts here: beside it stand other stages' packages and the reports of tests."""


def fingerprint(app_dir: Path) -> str:
    """Names, sizes and times of every file the app can be made of, as one hash; reads no file."""
    digest = hashlib.sha256()
    for name, size, time_ns in _files(str(app_dir), ""):
        digest.update(f"{name}\0{size}\0{time_ns}\n".encode())
    return digest.hexdigest()


def _files(folder: str, prefix: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    names = {entry.name for entry in entries}
    for entry in entries:
        name = f"{prefix}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            # A staged package stands as an archive beside its folder: the archive is what is deployed.
            if not _ignored(entry.name, name) and f"{entry.name}.zip" not in names:
                yield from _files(entry.path, f"{name}/")
        elif entry.is_file() and not entry.name.endswith((".pyc", ".md")):
            stat = entry.stat()
            yield name, stat.st_size, stat.st_mtime_ns


def _ignored(folder: str, path: str) -> bool:
    if path.startswith(_BUILD) and not path.startswith(_PACKAGES):
        return True
    return folder in _IGNORED or folder.startswith(".") or folder.endswith(".egg-info")
