"""The rewrite's record and its router: closed words, language tags and ids alone; no way for text to come in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.core.errors import BadInput
from shared.core.rewrite import (
    RewriteFacts,
    RoutingDecision,
    RoutingPolicy,
    Strength,
    Surface,
    group_of,
    language_tag,
    record,
    route,
)
from shared.core.run import Mode
from tests.builders import NOW, a_job
from tests.unit.usecases.rewriting import POLICY, facts

TEXT = "you never do the dishes"


@pytest.mark.parametrize(
    ("given_tag", "usual"),
    [
        *(("en", "en"), ("EN-gb", "en-GB"), ("zh-hant-tw", "zh-Hant-TW"), ("sr-Latn", "sr-Latn"), ("es-419", "es-419")),
        *(("de-CH-1996", "de-CH-1996"), ("sl-rozaj-biske", "sl-rozaj-biske"), ("zh-yue-HK", "zh-yue-HK")),
        ("en-u-ca-gregory", "en-u-ca-gregory"),
    ],
)
def test_a_language_tag_has_one_spelling(given_tag: str, usual: str) -> None:
    """Well-formed tags of BCP-47 are taken, and written as people write them."""
    assert language_tag("to", given_tag) == usual
    assert language_tag("to", usual) == usual


@pytest.mark.parametrize(
    "bad",
    [
        *(
            "",
            "e",
            "english language",
            "en_GB",
            "en-",
            "-en",
            "en--GB",
            "en-GB-GB",
            "123",
            "x",
            "x-home",
            "de-1996-1996",
        ),
        *(
            "en-a-bb-a-cc",
            "i-klingon",
            "en-u",
            "a" * 9,
            "en-" + "abcde-" * 10 + "abcde",
            None,
            7,
            ["en"],
            "de AT",
            "dé",
        ),
    ],
)
def test_what_is_no_language_tag_is_refused(bad: Any) -> None:
    """By name, and without repeating it."""
    with pytest.raises(BadInput, match=r"to: (must be a BCP-47|repeats)") as refused:
        language_tag("to", bad)
    if isinstance(bad, str) and len(bad) > 8:
        assert bad not in str(refused.value)


@pytest.mark.req("R2")
def test_the_record_has_every_field_of_the_contract_and_no_other() -> None:
    """Seed 000 §4, complete."""
    decision = RoutingPolicy.from_mapping(POLICY).decision({}).to_mapping()
    job = a_job(lane="rewrite", task="complaint_rewrite", facts=facts(), routing_decision=decision)
    told = record(job)
    assert set(told) == {
        *("job_id", "rewrite_request_id", "task", "surface", "rewrite_strength", "language_pair", "recipient_user_id"),
        *("recipient_snapshot_id", "recipient_preference_snapshot_id", "status", "created_at", "updated_at"),
        *("not_before_at", "claimed_at", "claimed_by", "attempt_count", "max_attempts", "last_error", "last_error_at"),
        "routing_decision",
    }
    assert set(told["routing_decision"]) == {
        *("provider", "adapter_kind", "base_url", "model", "prompt_version", "policy_version", "execution_mode"),
        *("cache_eligible", "max_retries"),
    }
    assert told["language_pair"] == {"from": "de-AT", "to": "en-GB"}
    assert told["created_at"] == NOW


@pytest.mark.parametrize(
    ("field", "changed"),
    [
        ("facts.surface", {"surface": "billboard"}),
        ("facts.rewrite_strength", {"rewrite_strength": TEXT}),
        ("facts.rewrite_request_id", {"rewrite_request_id": "7"}),
        ("facts.recipient_user_id", {"recipient_user_id": TEXT}),
        ("facts.recipient_snapshot_id", {"recipient_snapshot_id": None}),
        ("language_pair", {"language_pair": "de>en"}),
        ("language_pair", {"language_pair": {"from": "de", "to": "en", "via": TEXT}}),
        ("language_pair.from", {"language_pair": {"from": TEXT, "to": "en"}}),
        ("facts", {"message": TEXT}),
    ],
)
@pytest.mark.req("R3")
def test_facts_that_are_none_are_refused_by_name(field: str, changed: dict[str, Any]) -> None:
    """A word outside its list, an id that is none, one field too many; and the error repeats nothing of it."""
    with pytest.raises(BadInput) as refused:
        RewriteFacts.from_mapping(facts(**changed))
    assert refused.value.field == field
    assert TEXT not in str(refused.value)


@pytest.mark.req("R3")
@given(field=st.sampled_from(sorted(RoutingDecision.__dataclass_fields__)), text=st.text(min_size=1, max_size=40))
def test_no_field_of_a_decision_can_hold_prose(field: str, text: str) -> None:
    """Whatever field it is put into: text with a blank, a line break or a sign that no id has is refused."""
    good = RoutingPolicy.from_mapping(POLICY).decision({}).to_mapping()
    try:
        kept = RoutingDecision.from_mapping({**good, field: text}).to_mapping()
    except BadInput:
        return
    assert not any(character.isspace() for character in str(kept[field]))
    assert str(kept[field]).isascii()


@pytest.mark.req("R3")
def test_a_decision_with_one_field_too_many_is_refused() -> None:
    """Text is not smuggled in beside the closed fields."""
    good = RoutingPolicy.from_mapping(POLICY).decision({}).to_mapping()
    with pytest.raises(BadInput, match="may only hold"):
        RoutingDecision.from_mapping({**good, "note": TEXT})


@given(surface=st.sampled_from(Surface), strength=st.sampled_from(Strength))
@pytest.mark.req("R12")
def test_the_router_decides_by_the_first_rule_that_fits(surface: Surface, strength: Strength) -> None:
    """The same facts and policy always give the same decision, and it names the policy's version."""
    policy = RoutingPolicy.from_mapping(POLICY)
    told = RewriteFacts.from_mapping(facts(surface=surface.value, rewrite_strength=strength.value))
    decision = route(told, policy)
    assert decision == route(told, policy)
    assert decision.policy_version == "p1"
    if surface is Surface.DIRECT_MESSAGE:
        assert (decision.execution_mode, decision.model) == (Mode.ASYNC, "model-a")
    else:
        assert decision.execution_mode is Mode.BATCH
        assert decision.model == ("model-b" if strength is Strength.FULL_REFRAME else "model-a")


