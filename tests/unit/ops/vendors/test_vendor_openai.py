"""The OpenAI-shaped vendor: enough for the official SDK and for plain HTTP, the same words every time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from ops.vendors.server import VendorSimulator

CHAT: dict[str, Any] = {"model": "m-1", "messages": [{"role": "user", "content": "Where is my parcel?"}]}
SCHEMA = {
    "type": "object",
    "properties": {
        "intent": {"$ref": "#/$defs/Intent"},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "tier": {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 3}, {"type": "null"}]},
        "urgent": {"type": "boolean"},
    },
    "$defs": {"Intent": {"type": "string", "enum": ["billing", "delivery", "refund"]}},
}


@pytest.fixture
def vendor() -> Iterator[VendorSimulator]:
    with VendorSimulator(seed=7) as running:
        yield running


@pytest.fixture
def client(vendor: VendorSimulator) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=vendor.openai_url, timeout=60, trust_env=False) as open_client:
        yield open_client


def content(answer: httpx.Response) -> str:
    text = answer.json()["choices"][0]["message"]["content"]
    assert isinstance(text, str)
    return text


def test_the_same_request_gets_the_same_words(client: httpx.Client) -> None:
    """The answer follows from the request alone: repeated it is the same, for another it differs."""
    answers = {content(client.post("/chat/completions", json=CHAT)) for _ in range(3)}
    assert len(answers) == 1
    others = {content(client.post("/chat/completions", json={**CHAT, "temperature": number})) for number in range(8)}
    assert len(others) > 1


def test_usage_and_limits_are_told(client: httpx.Client) -> None:
    """An answer has its token usage and the six headers of the limits."""
    answer = client.post("/chat/completions", json=CHAT)
    usage = answer.json()["usage"]
    assert usage["prompt_tokens"] > 0
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    for part in ("limit", "remaining", "reset"):
        for unit in ("requests", "tokens"):
            assert f"x-ratelimit-{part}-{unit}" in answer.headers
    left = int(answer.headers["x-ratelimit-limit-tokens"]) - usage["total_tokens"]
    assert int(answer.headers["x-ratelimit-remaining-tokens"]) == left


def test_the_token_limit_binds(client: httpx.Client, vendor: VendorSimulator) -> None:
    """Tokens are counted as used; over the limit comes a 429 in the vendor's form of error."""
    used = client.post("/chat/completions", json=CHAT).json()["usage"]["total_tokens"]
    vendor.reset()
    vendor.configure("openai", tokens_per_minute=2 * used)
    statuses = [client.post("/chat/completions", json=CHAT).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
    refused = client.post("/chat/completions", json=CHAT)
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert 1 <= int(refused.headers["retry-after"]) <= 60


def test_json_is_answered_in_json(client: httpx.Client) -> None:
    """A JSON format gives an object; a schema gives one of that schema, references included."""
    plain = client.post("/chat/completions", json={**CHAT, "response_format": {"type": "json_object"}})
    assert isinstance(json.loads(content(plain)), dict)
    form = {"type": "json_schema", "json_schema": {"name": "route", "schema": SCHEMA}}
    routed = json.loads(content(client.post("/chat/completions", json={**CHAT, "response_format": form})))
    assert set(routed) == set(SCHEMA["properties"])
    assert routed["intent"] in ("billing", "delivery", "refund")
    assert 0 <= routed["confidence"] <= 1
    assert isinstance(routed["urgent"], bool)
    assert routed["tier"] in (0, 1, 2, 3, None)
    assert [type(tag) for tag in routed["tags"]] == [str]


def test_entities_are_the_capitalised_words_of_the_last_message(client: httpx.Client, vendor: VendorSimulator) -> None:
    """Each once, in order, of a type the schema allows, the same every time; never more than an answer can hold."""
    one = {"type": "object", "properties": {"type": {"enum": ["person", "place"]}, "value": {"type": "string"}}}
    schema = {"type": "object", "properties": {"entities": {"type": "array", "items": one}}}
    form = {"type": "json_schema", "json_schema": {"name": "extraction", "schema": schema}}
    system = {"role": "system", "content": "List the Names."}

    def entities(text: str) -> list[dict[str, str]]:
        asked = {**CHAT, "messages": [system, {"role": "user", "content": text}], "response_format": form}
        answer = client.post("/chat/completions", json={**asked, "max_completion_tokens": 1000})
        assert answer.json()["choices"][0]["finish_reason"] == "stop"
        found: list[dict[str, str]] = json.loads(content(answer))["entities"]
        return found

    found = entities("Ada met Bob and Ada, in Zürich.")
    assert [entity["value"] for entity in found] == ["Ada", "Bob", "Zürich"]
    assert {entity["type"] for entity in found} <= {"person", "place"}
    assert found == entities("Ada met Bob and Ada, in Zürich.")
    assert len(entities(" ".join(f"N{n:039d}" for n in range(100)))) == 40
    vendor.configure("openai", entities_from_text=False)
    assert "Ada" not in [entity["value"] for entity in entities("Ada met Bob and Ada, in Zürich.")]


def test_an_intent_is_the_first_that_the_last_message_names(client: httpx.Client, vendor: VendorSimulator) -> None:
    """In words of any case; the last of the list where it names none. Canned answers are given as they are, cut off at
    the caller's limit."""
    named = {"intent": {"enum": ["legal", "payment_dispute", "billing", "unclear"]}, "sure": {"type": "boolean"}}
    schema = {"type": "object", "properties": named}
    form = {"type": "json_schema", "json_schema": {"name": "intent", "schema": schema}}
    system = {"role": "system", "content": "Is it legal?"}

    def asked(text: str) -> tuple[str, str]:
        messages = [system, {"role": "user", "content": text}]
        body = {**CHAT, "messages": messages, "response_format": form, "max_completion_tokens": 20}
        answer = client.post("/chat/completions", json=body)
        return content(answer), answer.json()["choices"][0]["finish_reason"]

    assert asked("About BILLING, a Payment dispute") == ('{"intent": "payment_dispute", "sure": true}', "stop")
    assert json.loads(asked("Hello")[0]) == {"intent": "unclear", "sure": True}
    vendor.configure("openai", canned_answers=[{"contains": "Hello", "content": '{"intent": "billing' + " " * 99}])
    assert asked("Hello")[1] == "length"


def test_a_schema_that_never_ends_is_answered(client: httpx.Client) -> None:
    """A schema that refers to itself is cut at a depth, not followed for ever."""
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}, "self": {"$ref": "#/properties/self"}}}
    form = {"type": "json_schema", "json_schema": {"name": "loop", "schema": endless}}
    assert client.post("/chat/completions", json={**CHAT, "response_format": form}).status_code == 200


