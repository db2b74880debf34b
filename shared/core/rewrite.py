"""Lane `rewrite`: what is recorded of a rewrite, and the router that decides where it is made. Pure.

The router is given facts alone: closed words, language tags and opaque ids. It has no way to see the text.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from shared.core.batch import Group
from shared.core.errors import BadInput
from shared.core.job import Job, identifier, name_of
from shared.core.run import Mode

MAX_RETRIES = 10
_IDS = ("rewrite_request_id", "recipient_user_id", "recipient_snapshot_id", "recipient_preference_snapshot_id")
_LANGUAGE = re.compile(
    r"(?P<language>[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4}|[a-z]{5,8})"
    r"(?:-(?P<script>[a-z]{4}))?"
    r"(?:-(?P<region>[a-z]{2}|\d{3}))?"
    r"(?P<variants>(?:-(?:[a-z0-9]{5,8}|\d[a-z0-9]{3}))*)"
    r"(?P<extensions>(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*)",
    re.ASCII,
)
"""A language tag of RFC 5646, in lower case, without private use: anybody could write anything there."""
_LONGEST_TAG = 35


class Surface(StrEnum):
    """Where the rewritten text is shown."""

    WEEKLY_HARMONY = "weekly_harmony"
    DIRECT_MESSAGE = "direct_message"
    OTHER = "other"


class Strength(StrEnum):
    """How much of it is changed."""

    LIGHT_TOUCH = "light_touch"
    FULL_REFRAME = "full_reframe"


def language_tag(field: str, value: object) -> str:
    """A BCP-47 language tag in its usual spelling, as `de-AT`; anything else is refused."""
    tag = value.lower() if isinstance(value, str) else ""
    found = _LANGUAGE.fullmatch(tag) if 0 < len(tag) <= _LONGEST_TAG else None
    if found is None:
        raise BadInput(field, "must be a BCP-47 language tag, such as en, de-AT or zh-Hant-TW")
    for part in (found["variants"].split("-")[1:], re.findall(r"-([0-9a-wyz])(?=-)", found["extensions"])):
        if len(set(part)) < len(part):
            raise BadInput(field, "repeats a variant or an extension, which BCP-47 does not allow")
    script, region = found["script"], found["region"]
    usual = [found["language"]]
    usual += [script.title()] if script else []
    usual += [region.upper()] if region else []
    return "-".join(usual) + found["variants"] + found["extensions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Languages:
    """From which language into which."""

    source: str
    target: str

    @classmethod
    def from_mapping(cls, value: object) -> Languages:
        """`{"from": tag, "to": tag}`."""
        if not isinstance(value, Mapping) or set(value) != {"from", "to"}:
            raise BadInput("language_pair", "must be {from, to}, each a BCP-47 language tag")
        return cls(
            source=language_tag("language_pair.from", value["from"]),
            target=language_tag("language_pair.to", value["to"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteFacts:
    """All that the record says of a rewrite besides its text: nothing in here is prose."""

    rewrite_request_id: str
    surface: Surface
    rewrite_strength: Strength
    language_pair: Languages
    recipient_user_id: str
    recipient_snapshot_id: str
    recipient_preference_snapshot_id: str

    @classmethod
    def from_mapping(cls, values: object) -> RewriteFacts:
        """The facts a producer gives; what is missing, unknown or not of its kind is named."""
        if not isinstance(values, Mapping):
            raise BadInput("facts", "are missing: give the request, its surface, strength, languages and recipient")
        known = [field.name for field in fields(cls)]
        for name in known:
            if name not in values:
                raise BadInput(f"facts.{name}", "is missing")
        if len(values) > len(known):
            raise BadInput("facts", f"may only hold {', '.join(known)}: text belongs into the payload")
        ids = {name: _uuid(f"facts.{name}", values[name]) for name in _IDS}
        return cls(
            surface=Surface(_one_of("facts.surface", values["surface"], Surface)),
            rewrite_strength=Strength(_one_of("facts.rewrite_strength", values["rewrite_strength"], Strength)),
            language_pair=Languages.from_mapping(values["language_pair"]),
            **ids,
        )

    def to_mapping(self) -> dict[str, Any]:
        """As a row keeps them."""
        pair = {"from": self.language_pair.source, "to": self.language_pair.target}
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: str(value) for name, value in plain.items() if name != "language_pair"} | {"language_pair": pair}

    @property
    def key(self) -> tuple[str, str]:
        """The cause of the job: a request is rewritten once for each recipient."""
        return self.rewrite_request_id, self.recipient_user_id


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingDecision:
    """Where and how a rewrite is made. Closed fields, none of which can hold text."""

    provider: str
    adapter_kind: str
    model: str
    prompt_version: str
    policy_version: str
    execution_mode: Mode
    base_url: str | None = None
    cache_eligible: bool = False
    """Noted only: no cache is built."""
    max_retries: int = 0
    """Noted only: a job's tries are its `max_attempts`."""

    @classmethod
    def from_mapping(cls, values: object, where: str = "routing_decision") -> RoutingDecision:
        """The decision a row or a policy says; an unknown field or one that could be prose is refused."""
        if not isinstance(values, Mapping):
            raise BadInput(where, "is missing")
        known = {field.name for field in fields(cls)}
        if not set(values) <= known:
            raise BadInput(where, f"may only hold {', '.join(sorted(known))}")
        for name in ("provider", "adapter_kind", "model", "prompt_version", "policy_version", "execution_mode"):
            if name not in values:
                raise BadInput(f"{where}.{name}", "is missing")
        eligible, retries = values.get("cache_eligible", False), values.get("max_retries", 0)
        if not isinstance(eligible, bool):
            raise BadInput(f"{where}.cache_eligible", "must be true or false")
        if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= MAX_RETRIES:
            raise BadInput(f"{where}.max_retries", f"must be a whole number from 0 to {MAX_RETRIES}")
        return cls(
            provider=name_of(f"{where}.provider", values["provider"]),
            adapter_kind=name_of(f"{where}.adapter_kind", values["adapter_kind"]),
            model=identifier(f"{where}.model", values["model"], 64),
            prompt_version=identifier(f"{where}.prompt_version", values["prompt_version"], 32),
            policy_version=identifier(f"{where}.policy_version", str(values["policy_version"]), 32),
            execution_mode=Mode(_one_of(f"{where}.execution_mode", values["execution_mode"], Mode)),
            base_url=_address(f"{where}.base_url", values.get("base_url")),
            cache_eligible=eligible,
            max_retries=retries,
        )

    def to_mapping(self) -> dict[str, Any]:
        """As a row keeps it: every field of the contract."""
        return {name: value.value if isinstance(value, Mode) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Facts of these kinds are decided like this."""

    when: Mapping[str, str]
    use: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingPolicy:
    """How the router decides: configuration with a version. The first rule that fits is laid over the default."""

    version: str
    default: Mapping[str, Any]
    rules: tuple[Rule, ...] = ()

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], where: str = "routing") -> RoutingPolicy:
        """Every outcome that the policy can have is checked here, once, so that routing cannot fail later."""
        for setting in values:
            if setting not in ("version", "default", "rules"):
                raise BadInput(where, f"has an unknown setting {setting!r}")
        rules = values.get("rules", ())
        if not isinstance(rules, Sequence) or isinstance(rules, str):
            raise BadInput(f"{where}.rules", "must be a list of {when, use}")
        policy = cls(
            version=identifier(f"{where}.version", str(values.get("version", "")), 32),
            default=_table(f"{where}.default", values.get("default")),
            rules=tuple(_rule(f"{where}.rules[{number}]", rule) for number, rule in enumerate(rules)),
        )
        policy.decision({}, f"{where}.default")
        for number, rule in enumerate(policy.rules):
            policy.decision(rule.use, f"{where}.rules[{number}].use")
        return policy

    def to_mapping(self) -> dict[str, Any]:
        """As plain values: `from_mapping` gives the same policy back."""
        rules = [{"when": dict(rule.when), "use": dict(rule.use)} for rule in self.rules]
        return {"version": self.version, "default": dict(self.default), **({"rules": rules} if rules else {})}

    @property
    def providers(self) -> frozenset[str]:
        """Every provider that it can decide for."""
        return frozenset(self.decision(use).provider for use in ({}, *(rule.use for rule in self.rules)))

    def decision(self, use: Mapping[str, Any], where: str = "routing_decision") -> RoutingDecision:
        """The default with a rule laid over it."""
        return RoutingDecision.from_mapping({**self.default, **use, "policy_version": self.version}, where)


def route(facts: RewriteFacts, policy: RoutingPolicy) -> RoutingDecision:
    """Where and how; the same facts and policy always give the same answer."""
    seen = {
        "surface": facts.surface.value,
        "rewrite_strength": facts.rewrite_strength.value,
        "from": facts.language_pair.source,
        "to": facts.language_pair.target,
    }
    for rule in policy.rules:
        if all(_fits(seen[name], wanted) for name, wanted in rule.when.items()):
            return policy.decision(rule.use)
    return policy.decision({})


def group_of(job: Job) -> Group:
    """What a job must have in common with others to be in one batch. Raises BadInput for a row that is no rewrite."""
    facts = RewriteFacts.from_mapping(job.facts)
    decision = RoutingDecision.from_mapping(job.routing_decision)
    return Group(
        provider=decision.provider,
        model=decision.model,
        prompt_version=decision.prompt_version,
        policy_version=decision.policy_version,
        lane=job.lane,
        locales=f"{facts.language_pair.source}>{facts.language_pair.target}",
    )


def record(job: Job) -> dict[str, Any]:
    """The job in the words of the rewrite contract: every field of its record, and no other."""
    facts = RewriteFacts.from_mapping(job.facts).to_mapping()
    return {
        "job_id": job.job_id,
        "rewrite_request_id": facts["rewrite_request_id"],
        "task": job.task,
        **{name: facts[name] for name in ("surface", "rewrite_strength", "language_pair", *_IDS[1:])},
        "status": job.status.value,
        "created_at": job.created_at,
        "updated_at": job.updated_at,
        "not_before_at": job.not_before_at,
        "claimed_at": job.claimed_at,
        "claimed_by": job.claimed_by,
        "attempt_count": job.attempt_count,
        "max_attempts": job.max_attempts,
        "last_error": job.last_error,
        "last_error_at": job.last_error_at,
        "routing_decision": RoutingDecision.from_mapping(job.routing_decision).to_mapping(),
    }


def _fits(seen: str, wanted: str) -> bool:
    """The same word; a language fits its regions, too: `de` is also `de-AT`."""
    return seen == wanted or seen.startswith(f"{wanted}-")


def _rule(where: str, value: object) -> Rule:
    given = _table(where, value)
    if set(given) != {"when", "use"}:
        raise BadInput(where, "must be {when, use}")
    when, use = _table(f"{where}.when", given["when"]), _table(f"{where}.use", given["use"])
    for name, wanted in when.items():
        match name:
            case "surface":
                _one_of(f"{where}.when.surface", wanted, Surface)
            case "rewrite_strength":
                _one_of(f"{where}.when.rewrite_strength", wanted, Strength)
            case "from" | "to":
                when = {**when, name: language_tag(f"{where}.when.{name}", wanted)}
            case _:
                raise BadInput(f"{where}.when", "may only ask for surface, rewrite_strength, from and to")
    if "policy_version" in use:
        raise BadInput(f"{where}.use.policy_version", "is the policy's version, for all of it")
    return Rule(when=when, use=use)


def _table(where: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise BadInput(where, "must be a table of settings")
    return dict(value)


def _one_of(field: str, value: object, kind: type[StrEnum]) -> str:
    if not isinstance(value, str) or value not in tuple(kind):
        raise BadInput(field, f"must be one of {', '.join(kind)}")
    return value


def _uuid(field: str, value: object) -> str:
    try:
        return str(uuid.UUID(value)) if isinstance(value, str) and len(value) == 36 else _no_uuid(field)
    except ValueError:
        return _no_uuid(field)


def _no_uuid(field: str) -> str:
    raise BadInput(field, "must be a UUID")


def _address(field: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not re.fullmatch(r"https?://[A-Za-z0-9.:/_-]{1,200}", value, re.ASCII):
        raise BadInput(field, "must be an https:// address, or null")
    return value