def test_a_rule_for_a_language_holds_for_its_regions() -> None:
    """`de` is also `de-AT`, and not `deu`."""
    rules = [{"when": {"from": "DE"}, "use": {"model": "german"}}]
    policy = RoutingPolicy.from_mapping({**POLICY, "rules": rules})
    assert route(RewriteFacts.from_mapping(facts()), policy).model == "german"
    other = facts(language_pair={"from": "fr", "to": "en"})
    assert route(RewriteFacts.from_mapping(other), policy).model == "model-a"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"version": "a b"}, "routing.version"),
        ({"rule": []}, "routing"),
        ({"rules": {}}, None),
        ({"rules": [{"when": {}}]}, "routing.rules[0]"),
        ({"rules": [{"when": {"text": "x"}, "use": {}}]}, "routing.rules[0].when"),
        ({"rules": [{"when": {"surface": "wall"}, "use": {}}]}, "routing.rules[0].when.surface"),
        ({"rules": [{"when": {}, "use": {"execution_mode": "later"}}]}, "routing.rules[0].use.execution_mode"),
        ({"rules": [{"when": {}, "use": {"policy_version": "p2"}}]}, "routing.rules[0].use.policy_version"),
        ({"default": {"provider": "openai"}}, "routing.default.adapter_kind"),
    ],
)
def test_a_policy_that_could_not_decide_is_refused_at_once(changed: dict[str, Any], field: str | None) -> None:
    """Every outcome it can have is looked at when it is read, not when the first job meets it."""
    values = {**POLICY, **changed}
    if field is None:
        with pytest.raises(BadInput):
            RoutingPolicy.from_mapping(values)
        return
    with pytest.raises(BadInput) as refused:
        RoutingPolicy.from_mapping(values)
    assert refused.value.field == field


def test_a_policy_survives_its_journey() -> None:
    """What infra writes down is what producers read."""
    policy = RoutingPolicy.from_mapping(POLICY)
    assert RoutingPolicy.from_mapping(policy.to_mapping()) == policy


def test_jobs_with_another_locale_or_version_are_another_group() -> None:
    """R12's six parts."""
    decision = RoutingPolicy.from_mapping(POLICY).decision({})
    job = a_job(lane="rewrite", facts=facts(), routing_decision=decision.to_mapping())
    group = group_of(job)
    assert (group.provider, group.model, group.prompt_version) == ("openai", "model-a", "v1")
    assert (group.policy_version, group.lane, group.locales) == ("p1", "rewrite", "de-AT>en-GB")
