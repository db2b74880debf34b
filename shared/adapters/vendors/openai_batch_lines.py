"""The two shapes of a request in an OpenAI batch, and what the lines of its files say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shared.adapters.vendors.batch_files import answered, fields_of, unreadable, within
from shared.adapters.vendors.batch_replies import declined, id_of
from shared.core.batch import Prompt, Request, ResultLine
from shared.core.errors import BadInput

Endpoint = Literal["/v1/chat/completions", "/v1/responses"]


@dataclass(frozen=True, slots=True)
class _Said:
    """What a model's answer says: the text, whether it was cut off, or the code of its refusal."""

    text: object
    cut: bool = False
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """One way to ask a model, and to read what it says."""

    endpoint: Endpoint
    ask: Callable[[Prompt], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], _Said]

    def line(self, request: Request) -> bytes:
        """A request as a line of the input file."""
        body = self.ask(request.prompt)
        line = {"custom_id": request.custom_id, "method": "POST", "url": self.endpoint, "body": body}
        return json.dumps(line, separators=(",", ":")).encode() + b"\n"

    def result(self, line: bytes) -> ResultLine:
        """What a line of an output or error file says."""
        fields = fields_of(line)
        custom_id = id_of(within(fields, "custom_id"))
        if fields is None or custom_id is None:
            return unreadable(line, "custom_id")
        status, body = within(fields, "response", "status_code"), within(fields, "response", "body")
        known = status if isinstance(status, int) and not isinstance(status, bool) else None
        if isinstance(error := fields.get("error"), Mapping):
            return declined(custom_id, None if known == 200 else known, error.get("code"))
        if known is not None and known != 200:
            return declined(custom_id, known, within(body, "error", "code"))
        if known is None or not isinstance(body, Mapping):
            return unreadable(line, "custom_id")
        said = self.read(body)
        if said.refusal:
            return declined(custom_id, 422, said.refusal)
        return answered(custom_id, said.text, within(body, "usage", "total_tokens"), cut=said.cut)


def _ask_chat(prompt: Prompt) -> dict[str, Any]:
    messages = [
        {"role": "system", "content": prompt.instructions},
        {"role": "user", "content": prompt.text.reveal()},
    ]
    return {"model": prompt.model, "messages": messages, "max_completion_tokens": prompt.max_tokens}


def _read_chat(body: Mapping[str, Any]) -> _Said:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    finish = within(first, "finish_reason")
    if finish == "content_filter" or within(first, "message", "refusal"):
        return _Said(None, refusal="content_filter" if finish == "content_filter" else "refusal")
    return _Said(within(first, "message", "content"), cut=finish == "length")


def _ask_response(prompt: Prompt) -> dict[str, Any]:
    return {
        "model": prompt.model,
        "instructions": prompt.instructions,
        "input": prompt.text.reveal(),
        "max_output_tokens": prompt.max_tokens,
        "store": False,
    }


def _read_response(body: Mapping[str, Any]) -> _Said:
    reason = within(body, "incomplete_details", "reason")
    if reason == "content_filter":
        return _Said(None, refusal="content_filter")
    output = body.get("output")
    contents = [within(item, "content") for item in output] if isinstance(output, list) else []
    parts = [part for content in contents if isinstance(content, list) for part in content]
    if any(within(part, "type") == "refusal" for part in parts):
        return _Said(None, refusal="refusal")
    texts = [within(part, "text") for part in parts if within(part, "type") == "output_text"]
    whole = "".join(text for text in texts if isinstance(text, str))
    return _Said(whole, cut=reason == "max_output_tokens")


_SHAPES = {
    "openai_chat": Shape("/v1/chat/completions", _ask_chat, _read_chat),
    "openai_responses": Shape("/v1/responses", _ask_response, _read_response),
}


def shape_of(adapter_kind: str) -> Shape:
    """The shape of this kind."""
    if adapter_kind not in _SHAPES:
        raise BadInput("adapter_kind", f"must be one of {', '.join(_SHAPES)}")
    return _SHAPES[adapter_kind]
