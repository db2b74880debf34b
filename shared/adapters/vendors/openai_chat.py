"""An OpenAI-shaped model endpoint: one call, no consequences, may be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from shared.adapters.vendors.http import HttpVendor
from shared.core.account import MOST
from shared.core.effects import Call
from shared.core.sensitive import Sensitive


class OpenAiChat(HttpVendor):
    """Speaks chat completions."""

    paths: ClassVar[Mapping[str, str]] = {"chat": "/chat/completions"}

    def used_tokens(self, content: Any) -> int | None:
        """What the answer was charged with."""
        usage = content.get("usage") if isinstance(content, dict) else None
        total = usage.get("total_tokens") if isinstance(usage, dict) else None
        return total if isinstance(total, int) and not isinstance(total, bool) and 0 <= total <= MOST else None


def chat(
    model: str,
    messages: Sequence[tuple[str, Sensitive[str]]],
    *,
    vendor: str = "openai",
    tokens: int = 0,
    max_tokens: int | None = None,
    response_format: Mapping[str, Any] | None = None,
) -> Call:
    """One completion; `messages` are (role, text), `tokens` is what it is estimated to use in all."""
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": role, "content": text.reveal()} for role, text in messages],
    }
    if max_tokens is not None:
        body["max_completion_tokens"] = max_tokens
    if response_format is not None:
        body["response_format"] = dict(response_format)
    return Call(vendor=vendor, action="chat", body=Sensitive(body), tokens=tokens)
