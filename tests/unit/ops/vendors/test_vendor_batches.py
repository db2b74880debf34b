"""The simulator's batches: time, files, lists, faults by share, and what a test may ask about them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest

from ops.local.vendor_control import VendorControl
from ops.vendors.config import ConfigError
from ops.vendors.request import MAX_BODY_BYTES, MAX_UPLOAD_BYTES
from ops.vendors.server import VendorSimulator

Forward = Callable[[float], None]


def upload(client: httpx.Client, names: list[str], text: str = "Where is it?") -> str:
    """A file of one request for each name."""
    messages = [{"role": "system", "content": "Rewrite it."}, {"role": "user", "content": text}]
    lines = [
        {
            "custom_id": name,
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {"model": "m", "messages": messages},
        }
        for name in names
    ]
    return upload_raw(client, "\n".join(json.dumps(line) for line in lines).encode())


def upload_raw(client: httpx.Client, content: bytes) -> str:
    answer = client.post("/openai/v1/files", data={"purpose": "batch"}, files={"file": ("r.jsonl", content)})
    return str(answer.json()["id"])


def create(client: httpx.Client, file_id: str, tag: str = "t-1", **changes: Any) -> httpx.Response:
    body = {"input_file_id": file_id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return client.post("/openai/v1/batches", json={**body, "metadata": {"penstock_tag": tag}, **changes})


def status(client: httpx.Client, batch_id: str) -> str:
    return str(client.get(f"/openai/v1/batches/{batch_id}").json()["status"])


def test_a_batch_goes_through_its_states(client: httpx.Client, vendor: VendorSimulator, forward: Forward) -> None:
    """Validated, worked on line by line, put together: each as long as told, by the simulator's clock."""
    vendor.configure("openai", batches={"validating_s": 10, "takes_s": 40, "finalizing_s": 5})
    batch = create(client, upload(client, ["a", "b"])).json()["id"]
    seen = [(status(client, batch), client.get(f"/openai/v1/batches/{batch}").json()["request_counts"]["completed"])]
    for seconds in (10, 20, 20, 5):
        forward(seconds)
        shown = client.get(f"/openai/v1/batches/{batch}").json()
        seen.append((shown["status"], shown["request_counts"]["completed"]))
    assert seen == [("validating", 0), ("in_progress", 0), ("in_progress", 1), ("finalizing", 2), ("completed", 2)]


def test_the_answer_is_the_text_marked(client: httpx.Client) -> None:
    """Asked to rewrite, the model gives the text back with a mark, in a batch and in a call alike."""
    batch = create(client, upload(client, ["a"], "Your dog barks.")).json()
    file = client.get(f"/openai/v1/files/{batch['output_file_id']}/content")
    line = json.loads(file.text)
    body = line["response"]["body"]
    assert body["choices"][0]["message"]["content"] == "[rewritten] Your dog barks."
    messages = [{"role": "system", "content": "Rewrite."}, {"role": "user", "content": "Your dog barks."}]
    called = client.post("/openai/v1/chat/completions", json={"model": "m", "messages": messages}).json()
    assert called["choices"][0]["message"]["content"] == "[rewritten] Your dog barks."


def test_the_list_is_read_page_by_page(client: httpx.Client) -> None:
    """Newest first, from after a batch on, and it says whether there is more."""
    file = upload(client, ["a"])
    made = [create(client, file, f"t-{number}").json()["id"] for number in range(5)]
    first = client.get("/openai/v1/batches", params={"limit": 3}).json()
    rest = client.get("/openai/v1/batches", params={"limit": 3, "after": first["last_id"]}).json()
    assert [batch["id"] for batch in first["data"] + rest["data"]] == made[::-1]
    assert (first["has_more"], rest["has_more"]) == (True, False)
    assert client.get("/openai/v1/batches", params={"limit": 0}).status_code == 400
    assert client.get("/openai/v1/batches", params={"after": "nobody"}).status_code == 400


def test_the_judge_counts_batches_by_tag_and_lines_by_payment(
    client: httpx.Client, vendor: VendorSimulator, forward: Forward
) -> None:
    """Two batches under one tag are a duplicate in the record, and each line shows how often it was paid for."""
    vendor.configure("openai", batches={"takes_s": 100, "line_faults": {"b": "missing", "c": "refused"}})
    for tag in ("t-1", "t-1", "t-2"):
        create(client, upload(client, ["a", "b", "c"]), tag)
    assert vendor.record.duplicates(vendor="openai") == 1
    control = VendorControl(vendor.url)
    assert control.accepted_keys("openai") == ["t-1", "t-1", "t-2"]
    assert control.batches("openai")["paid"] == {}
    forward(100)
    assert control.batches("openai", "t-1")["paid"] == {"a": 2, "b": 2}
    assert [batch["status"] for batch in control.batches("openai")["batches"]] == ["completed"] * 3
    assert client.get("/_sim/batches", params={"vendor": "fax"}).status_code == 400
    vendor.reset()
    assert control.batches("openai")["batches"] == []


