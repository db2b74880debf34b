"""The record on disk: one JSON line a request, so that accepts survive a killed process."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path

from ops.vendors.record import Entry


class JournalError(Exception):
    """The record file cannot be used: another simulator holds it, or a line in it is not an entry."""


class Journal:
    """An append-only file of entries, held by one process at a time.

    A line reaches the operating system before `append` returns, so killing the process loses nothing
    that was answered. (It is not synced to the disk: a power cut is outside the promise.)
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(self._fd)
            raise JournalError(f"{path.name} is in use by another simulator") from exc

    def load(self) -> tuple[Entry, ...]:
        """Every entry written so far. A last line torn by a kill was never answered, and is cut off."""
        content = self._path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.ftruncate(self._fd, len(whole))
        entries = []
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entries.append(Entry.from_json(json.loads(line)))
            except (ValueError, KeyError, TypeError) as exc:
                raise JournalError(f"{self._path.name}, line {number}: not an entry of a record") from exc
        return tuple(entries)

    def append(self, entry: Entry) -> None:
        """Write one entry."""
        left = memoryview(json.dumps(entry.to_json(), separators=(",", ":")).encode() + b"\n")
        while left:
            left = left[os.write(self._fd, left) :]

    def clear(self) -> None:
        """Forget everything."""
        os.ftruncate(self._fd, 0)

    def close(self) -> None:
        """Let go of the file; the entries stay in it."""
        os.close(self._fd)
