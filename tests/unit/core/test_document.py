"""A document's reference names its tenant, and nobody else's job can use it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.document import MAX_DOCUMENT_BYTES, document_bytes, document_ref, own_document
from shared.core.errors import BadInput

tenants = st.from_regex(r"[a-z][a-z/.:-]{0,8}", fullmatch=True)
ids = st.from_regex(r"[a-z0-9][a-z0-9._:=-]{0,8}", fullmatch=True)


@given(tenant=tenants, document_id=ids)
def test_a_tenants_own_document_is_accepted(tenant: str, document_id: str) -> None:
    """What put_document gives is what the job's tenant may read."""
    ref = document_ref(tenant, document_id)
    assert ref == own_document(ref, tenant)


@given(owner=tenants, reader=tenants, document_id=ids)
def test_no_other_tenant_can_read_it(owner: str, reader: str, document_id: str) -> None:
    """Also where one tenant's name begins with another's: a slash belongs to the tenant, never to the id."""
    if owner != reader:
        with pytest.raises(BadInput):
            own_document(document_ref(owner, document_id), reader)


@pytest.mark.parametrize(
    "ref",
    [
        *(None, 7, "", "document", "document/", "document/acme", "document/acme/", "/document/acme/d-1"),
        *("payload/acme/d-1", "result/acme/d-1", "document/acme/a b", "document/acme/../d-1", "document/acme/.."),
        *("document/acme/x/d-1", "document/Acme/d-1", "document/acme/d-1/", "document/acme/" + "d" * 129),
        *("document/acme/d-1\n", "document/acme/ümlaut"),
    ],
)
def test_what_is_no_own_reference_is_refused(ref: Any) -> None:
    """By its field, and without a word of it."""
    with pytest.raises(BadInput) as refused:
        own_document(ref, "acme")
    assert refused.value.field == "document"


@pytest.mark.parametrize("document_id", ["", "a/b", "a b", "d" * 129, None, 7, "the customer's words"])
def test_an_id_is_an_id(document_id: Any) -> None:
    """Short, printable, without a slash."""
    with pytest.raises(BadInput, match="document_id"):
        document_ref("acme", document_id)


def test_text_and_its_bytes_are_the_same_document() -> None:
    """UTF-8."""
    assert "grün".encode() == document_bytes("grün") == document_bytes("grün".encode())
    assert len(document_bytes("x" * MAX_DOCUMENT_BYTES)) == MAX_DOCUMENT_BYTES


@pytest.mark.parametrize(
    "data", ["", b"", "\ud800", b"\xff\xfe", "x" * (MAX_DOCUMENT_BYTES + 1), None, 7, ["text"]], ids=range(8)
)
def test_what_is_no_text_is_refused(data: Any) -> None:
    """Before anything is stored."""
    with pytest.raises(BadInput, match="data"):
        document_bytes(data)
