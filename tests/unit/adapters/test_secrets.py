"""The one secret of a function: kept for minutes, asked for again when it turned out to be old, never told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shared.adapters.aws import secrets
from shared.adapters.aws.secrets import SenderKeySecret, VendorTokens
from shared.core.errors import Unavailable

KEY, NEXT = "k" * 40, "n" * 40


class Manager:
    """Secrets Manager with one secret."""

    def __init__(self) -> None:
        self.text, self.reads, self.down = json.dumps({"acme": KEY, "helpdesk": "token-1"}), 0, False

    def get_secret_value(self, *, SecretId: str) -> dict[str, Any]:
        self.reads += 1
        if self.down:
            raise RuntimeError(self.text)
        return {"SecretString": self.text}


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Manager:
    manager = Manager()
    monkeypatch.setattr(secrets, "client", lambda service: manager)
    return manager


class Clock:
    """Seconds that a test moves."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


def test_keys_are_read_once_in_five_minutes(held: Manager) -> None:
    """And a key that was taken away stops to count within them."""
    clock = Clock()
    keys = SenderKeySecret(secret_arn="arn", now=clock)
    assert [keys.of("acme") for _ in range(3)] == [(KEY.encode(),)] * 3
    held.text = json.dumps({"acme": NEXT})
    clock.s += 300
    assert (keys.of("acme"), held.reads) == ((KEY.encode(),), 1)
    clock.s += 1
    assert (keys.of("acme"), held.reads) == ((NEXT.encode(),), 2)


@pytest.mark.fault("J1")
def test_strangers_cannot_make_it_ask_all_the_time(held: Manager) -> None:
    """Refused signatures read the secret again at most every half minute, also while it does not answer."""
    clock = Clock()
    keys = SenderKeySecret(secret_arn="arn", now=clock)
    keys.of("acme")
    clock.s += 31
    held.text = json.dumps({"acme": [NEXT, KEY]})
    assert keys.of("acme", fresh=True) == (NEXT.encode(), KEY.encode())
    for _ in range(50):
        keys.of("stranger", fresh=True)
    assert held.reads == 2
    clock.s += 31
    held.down = True
    for _ in range(50):
        assert keys.of("acme", fresh=True) == (NEXT.encode(), KEY.encode())
    assert held.reads == 3


def test_a_secret_just_read_is_fresh(held: Manager) -> None:
    """The first refused signature of a cold function does not read twice."""
    keys = SenderKeySecret(secret_arn="arn", now=Clock())
    assert keys.of("stranger") == keys.of("stranger", fresh=True) == ()
    assert held.reads == 1


@pytest.mark.parametrize("text", ["", "[]", "not json", '"text"', "null"])
def test_a_secret_that_cannot_be_read_is_unavailable(held: Manager, text: str) -> None:
    """The error names its kind and holds nothing of the secret."""
    held.text = text
    with pytest.raises(Unavailable) as failed:
        SenderKeySecret(secret_arn="arn").of("acme")
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__


def test_a_secret_that_is_down_is_unavailable(held: Manager) -> None:
    """Nobody is let in because nobody can be asked."""
    held.down = True
    with pytest.raises(Unavailable, match="RuntimeError") as failed:
        SenderKeySecret(secret_arn="arn").of("acme")
    assert KEY not in str(failed.value)


def test_an_empty_secret_lets_nobody_in(held: Manager) -> None:
    """As it stands after the first deploy."""
    held.text = "{}"
    assert SenderKeySecret(secret_arn="arn").of("acme") == ()


def test_a_token_is_kept_and_read_again_after_a_401(held: Manager) -> None:
    """A worker's side of the same cache."""
    tokens = VendorTokens(secret_arn="arn")
    assert [tokens.of("helpdesk"), tokens.of("helpdesk")] == ["token-1"] * 2
    held.text = json.dumps({"helpdesk": "token-2"})
    assert (tokens.of("helpdesk"), tokens.of("helpdesk", fresh=True), held.reads) == ("token-1", "token-2", 2)
    with pytest.raises(Unavailable, match="no_token_for_openai"):
        tokens.of("openai")
    assert VendorTokens(secret_arn=None).of("helpdesk") == ""
