"""References of payloads: which of the content store's two parts holds one, and where. Everything else is an object."""

from __future__ import annotations

from shared.contract import names, table


def payload_row(tenant: str, job_id: str, digest: str) -> str:
    """A small payload: a row under its tenant. The hash keeps a conflicting request from replacing the text."""
    return names.PAYLOAD_ROWS + table.payload_pk(tenant, job_id, digest)


def payload_object(job_id: str, digest: str) -> str:
    """A large payload: an object. The hash keeps a conflicting request from replacing the text."""
    return f"{names.PAYLOADS}{job_id}/{digest}"


def row_key(ref: str) -> str | None:
    """The key of the row that a reference names; None where it names an object."""
    return ref.removeprefix(names.PAYLOAD_ROWS) if ref.startswith(names.PAYLOAD_ROWS) else None
