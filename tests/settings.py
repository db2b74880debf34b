"""The settings that stand in a function's package, for functions that a test runs without one."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def settings_file(**parts: Mapping[str, Any]) -> str:
    """A file that says this of lanes, vendors, accounts and rules; the same parts give the same file."""
    return settings_text(json.dumps(parts))


def settings_text(text: str) -> str:
    """The same for a text that may be no settings at all."""
    path = Path(tempfile.gettempdir()) / f"penstock-settings-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if not path.exists():
        unfinished = Path(tempfile.mkstemp(dir=path.parent)[1])
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(path)
    return str(path)
