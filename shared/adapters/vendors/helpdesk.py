"""The help desk: reply, tag, assign; each an effect. It looks an action up by our key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from shared.adapters.vendors.http import HttpVendor, found_or_absent
from shared.core.effects import Effect, LookupAnswer
from shared.core.sensitive import Sensitive


class HelpDesk(HttpVendor):
    """Speaks the help desk's API."""

    paths: ClassVar[Mapping[str, str]] = {
        "reply": "/conversations/{target}/replies",
        "add_tag": "/conversations/{target}/tags",
        "assign": "/conversations/{target}/assignee",
    }

    def look_up(self, key: str, *, timeout_s: float) -> LookupAnswer:
        """Did it accept an action under this key?"""
        return found_or_absent(self._get("/actions", {"key": key}, timeout_s))


def reply(conversation: str, text: Sensitive[str], *, vendor: str = "helpdesk") -> Effect:
    """Answer the customer."""
    body = Sensitive({"text": text.reveal()})
    return Effect(vendor=vendor, action="reply", target=conversation, body=body, customer_visible=True)


def add_tag(conversation: str, tag: str, *, vendor: str = "helpdesk") -> Effect:
    """Mark the conversation; the customer does not see it."""
    return Effect(
        vendor=vendor,
        action="add_tag",
        target=conversation,
        body=Sensitive({"tag": tag}),
        customer_visible=False,
    )


def assign(conversation: str, assignee: str, *, vendor: str = "helpdesk") -> Effect:
    """Hand the conversation to a team."""
    return Effect(
        vendor=vendor,
        action="assign",
        target=conversation,
        body=Sensitive({"assignee": assignee}),
        customer_visible=False,
    )
