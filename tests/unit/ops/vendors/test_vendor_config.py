"""The switches: what may be set, what is refused, and with which sentence."""

from __future__ import annotations

import pytest

from ops.vendors.accounts import Accounts
from ops.vendors.config import ConfigError, VendorConfig, changed


def test_a_change_leaves_the_other_fields() -> None:
    """A change replaces the fields it names and no other."""
    config = changed(VendorConfig(latency_s=0.5), {"outage": True})
    assert (config.latency_s, config.outage) == (0.5, True)


def test_a_configuration_reads_back_what_it_writes() -> None:
    """What is shown as JSON can be set again and means the same."""
    config = changed(
        VendorConfig(),
        {
            "requests_per_minute": 60,
            "valid_tokens": ["a"],
            "script": [{"match": {"key": "k", "nth": 2}, "do": "hang:0.5", "times": 3}],
            "canned_answers": [{"contains": "refund", "content": "yes"}],
        },
    )
    assert changed(VendorConfig(), config.to_json()) == config


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"latency": 1}, "there is no field 'latency'"),
        ({"latency_s": -1}, "latency_s must be a number from 0 to 3600, not -1"),
        ({"latency_s": True}, "latency_s must be a number"),
        ({"latency_s": float("nan")}, "latency_s must be a number"),
        ({"latency_s": "1"}, "latency_s must be a number"),
        ({"requests_per_minute": 0}, "requests_per_minute must be a whole number"),
        ({"requests_per_minute": 1.5}, "requests_per_minute must be a whole number"),
        ({"error_5xx_share": 1.1}, "error_5xx_share must be a number from 0 to 1"),
        ({"error_5xx_share": 0.6, "drop_after_accept_share": 0.6}, "add up to 1.2"),
        ({"burst_requests": 5}, "burst_requests needs requests_per_minute"),
        ({"error_5xx_status": 404}, "error_5xx_status must be a whole number from 500 to 599"),
        ({"outage": "maybe"}, "outage must be one of false, true, refuse"),
        ({"outage": 1}, "outage must be one of"),
        ({"lookup": "sometimes"}, "lookup must be one of none, eventual, exact"),
        ({"dedupe_by_key": "yes"}, "dedupe_by_key must be true or false"),
        ({"valid_tokens": "abc"}, "valid_tokens must be a list"),
        ({"script": {}}, "script must be a list of steps"),
        ({"script": [{"match": {}}]}, "script step 1: needs do"),
        ({"script": [{"do": "explode"}]}, "script step 1: do must begin with one of"),
        ({"script": [{"do": "status:200"}]}, "a status from 400 to 599"),
        ({"script": [{"do": "hang:nan"}]}, "hang: with seconds"),
        ({"script": [{"do": "drop_after_accept:1"}]}, "takes no number"),
        ({"script": [{"do": "answer", "match": {"nth": 0}}]}, "nth must be a whole number"),
        ({"script": [{"do": "answer", "match": {"pth": ""}}]}, "match has no field 'pth'"),
        ({"canned_answers": [{"contains": "a"}]}, "canned_answers must be a list of {contains, content}"),
        ([], "must be a JSON object"),
    ],
)
def test_a_bad_change_is_refused_with_a_sentence(changes: object, sentence: str) -> None:
    """An unknown field or a bad value is refused by name, with what it must be."""
    with pytest.raises(ConfigError) as refused:
        changed(VendorConfig(), changes)
    assert sentence in str(refused.value)


def test_a_refused_change_changes_nothing() -> None:
    """One bad field spoils the whole change."""
    accounts = Accounts()
    before = accounts.vendor("helpdesk").config
    with pytest.raises(ConfigError):
        accounts.configure("helpdesk", latency_s=1, nonsense=2)
    assert accounts.vendor("helpdesk").config == before


def test_an_unknown_vendor_is_refused() -> None:
    """A vendor that does not exist is refused, naming those that do."""
    with pytest.raises(ConfigError, match="there are helpdesk, openai"):
        Accounts().configure("fax", outage=True)
    with pytest.raises(ConfigError, match="no vendor 'fax'"):
        Accounts(configs={"fax": {}})


def test_every_field_can_be_set() -> None:
    """No switch exists that cannot be changed live."""
    config = VendorConfig()
    assert changed(config, config.to_json()) == config
