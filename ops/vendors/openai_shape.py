"""An OpenAI-shaped inference API, enough for the official SDK and for plain HTTP.

    POST /openai/v1/chat/completions
    POST /openai/v1/responses
    …    /openai/v1/files, /openai/v1/batches      see `openai_batches`

The answer follows from the request's bytes alone: the same request is answered with the same words.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from ops.vendors.asks import Ask, Bad, Compute
from ops.vendors.config import VendorConfig
from ops.vendors.json_body import BodyError, read_object, required_text
from ops.vendors.openai_answers import Answer, Format, answer_for, count_tokens
from ops.vendors.openai_batches import Read, read_batching
from ops.vendors.request import VendorRequest

NAME = "openai"
_PATHS = {("v1", "chat", "completions"): "chat", ("v1", "responses"): "responses"}
_TOKENS_PER_MESSAGE = 4


class OpenAi:
    """The shape of the inference vendor."""

    def read(self, request: VendorRequest, config: VendorConfig) -> Ask:
        """What the request asks for."""
        if request.segments[1:3] in (("v1", "files"), ("v1", "batches")):
            return read_batching(request, _readers(config), config.batches)
        door = _PATHS.get(request.segments[1:])
        if door is None:
            return Bad(status=404, sentence="the inference API has no such path")
        if request.method != "POST":
            return Bad(status=405, sentence="this path takes POST only", allow="POST")
        try:
            fields = read_object(request.body)
            if fields.get("stream"):
                raise BodyError("stream is not offered here")
            if fields.get("n") not in (None, 1):
                raise BodyError("n can only be 1 here")
            read = _read_chat if door == "chat" else _read_response
            return read(fields, hashlib.sha256(request.body).digest(), config)
        except BodyError as exc:
            return Bad(status=400, sentence=str(exc))

    def error(self, status: int, sentence: str) -> dict[str, object]:
        """The nested error that the SDK reads."""
        kind = {401: "authentication_error", 429: "rate_limit_error"}.get(status)
        if kind is None:
            kind = "server_error" if status >= 500 else "invalid_request_error"
        code = "rate_limit_exceeded" if status == 429 else None
        return {"error": {"message": sentence, "type": kind, "param": None, "code": code}}


def _readers(config: VendorConfig) -> dict[str, Read]:
    """What a batch can be for, and how a line of it is read."""
    return {
        "/v1/chat/completions": lambda fields, digest: _read_chat(fields, digest, config),
        "/v1/responses": lambda fields, digest: _read_response(fields, digest, config),
    }


def _read_chat(fields: dict[str, Any], digest: bytes, config: VendorConfig) -> Compute:
    model = required_text(fields, "model")
    texts, prompt_tokens = _read_messages(fields.get("messages"), "messages")
    made = answer_for(
        digest=digest,
        prompt="\n".join(texts),
        form=_format(fields.get("response_format")),
        max_tokens=_limit(fields, "max_completion_tokens") or _limit(fields, "max_tokens"),
        canned=config.canned_answers,
        material=_material(texts, config),
    )

    def body(now: datetime) -> dict[str, object]:
        return {
            "id": f"chatcmpl-{digest.hex()[:24]}",
            "object": "chat.completion",
            "created": int(now.timestamp()),
            "model": model,
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": made.text, "refusal": None},
                    "logprobs": None,
                    "finish_reason": "length" if made.cut else "stop",
                }
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": made.tokens,
                "total_tokens": prompt_tokens + made.tokens,
            },
            "system_fingerprint": "fp_simulated",
        }

    return Compute(action="chat", tokens=prompt_tokens + made.tokens, answer=body)


def _read_response(fields: dict[str, Any], digest: bytes, config: VendorConfig) -> Compute:
    model = required_text(fields, "model")
    asked = fields.get("input")
    if isinstance(asked, str):
        asked = [{"role": "user", "content": asked}]
    texts, prompt_tokens = _read_messages(asked, "input")
    prompt = "\n".join(texts)
    instructions = fields.get("instructions")
    if isinstance(instructions, str):
        prompt = f"{instructions}\n{prompt}"
        prompt_tokens += count_tokens(instructions)
    text = fields.get("text")
    form = _format(text.get("format") if isinstance(text, dict) else None)
    made = answer_for(
        digest=digest,
        prompt=prompt,
        form=form,
        max_tokens=_limit(fields, "max_output_tokens"),
        canned=config.canned_answers,
        material=_material(texts, config),
    )

    def body(now: datetime) -> dict[str, object]:
        return _response_body(digest, model, made, prompt_tokens, now)

    return Compute(action="responses", tokens=prompt_tokens + made.tokens, answer=body)


def _response_body(digest: bytes, model: str, made: Answer, prompt_tokens: int, now: datetime) -> dict[str, object]:
    status = "incomplete" if made.cut else "completed"
    return {
        "id": f"resp_{digest.hex()[:24]}",
        "object": "response",
        "created_at": int(now.timestamp()),
        "status": status,
        "incomplete_details": {"reason": "max_output_tokens"} if made.cut else None,
        "error": None,
        "model": model,
        "output": [
            {
                "id": f"msg_{digest.hex()[24:48]}",
                "type": "message",
                "role": "assistant",
                "status": status,
                "content": [{"type": "output_text", "text": made.text, "annotations": []}],
            }
        ],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": made.tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": prompt_tokens + made.tokens,
        },
    }


def _material(texts: list[str], config: VendorConfig) -> str | None:
    """The text that entities are extracted from: the last one; none where the account does not extract."""
    return texts[-1] if texts and config.entities_from_text else None


def _read_messages(messages: object, name: str) -> tuple[list[str], int]:
    """All text of the messages, and its tokens. Content is a text or a list of parts with a text."""
    if not isinstance(messages, list) or not messages:
        raise BodyError(f"{name} is missing: it must be a list of messages that is not empty")
    texts: list[str] = []
    for message in messages:
        if not isinstance(message, dict):
            raise BodyError(f"each of {name} must be an object with a role and a content")
        content = message.get("content")
        if isinstance(content, str):
            texts.append(content)
        elif isinstance(content, list):
            parts = [part.get("text") for part in content if isinstance(part, dict)]
            texts.extend(part for part in parts if isinstance(part, str))
        elif content is not None:
            raise BodyError(f"the content of each of {name} must be a text or a list of parts")
    tokens = sum(count_tokens(text) for text in texts) + _TOKENS_PER_MESSAGE * len(messages)
    return texts, tokens


def _format(asked: object) -> Format:
    """The form of the answer. Chat nests the schema under json_schema, responses has it beside the type."""
    if asked is None:
        return Format()
    if not isinstance(asked, dict) or asked.get("type") not in ("text", "json_object", "json_schema"):
        raise BodyError("the response format must have the type text, json_object or json_schema")
    if asked["type"] != "json_schema":
        return Format(json=asked["type"] == "json_object")
    holder = asked.get("json_schema", asked)
    schema = holder.get("schema") if isinstance(holder, dict) else None
    if not isinstance(schema, dict):
        raise BodyError("the response format json_schema needs a schema")
    return Format(json=True, schema=schema)


def _limit(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BodyError(f"{name} must be a whole number of at least 1")
    return value