def test_the_record_holds_no_text_of_a_batch(client: httpx.Client, vendor: VendorSimulator) -> None:
    """Neither the record nor the report of batches."""
    create(client, upload(client, ["a"], "CANARY"))
    client.post("/plain/jobs", json={"tag": "t", "requests": [_plain("a", "CANARY")]})
    everything = client.get("/_sim/record").text + json.dumps(vendor.batches("openai")) + repr(vendor.batches("plain"))
    assert "CANARY" not in everything
    assert [entry.key for entry in vendor.record.accepts] == ["t-1", "t"]


def test_shares_of_bad_lines_are_what_they_say(client: httpx.Client, vendor: VendorSimulator) -> None:
    """Of a thousand lines about a tenth is missing and a fifth refused, the same ones every time."""
    shares = {"missing": 0.1, "server_error": 0.2}
    vendor.configure("openai", batches={"line_shares": shares})
    names = [f"job-{number}.1" for number in range(1000)]
    batch = create(client, upload(client, names)).json()

    def lines(name: str) -> list[str]:
        content = client.get(f"/openai/v1/files/{batch[name]}/content").text
        return [json.loads(line)["custom_id"] for line in content.splitlines()]

    good, bad = lines("output_file_id"), lines("error_file_id")
    assert 150 <= len(bad) <= 250
    assert 50 <= 1000 - len(good) - len(bad) <= 150
    assert good == lines("output_file_id")
    assert good != sorted(good, key=names.index)


def test_a_batch_vanishes(client: httpx.Client, vendor: VendorSimulator, forward: Forward) -> None:
    """After its time nobody knows it: not by its id, not in the list, not by its files."""
    vendor.configure("openai", batches={"vanishes_s": 60})
    batch = create(client, upload(client, ["a"])).json()
    assert status(client, batch["id"]) == "completed"
    forward(60)
    assert client.get(f"/openai/v1/batches/{batch['id']}").status_code == 404
    assert client.get("/openai/v1/batches").json()["data"] == []
    assert client.get(f"/openai/v1/files/{batch['output_file_id']}/content").status_code == 404
    assert vendor.batches("openai")["batches"][0]["status"] == "vanished"


def test_the_token_limit_is_told_at_once_or_later(client: httpx.Client, vendor: VendorSimulator) -> None:
    """As the real API does it, by a batch that fails; or by a refusal, where it is so configured."""
    vendor.configure("openai", batches={"enqueued_tokens": 1})
    failed = create(client, upload(client, ["a"])).json()
    assert (failed["status"], failed["errors"]["data"][0]["code"]) == ("failed", "token_limit_exceeded")
    vendor.configure("openai", batches={"enqueued_tokens": 1, "tokens_refused": "at_once"})
    refused = create(client, upload(client, ["a"]), "t-2")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "token_limit_exceeded")
    assert vendor.batches("openai", "t-2")["batches"] == []


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"{", "invalid_json_line"),
        (b'{"custom_id": "a", "method": "POST", "url": "/v1/embeddings", "body": {}}', "invalid_request"),
        (b'{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {}}', "invalid_json_line"),
        (b"", "empty_file"),
    ],
)
def test_a_bad_file_fails_its_batch(client: httpx.Client, content: bytes, code: str) -> None:
    """As the real API does: taken first, looked at afterwards."""
    batch = create(client, upload_raw(client, content)).json()
    assert (batch["status"], batch["errors"]["data"][0]["code"]) == ("failed", code)
    twice = create(client, upload(client, ["a", "a"])).json()
    assert twice["errors"]["data"][0]["code"] == "duplicate_custom_id"


@pytest.mark.parametrize(
    ("changes", "status_code"),
    [
        ({"endpoint": "/v1/embeddings"}, 400),
        ({"completion_window": "1h"}, 400),
        ({"metadata": {"a": 1}}, 400),
        ({"input_file_id": "file-nobody"}, 400),
        ({"input_file_id": ""}, 400),
    ],
)
def test_a_bad_batch_is_refused(client: httpx.Client, changes: dict[str, Any], status_code: int) -> None:
    """With a sentence, and nothing is taken."""
    answer = create(client, upload(client, ["a"]), **changes)
    assert answer.status_code == status_code
    assert answer.json()["error"]["message"]
    assert client.get("/openai/v1/batches").json()["data"] == []


