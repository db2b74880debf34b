"""An OpenAI-shaped model endpoint: one call, no consequences, may be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from shared.adapters.vendors.http import HttpVendor
from shared.core.effects import Call
from shared.core.sensitive import Sensitive


class OpenAiChat(HttpVendor):
    """Speaks chat completions."""

    paths: ClassVar[Mapping[str, str]] = {"chat": "/chat/completions"}


def chat(model: str, messages: Sequence[tuple[str, Sensitive[str]]], *, vendor: str = "openai") -> Call:
    """One completion; `messages` are (role, text)."""
    spoken = [{"role": role, "content": text.reveal()} for role, text in messages]
    return Call(vendor=vendor, action="chat", body=Sensitive({"model": model, "messages": spoken}))