def test_canned_answers_come_word_for_word(client: httpx.Client, vendor: VendorSimulator) -> None:
    """A prompt with a given text in it is answered as the test or the demo wants it."""
    canned = [{"contains": "parcel", "content": '{"intent": "delivery"}'}]
    vendor.configure("openai", canned_answers=canned)
    assert content(client.post("/chat/completions", json=CHAT)) == '{"intent": "delivery"}'


def test_a_short_limit_cuts_the_answer(client: httpx.Client) -> None:
    """The caller's token limit is kept, and the cut is told."""
    answer = client.post("/chat/completions", json={**CHAT, "max_completion_tokens": 3}).json()
    assert answer["usage"]["completion_tokens"] == 3
    assert answer["choices"][0]["finish_reason"] == "length"


def test_responses_work_too(client: httpx.Client) -> None:
    """The responses door answers text, messages and schemas."""
    asked = {"model": "m-1", "input": "Where is my parcel?", "instructions": "Be kind."}
    answer = client.post("/responses", json=asked).json()
    assert answer["status"] == "completed"
    assert answer["output"][0]["content"][0]["text"]
    assert answer["usage"]["total_tokens"] > 0
    form = {"format": {"type": "json_schema", "name": "route", "schema": SCHEMA}}
    messages = [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]
    made = client.post("/responses", json={"model": "m-1", "input": messages, "text": form}).json()
    assert json.loads(made["output"][0]["content"][0]["text"])["intent"] in ("billing", "delivery", "refund")


def test_an_inference_is_never_an_accept(client: httpx.Client, vendor: VendorSimulator) -> None:
    """An inference may be repeated, so the judge of duplicates does not count it, dropped or not."""
    client.post("/chat/completions", json=CHAT)
    vendor.configure("openai", drop_after_accept_share=1)
    with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
        client.post("/chat/completions", json=CHAT)
    summary = vendor.record.summary()
    assert (summary.accepts, summary.duplicates) == (0, 0)
    assert summary.by_verdict == {"computed": 2}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"messages": []}, "messages"),
        ({"messages": ["hi"]}, "messages"),
        ({"messages": [{"content": 5}]}, "content"),
        ({"model": ""}, "model"),
        ({"stream": True}, "stream"),
        ({"n": 2}, "n can only be 1"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"response_format": {"type": "poem"}}, "response format"),
        ({"response_format": {"type": "json_schema"}}, "schema"),
    ],
)
def test_a_bad_inference_is_a_sentence(client: httpx.Client, changes: dict[str, Any], word: str) -> None:
    """What cannot be answered is a 400 in the vendor's form of error."""
    answer = client.post("/chat/completions", json={**CHAT, **changes})
    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_the_official_sdk_is_content(vendor: VendorSimulator) -> None:
    """The vendor's own SDK reads answers, usage and errors from the simulator."""
    with openai.OpenAI(base_url=vendor.openai_url, api_key="any", max_retries=0) as sdk:
        chat = sdk.chat.completions.create(**CHAT)
        assert chat.choices[0].message.content
        assert chat.usage.total_tokens > 0
        assert sdk.responses.create(model="m-1", input="Hi").output_text
        vendor.configure("openai", script=[{"do": "status:429"}, {"do": "status:503"}])
        with pytest.raises(openai.RateLimitError):
            sdk.chat.completions.create(**CHAT)
        with pytest.raises(openai.InternalServerError):
            sdk.chat.completions.create(**CHAT)
