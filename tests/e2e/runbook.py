"""A runbook, taken apart: what an operator types, and what they are promised to read.

    ```sh                    typed by whoever follows the runbook
    ```sh somebody-else      typed by another person
    ```sh until              typed again and again until it says what is promised
    ```sh elsewhere          not for the local stage: the page says why, and `ELSEWHERE` lists it
    ```output                beside it, what the answer says: these lines, in this order, among others

In an answer `…` stands for anything, and a word of `PLACEHOLDERS` for what stands there: later commands use it.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.waiting import PATIENCE_S

PLACEHOLDERS = {"PLAN": r"[0-9a-f]{12,32}", "ID": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"}
OTHER, UNTIL, AWAY = "somebody-else", "until", "elsewhere"
ELSEWHERE = {"redrive.md": ("--native", "local stage has no move tasks")}
"""Blocks that are not typed here: a part of their commands, and what the page says about it."""
RUNBOOKS = Path(__file__).parents[2] / "docs" / "runbooks"
_FENCE = re.compile(r"\s*```(.*)")
_WORD = re.compile(rf"\b({'|'.join(PLACEHOLDERS)})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of commands with its promise."""

    where: str
    commands: str
    how: frozenset[str]
    promise: tuple[str, ...]


def typed(name: str) -> list[Block]:
    """The blocks of a page that can be typed on the local stage."""
    return [block for block in blocks(RUNBOOKS / f"{name}.md") if AWAY not in block.how]


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a runbook, in order; anything that is neither commands nor their answer is refused."""
    found: list[Block] = []
    fences = _fences(page)
    while fences:
        line, info, text = fences.pop(0)
        where, (kind, *how) = f"{page.name}:{line}", info.split() or [""]
        if kind != "sh" or not set(how) <= {OTHER, UNTIL, AWAY}:
            raise ValueError(
                f"{where}: a block is `sh`, or `sh` with {OTHER}, {UNTIL} or {AWAY}; an `output` is below it"
            )
        if AWAY in how:
            found.append(Block(where=where, commands=text, how=frozenset(how), promise=()))
            continue
        if not fences or fences[0][1] != "output":
            raise ValueError(f"{where}: nothing says what these commands answer")
        promise = tuple(filter(None, map(str.strip, fences.pop(0)[2].splitlines())))
        found.append(Block(where=where, commands=text, how=frozenset(how), promise=promise))
    return found


def _fences(page: Path) -> list[tuple[int, str, str]]:
    """(line, words after the fence, text) of each."""
    found: list[tuple[int, str, str]] = []
    inside: list[str] | None = None
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        fence = _FENCE.fullmatch(line)
        if fence and inside is None:
            opened, inside = (number, fence[1].strip()), []
        elif fence and inside is not None:
            found.append((*opened, "\n".join(inside)))
            inside = None
        elif inside is not None:
            inside.append(line.strip())
    if inside is not None:
        raise ValueError(f"{page.name}: a block is never closed")
    return found


@dataclass(slots=True, kw_only=True)
class Reader:
    """Follows a runbook to the letter."""

    me: Mapping[str, str]
    """Environment of whoever follows it."""
    other: Mapping[str, str]
    folder: Path
    known: dict[str, str] = field(default_factory=dict)
    """What the words in capitals stand for, as the answers gave it."""

    def follow(self, block: Block) -> str:
        """Type a block, and hold the answer against the promise. The answer."""
        commands = _WORD.sub(lambda word: self._given(word[1], block), block.commands)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run(
                ["sh", "-eu", "-c", commands],
                cwd=self.folder,
                env={**(self.other if OTHER in block.how else self.me)},
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE_S + 60,
            )
            answer = done.stdout + done.stderr
            found = promised(block.promise, answer)
            if done.returncode == 0 and found is not None:
                self.known |= found
                return answer
            if UNTIL not in block.how or time.monotonic() > deadline:
                raise AssertionError(
                    f"{block.where} ended with {done.returncode}\n$ {commands}\n{answer}\npromised: {block.promise}"
                )
            time.sleep(1)

    def _given(self, word: str, block: Block) -> str:
        assert word in self.known, f"{block.where}: no answer before it says which {word}"
        return shlex.quote(self.known[word])


def promised(promise: tuple[str, ...], answer: str) -> dict[str, str] | None:
    """What the placeholders of a promise stand for in an answer; None when the answer does not keep it."""
    lines, found = iter(answer.splitlines()), dict[str, str]()
    for wanted in promise:
        pattern = re.compile(_pattern(wanted))
        match = next((match for line in lines if (match := pattern.search(" ".join(line.split())))), None)
        if match is None:
            return None
        found |= match.groupdict()
    return found


def _pattern(line: str) -> str:
    seen: set[str] = set()

    def part(text: str) -> str:
        if text == "…":
            return ".*"
        if text not in PLACEHOLDERS:
            return re.escape(text)
        again, _ = text in seen, seen.add(text)
        return f"(?P={text})" if again else f"(?P<{text}>{PLACEHOLDERS[text]})"

    return "".join(map(part, re.split(rf"(…|\b(?:{'|'.join(PLACEHOLDERS)})\b)", " ".join(line.split()))))
