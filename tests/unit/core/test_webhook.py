"""Who sent an event: the right key, body and time pass, and nothing else; no input raises."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.webhook import (
    LIVE_KEYS,
    MAX_BODY_BYTES,
    WINDOW_S,
    Authenticity,
    authenticity,
    keys_by_tenant,
    signature_of,
)
from tests.builders import NOW

STAMP = int(NOW.timestamp())
NEW, OLD = b"n" * 43, b"o" * 43
# One length: HMAC fills a short key up with zeros, so two that differ by those are one.
keys_ = st.binary(min_size=32, max_size=32)
bodies = st.binary(max_size=200)
header_values = st.one_of(
    st.none(),
    st.integers(),
    st.text(max_size=80),
    st.binary(max_size=80),
    st.lists(st.text(max_size=3), max_size=2),
    st.sampled_from(
        [
            *("", " 1767225600", "1767225600 ", "1767225600\n", "+176722560", "1_76722560", "1767225600.0", "９" * 10),
            *("17672256000", "9999999999", "0000000000", "-767225600", "١٧٦٧٢٢٥٦٠٠"),
            *("v1=", "v1=" + "0" * 64, "v1=" + "é" * 64, "v1=" + "A" * 64, "v0=" + "0" * 64, "v1=" + "0" * 64 + "\n"),
        ]
    ),
)


def look(body: bytes = b"{}", **changes: Any) -> Authenticity:
    """What is found of a body that the new key signed now, with `changes`."""
    asked = {"timestamp": str(STAMP), "signature": signature_of(NEW, STAMP, body), "keys": (NEW, OLD), "now": NOW}
    return authenticity(body=body, **{**asked, **changes})


@pytest.mark.fault("J1")
@given(key=keys_, body=bodies, late_s=st.integers(-WINDOW_S, WINDOW_S), others=st.lists(keys_, max_size=1))
def test_the_right_key_body_and_time_pass(key: bytes, body: bytes, late_s: int, others: list[bytes]) -> None:
    """Whichever of the live keys signed it, and however the clocks differ inside the window."""
    found = authenticity(
        body=body,
        timestamp=str(STAMP),
        signature=signature_of(key, STAMP, body),
        keys=[*others, key],
        now=NOW + timedelta(seconds=late_s),
    )
    assert found is Authenticity.VERIFIED


@pytest.mark.fault("J1")
@given(key=keys_, other=keys_, body=bodies, sent=bodies, stamp=st.integers(STAMP - WINDOW_S, STAMP + WINDOW_S))
def test_another_key_body_or_time_is_forged(key: bytes, other: bytes, body: bytes, sent: bytes, stamp: int) -> None:
    """Each of the three alone is enough to refuse it."""
    signature = signature_of(key, STAMP, body)
    found = authenticity(body=sent, timestamp=str(stamp), signature=signature, keys=[other], now=NOW)
    right = (other, sent, stamp) == (key, body, STAMP)
    assert found is (Authenticity.VERIFIED if right else Authenticity.FORGED)


@pytest.mark.fault("J1")
@given(body=bodies, timestamp=header_values, signature=header_values, keys=st.lists(st.binary(), max_size=4))
def test_no_header_and_no_key_raises(body: bytes, timestamp: Any, signature: Any, keys: list[bytes]) -> None:
    """Whatever stands in the headers, the answer is a no."""
    found = authenticity(body=body, timestamp=timestamp, signature=signature, keys=keys, now=NOW)
    assert found is not Authenticity.VERIFIED


@pytest.mark.fault("J1")
def test_bytes_are_signed_not_what_they_mean() -> None:
    """The same JSON written otherwise is another body."""
    assert look(b'{"a": 1}') is Authenticity.VERIFIED
    assert look(b'{"a":1}', signature=signature_of(NEW, STAMP, b'{"a": 1}')) is Authenticity.FORGED


@pytest.mark.fault("J1")
def test_the_signature_is_the_published_one() -> None:
    """HMAC-SHA256 over timestamp, a full stop and the raw body, in hexadecimal."""
    expected = hmac.new(NEW, b"%d.\xff\x00" % STAMP, hashlib.sha256).hexdigest()
    assert signature_of(NEW, STAMP, b"\xff\x00") == f"v1={expected}"


@pytest.mark.fault("J2")
@pytest.mark.parametrize(
    ("late_s", "found"),
    [
        *((late_s, Authenticity.VERIFIED) for late_s in (-300, 0, 1, 300)),
        *((late_s, Authenticity.NOT_NOW) for late_s in (-301, 300.001, 301, 360, 3 * 86_400)),
    ],
)
def test_a_signature_is_good_for_five_minutes(late_s: float, found: Authenticity) -> None:
    """Both ways, to the second: whoever recorded it has no use of it later."""
    assert look(now=NOW + timedelta(seconds=late_s)) is found


@pytest.mark.fault("J2")
@pytest.mark.parametrize(
    "timestamp",
    [
        f" {STAMP}",
        f"{STAMP}\n",
        f"{STAMP}.0",
        f"+{STAMP}",
        "1_767225600",
        str(STAMP)[:9],
        f"0{STAMP}",
        "１" * 10,
        STAMP,
    ],
)
def test_a_time_is_ten_digits(timestamp: object) -> None:
    """What Python's `int` would still take is no time here, even when it was signed."""
    signature = "v1=" + hmac.new(NEW, f"{timestamp}.{{}}".encode(), hashlib.sha256).hexdigest()
    assert look(timestamp=timestamp, signature=signature) is Authenticity.NO_TIME


@pytest.mark.fault("J5")
def test_size_comes_before_everything() -> None:
    """At the limit a body is judged; one byte more is too large whatever else is wrong with it."""
    assert look(bytes(MAX_BODY_BYTES)) is Authenticity.VERIFIED
    assert look(bytes(MAX_BODY_BYTES + 1), timestamp=None, signature=None, keys=()) is Authenticity.TOO_LARGE


@pytest.mark.fault("J1")
def test_nobody_signs_for_a_tenant_without_a_key() -> None:
    """Not with the key that is computed with in its place, either."""
    for key in (b"", bytes(32), bytes(64)):
        assert look(signature=signature_of(key, STAMP, b"{}"), keys=()) is Authenticity.FORGED
        assert look(signature=signature_of(key, STAMP, b"{}"), keys=(NEW,)) is Authenticity.FORGED


def test_a_third_key_does_not_count() -> None:
    """Two live versions: a rotation has a beginning and an end."""
    third = b"t" * 43
    assert look(signature=signature_of(third, STAMP, b"{}"), keys=(NEW, OLD, third)) is Authenticity.FORGED


@pytest.mark.fault("J1", "H1")
def test_which_keys_count() -> None:
    """Long enough, two of each tenant, and none that two tenants share; anything else in the secret is passed over."""
    new, old = NEW.decode(), OLD.decode()
    told = {
        "acme": [new, old, "third" * 9],
        "bolt": "b" * 32,
        "short": ["s" * 31, ""],
        "odd": [None, 7, {"x": new}],
        "none": None,
        "twin-1": ["t" * 40, "own" * 20],
        "twin-2": "t" * 40,
        "broken": "\ud800" * 12,
    }
    found = keys_by_tenant(told)
    assert found.pop("broken")
    assert found == {
        "acme": (NEW, OLD),
        "bolt": (b"b" * 32,),
        **dict.fromkeys(("short", "odd", "none", "twin-2"), ()),
        "twin-1": (b"own" * 20,),
    }
    assert len(found["acme"]) == LIVE_KEYS
