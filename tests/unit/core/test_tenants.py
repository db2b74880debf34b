"""Whose something new is: a name that is nobody else's in front of a slash. What stands already is read as it is."""

from __future__ import annotations

from fnmatch import fnmatchcase
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.adapters import rows
from shared.core.document import document_ref, own_document
from shared.core.errors import BadInput
from shared.core.job import new_tenant
from shared.core.switches import check_scope
from tests.builders import a_job, a_lane
from tests.unit.core.strategies import few

tenants = st.text(ascii_letters + digits + "._:@+=/-", min_size=1, max_size=6)


@pytest.mark.fault("J7")
@few
@given(one=tenants, other=tenants)
def test_no_document_stands_in_another_tenants_room(one: str, other: str) -> None:
    """The documented policy holds a producer to `document/TENANT/*`: of two tenants that may have new documents,
    neither's pattern covers the other's."""
    try:
        new_tenant(one), new_tenant(other)
    except BadInput:
        return
    assert fnmatchcase(document_ref(other, "d-1"), f"document/{one}/*") == (one == other)


@pytest.mark.fault("J7")
@pytest.mark.parametrize("tenant", ["acme/b", "acme/", "a//b"])
def test_a_tenant_with_a_slash_has_nothing_new(tenant: str) -> None:
    """The refusal says what to write instead, and is the caller's to mend."""
    with pytest.raises(BadInput, match="may not hold /") as refused:
        document_ref(tenant, "d-1")
    assert refused.value.field == "tenant"


@pytest.mark.fault("J7")
def test_what_stands_already_is_read_as_it_is() -> None:
    """Rows, documents and switches of a tenant that holds a slash from before."""
    job = a_job(tenant="acme/b")
    lane = a_lane()
    assert rows.job_from_item(rows.job_item(job, rows.lane_wpk(job, lane))).tenant == "acme/b"
    assert own_document("document/acme/b/d-1", "acme/b") == "document/acme/b/d-1"
    assert check_scope("tenant/support/acme/b")
