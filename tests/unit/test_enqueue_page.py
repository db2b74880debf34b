"""docs/enqueue.md tells a producer the truth: its recipe is run, and what it makes is an id."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.job import job_id_of, new_tenant
from tests.unit.core.strategies import few

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "enqueue.md").read_text(encoding="utf-8")
SECRET = "thirty-two letters that nobody has"


def opaque(address: str, secret: str = SECRET) -> str:
    """What the page's recipe makes of an address."""
    (recipe,) = [one for one in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "def opaque" in one]
    told: dict[str, Any] = {}
    exec(compile(recipe, "docs/enqueue.md", "exec"), told)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PENSTOCK_ID_SECRET", secret)
        return str(told["opaque"](address))


@pytest.mark.fault("I8")
@few
@given(st.emails())
def test_an_address_becomes_an_id_that_does_not_tell_it(address: str) -> None:
    """Taken as a tenant, a key and a document id; neither the address nor a hash that anybody can make stands in it."""
    made = opaque(address)
    assert new_tenant(made) == made
    assert job_id_of("support", made, "reply", (made, "1"))
    assert made == opaque(f" {address.upper()} ".replace("\u0130", "i")) or not address.isascii()
    assert address.partition("@")[0].lower() not in made or len(address.partition("@")[0]) < 4
    assert made not in {
        hashlib.sha256(address.encode()).hexdigest(),
        opaque(address, "another secret of the same kind"),
    }


def test_two_addresses_are_two_ids() -> None:
    """As many as one tries."""
    assert len({opaque(f"ada+{number}@example.com") for number in range(2_000)}) == 2_000
