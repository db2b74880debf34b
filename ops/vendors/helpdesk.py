"""The help desk's API: replies, tags and assignees on a conversation, and the look-up of what was done.

POST /helpdesk/conversations/{conversation}/replies    {"text": …}       → 201 {"id": …}
POST /helpdesk/conversations/{conversation}/tags       {"tag": …}        → 201 {"id": …}
POST /helpdesk/conversations/{conversation}/assignee   {"assignee": …}   → 201 {"id": …}
GET  /helpdesk/actions?key=K[&action=reply]                              → {"found": …, "id": …, "times": …}
GET  /helpdesk/actions[?after=SEQ&limit=N&conversation=C]                → {"actions": […]}
"""

from __future__ import annotations

import hashlib
import json
from urllib.parse import quote

from ops.vendors.asks import Ask, Bad, ListAccepts, LookUp, Send
from ops.vendors.config import VendorConfig
from ops.vendors.json_body import BodyError, read_object, required_text
from ops.vendors.request import MAX_KEY_LENGTH, VendorRequest

NAME = "helpdesk"
MAX_CONVERSATION_LENGTH = 200
MAX_LIST = 1000

# The last part of the path → the action's name, the field with its text, the start of the vendor's ids.
_ACTIONS = {
    "replies": ("reply", "text", "rep"),
    "tags": ("tag", "tag", "tag"),
    "assignee": ("assign", "assignee", "asg"),
}
_DOORS = {action: (door, field) for door, (action, field, _) in _ACTIONS.items()}


class HelpDesk:
    """The shape of the help desk."""

    def read(self, request: VendorRequest, config: VendorConfig) -> Ask:
        """What the request asks for."""
        match request.segments[1:]:
            case ("conversations", conversation, door) if door in _ACTIONS:
                if request.method != "POST":
                    return Bad(status=405, sentence=f"{door} takes POST only", allow="POST")
                return _read_send(request, conversation, door)
            case ("actions",):
                if request.method != "GET":
                    return Bad(status=405, sentence="actions takes GET only", allow="GET")
                return _read_lookup(request)
        return Bad(status=404, sentence="the help desk has no such path")

    def error(self, status: int, sentence: str) -> dict[str, object]:
        """The help desk says what is wrong in one field."""
        return {"error": sentence, "status": status}


def action_request(
    *, conversation: str, action: str = "reply", text: str, key: str = "", token: str = ""
) -> VendorRequest:
    """The request that asks for one action, for callers that speak to a `Vendor` without HTTP."""
    door, field = _DOORS[action]
    headers = {"content-type": "application/json"}
    if key:
        headers["idempotency-key"] = key
    if token:
        headers["authorization"] = f"Bearer {token}"
    return VendorRequest(
        method="POST",
        path=f"/{NAME}/conversations/{quote(conversation, safe='')}/{door}",
        headers=headers,
        body=json.dumps({field: text}).encode(),
    )


def lookup_request(*, key: str, token: str = "") -> VendorRequest:
    """The request that asks whether an action with this key was accepted."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return VendorRequest(method="GET", path=f"/{NAME}/actions", query={"key": key}, headers=headers)


def _read_send(request: VendorRequest, conversation: str, door: str) -> Ask:
    action, field, prefix = _ACTIONS[door]
    if not 0 < len(conversation) <= MAX_CONVERSATION_LENGTH:
        limit = MAX_CONVERSATION_LENGTH
        return Bad(status=400, sentence=f"a conversation id has 1 to {limit} characters")
    if len(request.idempotency_key) > MAX_KEY_LENGTH:
        return Bad(status=400, sentence=f"an Idempotency-Key has at most {MAX_KEY_LENGTH} characters")
    try:
        text = required_text(read_object(request.body), field)
    except BodyError as exc:
        return Bad(status=400, sentence=str(exc))
    return Send(
        action=action,
        conversation=conversation,
        id_prefix=prefix,
        text_sha256=hashlib.sha256(text.encode()).hexdigest(),
        text_length=len(text),
    )


def _read_lookup(request: VendorRequest) -> Ask:
    if "key" in request.query:
        key = request.query["key"]
        if not 0 < len(key) <= MAX_KEY_LENGTH:
            return Bad(status=400, sentence=f"key has 1 to {MAX_KEY_LENGTH} characters")
        return LookUp(key=key, action=request.query.get("action", ""))
    after, limit = request.query.get("after", "0"), request.query.get("limit", "100")
    for name, value in (("after", after), ("limit", limit)):
        if not (value.isascii() and value.isdigit() and len(value) <= 12):
            return Bad(status=400, sentence=f"{name} must be a whole number of at least 0")
    return ListAccepts(
        after=int(after),
        limit=min(int(limit), MAX_LIST),
        conversation=request.query.get("conversation", ""),
    )
