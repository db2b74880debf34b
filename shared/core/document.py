"""Documents: text too large for a payload, kept in the content store under its tenant and named by a reference."""

from __future__ import annotations

import re

from shared.core.errors import BadInput
from shared.core.job import new_tenant

MAX_DOCUMENT_BYTES = 5 * 1024 * 1024
MAX_DOCUMENT_ID = 128
_ROOM = "document/"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+=-]*")


def document_ref(tenant: str, document_id: object) -> str:
    """Where a tenant's new document is kept."""
    return f"{_ROOM}{new_tenant(tenant)}/{_id_of('document_id', document_id)}"


def own_document(ref: object, tenant: str) -> str:
    """`ref`, if it names a document of this very tenant. Raises BadInput: another's text is never read."""
    if not isinstance(ref, str) or not ref.startswith(_ROOM):
        raise BadInput("document", "must be the reference that put_document gave")
    # An older tenant's name may hold a slash and an id may not, so what stands before the last slash is the tenant.
    owner, _, document_id = ref.removeprefix(_ROOM).rpartition("/")
    if owner != tenant:
        raise BadInput("document", "belongs to another tenant")
    _id_of("document", document_id)
    return ref


def document_bytes(data: object) -> bytes:
    """A document as it is stored: text in UTF-8, not empty, bounded."""
    if isinstance(data, str):
        try:
            data = data.encode()
        except UnicodeEncodeError:
            raise BadInput("data", "holds text that is not valid Unicode") from None
    if not isinstance(data, bytes) or not data:
        raise BadInput("data", "must be text, or its bytes in UTF-8, and not empty")
    if len(data) > MAX_DOCUMENT_BYTES:
        raise BadInput("data", f"has {len(data)} bytes, at most {MAX_DOCUMENT_BYTES} are allowed")
    try:
        data.decode()
    except UnicodeDecodeError:
        raise BadInput("data", "is not UTF-8") from None
    return data


def _id_of(field: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_DOCUMENT_ID or not _ID.fullmatch(value):
        raise BadInput(
            field, f"may hold only letters, digits and . _ : @ + = - (an id, not text), at most {MAX_DOCUMENT_ID}"
        )
    return value