def test_a_bad_upload_is_refused(client: httpx.Client, vendor: VendorSimulator) -> None:
    """No form, another purpose, no file; one larger than a request may be is taken."""
    assert client.post("/openai/v1/files", json={}).status_code == 400
    assert client.post("/openai/v1/files", data={"purpose": "batch"}, files={"other": b"x"}).status_code == 400
    assert client.post("/openai/v1/files", data={"purpose": "vision"}, files={"file": b"x"}).status_code == 400
    cut = {"content-type": "multipart/form-data; boundary=b"}
    assert client.post("/openai/v1/files", content=b'--b\r\nname="file"\r\n\r\nx', headers=cut).status_code == 400
    assert MAX_BODY_BYTES * 2 < MAX_UPLOAD_BYTES
    assert upload_raw(client, b"x" * MAX_BODY_BYTES * 2).startswith("file-")
    assert vendor.batches("openai")["files"] == 1


@pytest.mark.parametrize(
    ("batches", "word"),
    [
        ({"nope": 1}, "no field 'nope'"),
        ({"takes_s": -1}, "takes_s must be a number"),
        ({"expires_s": "soon"}, "expires_s must be a number"),
        ({"enqueued_tokens": 0.5}, "enqueued_tokens must be a whole number"),
        ({"unknown_lines": -1}, "unknown_lines must be a whole number"),
        ({"in_order": 1}, "in_order must be true or false"),
        ({"tokens_refused": "never"}, "tokens_refused must be"),
        ({"fails_with": 5}, "fails_with must be a code"),
        ({"line_shares": {"lost": 0.1}}, "line_shares knows"),
        ({"line_shares": {"missing": 0.7, "expired": 0.7}}, "at most 1"),
        ({"line_faults": ["a"]}, "line_faults must be an object"),
        ([], "must be an object"),
    ],
)
def test_a_bad_configuration_is_a_sentence(vendor: VendorSimulator, batches: object, word: str) -> None:
    """Nothing is changed; what is good is read back as it was written."""
    with pytest.raises(ConfigError, match=word):
        vendor.configure("openai", batches=batches)
    good = {"takes_s": 5, "vanishes_s": None, "line_shares": {"missing": 0.5}, "line_faults": {"a": "expired"}}
    kept = vendor.configure("openai", batches=good)
    assert vendor.configure("openai", **kept.to_json()) == kept


def test_the_official_sdk_makes_a_batch(vendor: VendorSimulator, client: httpx.Client) -> None:
    """The vendor's own SDK uploads, creates, lists, reads, cancels and deletes."""
    vendor.configure("openai", batches={"takes_s": 60, "cancelling_s": 60})
    content = client.get(f"/openai/v1/files/{upload(client, ['a'])}/content").content
    with openai.OpenAI(base_url=vendor.openai_url, api_key="any", max_retries=0) as sdk:
        file = sdk.files.create(file=("r.jsonl", content), purpose="batch")
        batch = sdk.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"a": "b"}
        )
        assert sdk.batches.retrieve(batch.id).status == "in_progress"
        assert [one.id for one in sdk.batches.list(limit=1)] == [batch.id]
        assert sdk.batches.cancel(batch.id).status == "cancelling"
        assert sdk.files.content(file.id).content == content
        assert sdk.files.delete(file.id).deleted
        with pytest.raises(openai.NotFoundError):
            sdk.files.content(file.id)


# ---------------------------------------------------------------------------------------------- the plain one
def _plain(key: str, text: str = "Hello") -> dict[str, object]:
    return {"key": key, "model": "m", "instructions": "Rewrite.", "text": text, "max_tokens": 50}


def test_the_plain_endpoint_keeps_jobs_by_tag(client: httpx.Client, vendor: VendorSimulator) -> None:
    """All requests in one; found by tag; results only when it has ended."""
    vendor.configure("plain", batches={"takes_s": 60})
    made = client.post("/plain/jobs", json={"tag": "t", "requests": [_plain("a")]})
    job = made.json()["job"]
    assert made.status_code == 201
    assert client.get("/plain/jobs", params={"tag": "t"}).json() == {"jobs": [{"job": job}]}
    assert client.get("/plain/jobs", params={"tag": "x"}).json() == {"jobs": []}
    assert client.get(f"/plain/jobs/{job}/results").status_code == 409
    assert client.delete(f"/plain/jobs/{job}").json()["state"] == "stopped"
    assert client.get(f"/plain/jobs/{job}/results").text == ""


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"tag": "t"},
        {"tag": "t", "requests": []},
        {"tag": "t", "requests": ["a"]},
        {"tag": "t", "requests": [{"key": "a"}]},
        {"tag": "t", "requests": [_plain("a"), _plain("a")]},
    ],
)
def test_a_bad_job_is_refused(client: httpx.Client, body: dict[str, object]) -> None:
    """With a sentence and a code."""
    answer = client.post("/plain/jobs", json=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "refused")
    assert client.get("/plain/nowhere").status_code == 404
