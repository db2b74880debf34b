"""The documents name commands that exist, and the reference names them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.ops.cli.test_command import COMMANDS

ROOT = Path(__file__).resolve().parents[4]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])
_CODE = re.compile(r"`(penstock [^`\n]*)`|^\s*(?:\$ )?(penstock [^\n]*)$", re.MULTILINE)
LISTING = ("runs",)
"""Groups whose `list` may be left out: what stands there is its argument."""
_GROUPS = {words[0] for words in COMMANDS if len(words) > 1}


def named(page: Path) -> set[tuple[str, ...]]:
    """Every command a page names, by its words."""
    found = set()
    for match in _CODE.finditer(page.read_text(encoding="utf-8")):
        words = (match[1] or match[2]).split()[1:]
        plain = [word for word in words if not word.startswith("-")]
        if plain and plain[0].isalpha() and plain[0].islower():
            listed = plain[0] in LISTING and tuple(plain[:2]) not in COMMANDS
            found.add(tuple(plain[:2]) if plain[0] in _GROUPS and len(plain) > 1 and not listed else (plain[0],))
    return found


def test_the_reference_is_whole() -> None:
    """`docs/cli.md` lists every command there is, and no other."""
    rows = re.findall(r"^\| `penstock ([a-z -]+)` \|", (ROOT / "docs" / "cli.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(" ".join(words) for words in COMMANDS)


@pytest.mark.parametrize("page", [page for page in PAGES if page.exists()], ids=lambda page: page.name)
def test_pages_name_commands_that_exist(page: Path) -> None:
    """Whatever a page tells people to type can be typed."""
    known = {*COMMANDS, *((group,) for group in _GROUPS)}
    # Written by the scaffolding of lanes, which brings its own command.
    assert {words for words in named(page) if words[0] != "new"} <= known
