"""A document's reference names its tenant, and nobody else's job can use it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.core.document import MAX_DOCUMENT_BYTES, document_bytes, document_ref, own_document
from shared.core.errors import BadInput

tenants = st.from_regex(r"[a-z][a-z.:-]{0,8}", fullmatch=True)
older_tenants = st.from_regex(r"[a-z][a-z/.:-]{0,8}", fullmatch=True)
ids = st.from_regex(r"[a-z0-9][a-z0-9._:=-]{0,8}", fullmatch=True)


@given(tenant=tenants, document_id=ids)
def test_a_tenants_own_document_is_accepted(tenant: str, document_id: str) -> None:
    """What put_document gives is what the job's tenant may read."""
    ref = document_ref(tenant, document_id)
    assert ref == own_document(ref, tenant)


@given(owner=older_tenants, reader=older_tenants, document_id=ids)
@example(owner="acme/b", reader="acme", document_id="d-1")
@example(owner="acme", reader="acme/b", document_id="d-1")
def test_no_other_tenant_can_read_it(owner: str, reader: str, document_id: str) -> None:
    """Also where an older tenant's name begins with another's: a slash belongs to the tenant, never to the id."""
    ref = f"document/{owner}/{document_id}"
    assert own_document(ref, owner) == ref
    if owner != reader:
        with pytest.raises(BadInput):
            own_document(ref, reader)


@given(tenant=older_tenants.filter(lambda name: "/" in name), document_id=ids)
@example(tenant="acme/b", document_id="d-1")
def test_a_tenant_with_a_slash_has_no_new_documents(tenant: str, document_id: str) -> None:
    """Its room would be a part of another tenant's."""
    with pytest.raises(BadInput, match="tenant"):
        document_ref(tenant, document_id)


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
