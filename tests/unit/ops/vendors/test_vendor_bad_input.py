"""What no client should send: every strange request is a verdict and a sentence."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.vendors.accounts import Accounts
from ops.vendors.request import VendorRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@settings(max_examples=80, deadline=None)
@given(
    body=st.binary(max_size=200)
    | st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner), max_leaves=5
    ).map(lambda value: json.dumps({"text": value, "messages": value, "model": value}).encode()),
    path=st.sampled_from(
        [
            "/helpdesk/conversations/c/replies",
            "/helpdesk/conversations/%2F/tags",
            "/helpdesk/conversations//assignee",
            "/helpdesk/actions",
            "/helpdesk",
            "/openai/v1/chat/completions",
            "/openai/v1/responses",
        ]
    ),
    method=st.sampled_from(["GET", "POST", "PUT"]),
    query=st.dictionaries(st.sampled_from(["key", "after", "limit", "action"]), st.text(max_size=5)),
)
def test_no_request_is_too_strange(body: bytes, path: str, method: str, query: dict[str, str]) -> None:
    """Whatever comes, the vendor gives a verdict that can be sent as JSON, and records it."""
    accounts = Accounts()
    request = VendorRequest(method=method, path=path, query=query, body=body)
    verdict = accounts.handle(request, NOW)
    assert verdict.status in (200, 201, 400, 404, 405)
    json.dumps(verdict.body).encode()
    (entry,) = accounts.record.requests()
    json.dumps(entry.to_json()).encode()


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b"{", "JSON"),
        (b"[]", "object"),
        (b"{}", "text is missing"),
        (b'{"text": ""}', "text is missing"),
        (b'{"text": 5}', "text is missing"),
        (b'{"text": NaN}', "NaN"),
        (b'{"text": "a", "text": "b"}', "twice"),
        (b'{"text": "\\ud800"}', "Unicode"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"text":' + b"[" * 100_000, "nested"),
    ],
)
def test_a_bad_body_is_a_sentence(body: bytes, word: str) -> None:
    """A body that cannot be used is a 400 with a sentence, and is not accepted."""
    accounts = Accounts()
    request = VendorRequest(method="POST", path="/helpdesk/conversations/c/replies", body=body)
    verdict = accounts.handle(request, NOW)
    assert verdict.status == 400
    assert word in str(verdict.body["error"])
    assert accounts.record.accepts == ()
