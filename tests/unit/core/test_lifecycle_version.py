"""The lifecycle has a version: nobody changes the law without saying so."""

from __future__ import annotations

import hashlib

import pytest

from shared.adapters.aws import jobs as aws_jobs
from shared.core import lifecycle

KNOWN = {1: "e8f40facdbdb6c32", 2: "ddde519403051f19", 3: "b1b417a9565bca21"}
"""Major number of the version → digest of its moves and its claim condition. One line is added, none changed."""
CLAIMS = {1: "e7d481e327a26633", 2: "e7d481e327a26633", 3: "e7d481e327a26633"}
"""Major number → digest of the condition DynamoDB is given with a claim."""

HOW = """
The transition table or the claim condition is not the one of version {version}.
If that is meant: raise the major number of VERSION in shared/core/lifecycle.py, say in the changelog what
rows of the old version mean now, and add this line to KNOWN in {file}:

    {major}: "{digest}",
"""


@pytest.mark.req("R18")
def test_the_law_does_not_change_without_its_major_number() -> None:
    """The digest of `MOVES` and `CLAIM_CONDITION` belongs to exactly one major number."""
    major = int(lifecycle.VERSION.split(".")[0])
    digest = lifecycle.digest()
    taken = next((known for known, of in KNOWN.items() if of == digest), None)
    wanted = major if taken is not None or major not in KNOWN else major + 1
    assert KNOWN.get(major) == digest, HOW.format(
        version=lifecycle.VERSION, file=__file__.rpartition("/")[2], major=wanted, digest=digest
    )


@pytest.mark.req("R18")
def test_every_part_of_the_law_is_in_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A move more, a move less, another state, another reason or another claim condition: another digest."""
    before = lifecycle.digest()
    moves = lifecycle.MOVES
    variants: list[tuple[str, object]] = [
        ("CLAIM_CONDITION", lifecycle.CLAIM_CONDITION + " or anything"),
        ("MOVES", moves[1:]),
        ("MOVES", (*moves, moves[0])),
    ]
    for name, value in variants:
        with monkeypatch.context() as patch:
            patch.setattr(lifecycle, name, value)
            assert lifecycle.digest() != before
    assert lifecycle.digest() == before


@pytest.mark.req("R18")
def test_the_claim_that_dynamodb_enforces_is_part_of_the_law() -> None:
    """The sentence in the core and the condition on the row change together, with the same major number."""
    major = int(lifecycle.VERSION.split(".")[0])
    digest = hashlib.sha256(aws_jobs.CLAIM_CONDITION.encode()).hexdigest()[:16]
    assert CLAIMS.get(major) == digest, HOW.format(
        version=lifecycle.VERSION, file=f"{__file__.rpartition('/')[2]} (CLAIMS)", major=major + 1, digest=digest
    )
    assert f"now + {lifecycle.DUE_SLACK_S} s" in lifecycle.CLAIM_CONDITION
