"""Reading an uploaded form: its fields, and the one file in it."""

from __future__ import annotations

import re

from ops.vendors.json_body import BodyError

_BOUNDARY = re.compile(r'boundary="?([^";]{1,200})"?')
_NAME = re.compile(r'name="([^"]{1,100})"')


def read_form(content_type: str, body: bytes) -> dict[str, bytes]:
    """The parts by name. Raises BodyError for what is no form."""
    boundary = _BOUNDARY.search(content_type)
    if not content_type.startswith("multipart/form-data") or boundary is None:
        raise BodyError("the body must be multipart/form-data with a boundary")
    parts = (b"\r\n" + body).split(b"\r\n--" + boundary[1].encode("latin-1"))
    if len(parts) < 3 or not parts[-1].startswith(b"--"):
        raise BodyError("the form does not end")
    fields: dict[str, bytes] = {}
    for part in parts[1:-1]:
        head, blank, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = _NAME.search(head.decode("latin-1"))
        if not blank or name is None:
            raise BodyError("a part of the form has no name")
        fields[name[1]] = content
    return fields
