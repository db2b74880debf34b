"""What travels in a queue: ids and codes only, small, and strictly read."""

from __future__ import annotations

import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.contract import envelope
from shared.contract.envelope import MAX_BYTES, BadEnvelope, Ticket
from shared.core.job import MAX_TENANT, Category, job_id_of
from shared.core.lifecycle import signature_of
from shared.core.moment import iso
from tests.builders import a_job
from tests.unit.core.strategies import few, identifiers, json_values, moments, names

SECRET = "the customer's own words"
JOB = a_job().job_id


@pytest.mark.fault("B11", "I6")
@few
@given(lane=names, tenant=identifiers, task=names, key=st.lists(identifiers, min_size=1, max_size=4))
def test_every_ticket_is_small_and_is_read_back(lane: str, tenant: str, task: str, key: list[str]) -> None:
    """Whatever a job is called, its message has ids only, is far below the limit, and says the same again."""
    job_id = job_id_of(lane, tenant[:MAX_TENANT], task, key)
    body = envelope.encode_ticket(job_id, lane)
    assert len(body.encode()) <= 128 <= MAX_BYTES <= 4096
    assert envelope.decode_ticket(body) == Ticket(job_id=job_id, lane=lane)
    assert set(json.loads(body)) == {"v", "job", "lane"}


@pytest.mark.fault("B11", "I5")
@few
@given(job=st.uuids(), lane=names, category=st.sampled_from(Category), error=st.text(max_size=500), at=moments)
def test_every_dead_letter_is_small_and_reads_as_a_ticket(
    job: uuid.UUID, lane: str, category: Category, error: str, at: object
) -> None:
    """Ids, category, signature and time; triage finds its job in it as in any message."""
    body = envelope.encode_dead_letter(
        job_id=str(job),
        lane=lane,
        category=category,
        signature=signature_of(error),
        at=iso(at),  # type: ignore[arg-type]
    )
    assert len(body.encode()) <= MAX_BYTES
    assert envelope.decode_ticket(body) == Ticket(job_id=str(job), lane=lane)


MALFORMED = {
    "empty": ("", "is not valid JSON"),
    "prose": (SECRET, "is not valid JSON"),
    "a list": (json.dumps([SECRET]), "is not an object"),
    "no version": (json.dumps({"job": JOB, "lane": "support"}), "version is not 1"),
    "a newer version": (json.dumps({"v": 2, "job": JOB, "lane": "support"}), "version is not 1"),
    "version as text": (json.dumps({"v": "1", "job": JOB, "lane": "support"}), "version is not 1"),
    "version as truth": (json.dumps({"v": True, "job": JOB, "lane": "support"}), "version is not 1"),
    "version as float": ('{"v": 1.0, "job": "x", "lane": "support"}', "version is not 1"),
    "no job": (json.dumps({"v": 1, "lane": "support"}), "field job is missing"),
    "an empty job": (json.dumps({"v": 1, "job": "", "lane": "support"}), "field job is missing"),
    "a job that is no id": (json.dumps({"v": 1, "job": SECRET, "lane": "support"}), "field job is not a job id"),
    "a job in capitals": (json.dumps({"v": 1, "job": JOB.upper(), "lane": "support"}), "is not a job id"),
    "a job in braces": (json.dumps({"v": 1, "job": f"{{{JOB[:34]}}}", "lane": "support"}), "is not a job id"),
    "a long job": (json.dumps({"v": 1, "job": SECRET * 9, "lane": "support"}), "field job is too long"),
    "a number as job": (json.dumps({"v": 1, "job": 7, "lane": "support"}), "field job is missing"),
    "no lane": (json.dumps({"v": 1, "job": JOB}), "field lane is missing"),
    "a long lane": (json.dumps({"v": 1, "job": JOB, "lane": SECRET * 9}), "field lane is too long"),
    "a nested lane": (json.dumps({"v": 1, "job": JOB, "lane": {"a": SECRET}}), "field lane is missing"),
    "two jobs": (f'{{"v":1,"job":"{JOB}","job":"{JOB}","lane":"support"}}', "same field twice"),
    "not a number": ('{"v":1,"x":NaN}', "NaN or Infinity"),
    "deep": ('{"v":1,"x":' + "[" * 9 + "]" * 9 + "}", "nested deeper than 2"),
    "deeper": ("[" * 4000, "nested deeper than 2"),
    "long": (json.dumps({"v": 1, "job": JOB, "lane": "support", "x": SECRET * 400}), "has over 4096 characters"),
}


@pytest.mark.parametrize(("body", "problem"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_body_is_refused_with_what_is_wrong(body: str, problem: str) -> None:
    """A clear sentence for the operator, and none of the body in it."""
    with pytest.raises(BadEnvelope) as refused:
        envelope.decode_ticket(body)
    assert problem in str(refused.value)
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None


@few
@given(body=st.text(max_size=60) | json_values.map(json.dumps))
def test_any_body_is_a_ticket_or_refused(body: str) -> None:
    """No other exception, whatever a stranger sends."""
    try:
        ticket = envelope.decode_ticket(body)
    except BadEnvelope:
        return
    assert uuid.UUID(ticket.job_id)


@few
@given(extra=st.dictionaries(names, st.integers() | names, max_size=3))
def test_fields_of_a_newer_sender_are_passed_over(extra: dict[str, object]) -> None:
    """One version tolerates the next one's additions."""
    body = json.dumps({**extra, "v": 1, "job": JOB, "lane": "support"})
    assert envelope.decode_ticket(body) == Ticket(job_id=JOB, lane="support")


def test_a_dead_letter_is_told_from_a_ticket() -> None:
    """By its category; what cannot be read is neither."""
    letter = envelope.encode_dead_letter(job_id=JOB, lane="support", category="auth", signature="x", at="now")
    assert envelope.is_dead_letter(letter)
    assert not envelope.is_dead_letter(envelope.encode_ticket(JOB, "support"))
    assert not envelope.is_dead_letter("not ours")
