"""The one secret of a function: kept for minutes, asked for again when it turned out to be old, never told."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError, ReadTimeoutError

from shared.adapters.aws import secrets
from shared.adapters.aws.secrets import SenderKeySecret, VendorTokens
from shared.core.errors import Unavailable

KEY, NEXT = "k" * 40, "n" * 40


class Manager:
    """Secrets Manager with one secret."""

    def __init__(self) -> None:
        self.text, self.reads = json.dumps({"acme": KEY, "helpdesk": "token-1"}), 0
        self.trouble: Exception | None = None

    def get_secret_value(self, *, SecretId: str) -> dict[str, Any]:
        self.reads += 1
        if self.trouble is not None:
            raise self.trouble
        return {"SecretString": self.text}


def said(code: str, status: int = 400) -> ClientError:
    """What Secrets Manager answers instead; the message may hold anything."""
    answer = {"Error": {"Code": code, "Message": KEY}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetSecretValue")  # type: ignore[arg-type]


NO_ANSWER = {
    "throttled": said("ThrottlingException"),
    "too many": said("Unheard", 429),
    "its own fault": said("InternalServiceError", 500),
    "a gateway's": said("502", 502),
    "no network": EndpointConnectionError(endpoint_url="https://secretsmanager"),
    "no time": ReadTimeoutError(endpoint_url="https://secretsmanager"),
}
NO = {
    "denied": said("AccessDeniedException"),
    "gone": said("ResourceNotFoundException"),
    "to be deleted": said("InvalidRequestException"),
    "key denied": said("DecryptionFailure"),
    "an old session": said("ExpiredTokenException"),
    "nobody": NoCredentialsError(),
    "ours": RuntimeError(KEY),
}


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
    held.trouble = said("ThrottlingException")
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
    assert failed.value.__cause__ is failed.value.__context__ is None


@pytest.mark.parametrize("trouble", [*NO_ANSWER.values(), *NO.values()], ids=[*NO_ANSWER, *NO])
def test_without_a_value_trouble_is_unavailable(held: Manager, trouble: Exception) -> None:
    """Nobody is let in because nobody can be asked; the error says the code and nothing of the secret."""
    held.trouble = trouble
    with pytest.raises(Unavailable) as failed:
        SenderKeySecret(secret_arn="arn").of("acme")
    assert KEY not in str(failed.value)
    assert failed.value.__context__ is None


@pytest.mark.fault("C1")
@pytest.mark.parametrize("trouble", NO_ANSWER.values(), ids=NO_ANSWER)
def test_while_nobody_answers_the_last_good_value_counts_for_an_hour(held: Manager, trouble: Exception) -> None:
    """Keys and tokens alike, for an hour since they were read and not a second longer; then what is read counts."""
    clock = Clock()
    keys, tokens = SenderKeySecret(secret_arn="arn", now=clock), VendorTokens(secret_arn="arn", now=clock)
    keys.of("acme"), tokens.of("helpdesk")
    held.trouble = trouble
    clock.s += 3600
    assert (keys.of("acme"), tokens.of("helpdesk")) == ((KEY.encode(),), "token-1")
    clock.s += 1
    for asked in (lambda: keys.of("acme"), lambda: tokens.of("helpdesk")):
        with pytest.raises(Unavailable):
            asked()
    held.trouble, held.text = None, json.dumps({"acme": NEXT, "helpdesk": "token-2"})
    assert (keys.of("acme"), tokens.of("helpdesk")) == ((NEXT.encode(),), "token-2")


@pytest.mark.fault("C1")
def test_a_service_that_does_not_answer_is_asked_every_half_minute(held: Manager) -> None:
    """Not with every call: there is a value to go on with. It comes back: the next question is answered."""
    clock = Clock()
    tokens = VendorTokens(secret_arn="arn", now=clock)
    tokens.of("helpdesk")
    held.trouble = said("ThrottlingException")
    clock.s += 301
    for _ in range(61):
        assert tokens.of("helpdesk") == "token-1"
        clock.s += 1
    assert held.reads == 3
    held.trouble, held.text = None, json.dumps({"helpdesk": "token-2"})
    clock.s += 31
    assert (tokens.of("helpdesk"), held.reads) == ("token-2", 4)


@pytest.mark.fault("J1")
@pytest.mark.parametrize("trouble", NO.values(), ids=NO)
def test_a_value_is_not_kept_against_a_no(held: Manager, trouble: Exception) -> None:
    """Denied, gone or unreadable to us: it is forgotten at once, and an outage that follows does not bring it back."""
    clock = Clock()
    keys, tokens = SenderKeySecret(secret_arn="arn", now=clock), VendorTokens(secret_arn="arn", now=clock)
    keys.of("acme"), tokens.of("helpdesk")
    clock.s += 301
    for now in (trouble, said("ThrottlingException")):
        held.trouble = now
        for asked in (lambda: keys.of("acme"), lambda: tokens.of("helpdesk")):
            with pytest.raises(Unavailable):
                asked()


@pytest.mark.fault("J1")
@pytest.mark.parametrize("text", ["{}", json.dumps({"bolt": KEY}), "", "[]", "null"])
def test_an_answer_without_that_key_takes_it_away(held: Manager, text: str) -> None:
    """Whatever was there before does not count any more, also while nobody answers afterwards."""
    clock = Clock()
    keys, tokens = SenderKeySecret(secret_arn="arn", now=clock), VendorTokens(secret_arn="arn", now=clock)
    keys.of("acme"), tokens.of("helpdesk")
    clock.s += 301
    held.text = text
    for trouble in (None, said("ThrottlingException")):
        held.trouble = trouble
        clock.s += 301
        with pytest.raises(Unavailable):
            tokens.of("helpdesk")
        with suppress(Unavailable):
            assert keys.of("acme") == ()


@pytest.mark.fault("G9", "C1")
def test_a_token_that_was_refused_is_not_kept(held: Manager) -> None:
    """After a 401 a newer one is wanted or none: nobody answers, so nothing is sent. Others may go on with theirs."""
    tokens = VendorTokens(secret_arn="arn", now=Clock())
    tokens.of("helpdesk")
    held.trouble = said("ThrottlingException")
    with pytest.raises(Unavailable, match="ThrottlingException"):
        tokens.of("helpdesk", fresh=True)
    assert tokens.of("helpdesk") == "token-1"


def test_a_clock_that_was_set_back_keeps_nothing(held: Manager) -> None:
    """An hour is an hour: what seems to have been read in the future is read again."""
    clock = Clock()
    tokens = VendorTokens(secret_arn="arn", now=clock)
    tokens.of("helpdesk")
    held.trouble = said("ThrottlingException")
    clock.s -= 10
    with pytest.raises(Unavailable):
        tokens.of("helpdesk")


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
