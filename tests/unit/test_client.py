"""The client for programs: what it gives beside enqueueing, and who it says did it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from shared.client import NO_REASON, Enqueue, Penstock
from shared.core.errors import BadInput, NoAccess, Unavailable, UnknownStage
from shared.core.job import Status
from tests.builders import NOW, a_job, a_lane, an_effect_row
from tests.unit.usecases.desk import Desk

CALLER = "arn:aws:sts::123456789012:user/moto"
JOB = "0" * 64


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def penstock(desk: Desk) -> Iterator[Penstock]:
    """A client on the desk's stores; AWS is asked for who is calling, and for nothing else."""
    stores: dict[str, Any] = {"jobs": desk.jobs, "effects": desk.effects, "history": desk.history}
    with mock_aws():
        yield Penstock("dev", lanes=desk.lanes, content=desk.content, clock=desk.clock, **stores)


@pytest.mark.req("X2")
@pytest.mark.parametrize("delay_s", [0, 0.5, 90])
def test_a_job_is_scheduled_by_its_delay(desk: Desk, penstock: Penstock, delay_s: float) -> None:
    """From now, with the reason and the caller as AWS knows them in its history."""
    job = desk.put(a_job())
    after = penstock.schedule(job.job_id, delay_s, "vendor asked for a pause")
    at = NOW + timedelta(seconds=delay_s)
    assert (after.not_before_at, after.due) == (at, at)
    assert desk.job(job.job_id) == after
    (event,) = desk.history.of(f"job/{job.job_id}", limit=5)
    assert (event.kind, event.by, event.detail["why"]) == ("schedule", CALLER, "vendor asked for a pause")


@pytest.mark.req("X2")
@pytest.mark.parametrize("delay", [-1, float("nan"), float("inf"), 401 * 86_400])
def test_a_delay_that_cannot_be_meant_changes_nothing(desk: Desk, penstock: Penstock, delay: float) -> None:
    """Refused by name, for both verbs."""
    queued, running = desk.put(a_job(key="1")), desk.put(a_job(key="2", status=Status.PROCESSING))
    for verb, job in ((penstock.schedule, queued), (penstock.reset_to_pending, running)):
        with pytest.raises(BadInput) as refused:
            verb(job.job_id, delay)
        assert refused.value.field == "delay_seconds"
        assert desk.job(job.job_id) == job


@pytest.mark.req("X2")
def test_a_running_job_is_taken_back(desk: Desk, penstock: Penstock) -> None:
    """Without a delay and a reason it is due now, and the history says that none was given."""
    job = desk.put(a_job(status=Status.PROCESSING))
    after = penstock.reset_to_pending(job.job_id)
    assert (after.status, after.fence, after.due) == (Status.QUEUED, job.fence + 1, NOW)
    (event,) = desk.history.of(f"job/{job.job_id}", limit=5)
    assert (event.kind, event.by, event.detail["why"]) == ("reset", CALLER, NO_REASON)


@pytest.mark.req("X2")
def test_an_open_intent_is_refused(desk: Desk, penstock: Penstock) -> None:
    """As on the command line."""
    job = desk.put(a_job(status=Status.PROCESSING))
    desk.effects.intend(an_effect_row(job_id=job.job_id))
    with pytest.raises(BadInput, match="has an open effect"):
        penstock.reset_to_pending(job.job_id, 5, "hangs")
    assert desk.job(job.job_id) == job


@pytest.mark.fault("J7")
def test_a_tenant_with_a_slash_has_no_new_job_and_no_new_document(desk: Desk, penstock: Penstock) -> None:
    """Its room would be another tenant's, too; nothing is stored."""
    for make in (
        lambda: penstock.put_document("acme/b", "d-1", "text"),
        lambda: penstock.enqueue("support", "reply", "acme/b", "evt-1", {"text": "x"}),
    ):
        with pytest.raises(BadInput, match="may not hold /") as refused:
            make()
        assert refused.value.field == "tenant"
    assert (list(desk.jobs.scan()), desk.content.refs()) == ([], [])


def test_a_stage_there_cannot_be_is_refused_by_its_name(desk: Desk) -> None:
    """Before anything is asked, with the name that was meant."""
    with pytest.raises(UnknownStage, match="'prd' is not configured; did you mean prod"):
        Penstock("prd")
    for stage in ("", "Prod", "prod/../dev", None, 7):
        with pytest.raises(UnknownStage, match="known stages: local, dev, stage, prod"):
            Penstock(stage, lanes=desk.lanes)  # type: ignore[arg-type]


def test_a_stage_that_is_not_deployed_is_told() -> None:
    """Its parameter is missing, or one of its tables."""
    with mock_aws():
        with pytest.raises(UnknownStage, match="has no parameter /penstock/prod/lanes: is it deployed"):
            Penstock("prod")
        with pytest.raises(UnknownStage, match="PutItem found nothing"):
            Penstock("prod", lanes={"support": a_lane()}).enqueue("support", "reply", "acme", "evt-1")


ALONE = {
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""No profile and no role of the machine is found."""
NOBODY = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
SURROUNDINGS: list[tuple[dict[str, str | None], str, str]] = [
    ({"AWS_DEFAULT_REGION": None}, "no_region", "set AWS_DEFAULT_REGION"),
    ({"AWS_DEFAULT_REGION": "eu central"}, "no_region", "is no region"),
    (NOBODY, "no_credentials", "run with a role"),
    ({"AWS_ACCESS_KEY_ID": "half", "AWS_SECRET_ACCESS_KEY": None}, "no_credentials", "aws sso login"),
    ({"AWS_PROFILE": "nobody"}, "no_credentials", "profile does not exist"),
    ({"AWS_ENDPOINT_URL": "nonsense"}, "no_endpoint", "AWS_ENDPOINT_URL"),
]


@pytest.mark.parametrize(("changed", "code", "words"), SURROUNDINGS, ids=str)
def test_a_process_without_its_surroundings_gets_an_error_of_ours(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, str | None], code: str, words: str
) -> None:
    """Whichever verb meets it first: it says what to do, carries nothing of the SDK's, and nothing is sent."""
    for name, value in {**ALONE, **changed}.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)

    def verb(name: str, *given: Any) -> Any:
        return lambda: getattr(Penstock("dev", lanes={"support": a_lane()}), name)(*given)

    request = Enqueue(lane="support", task="reply", tenant="acme", key="evt-1", payload={})
    for ask in (
        lambda: Penstock("dev"),
        verb("enqueue", "support", "reply", "acme", "evt-1"),
        verb("put", request),
        verb("put_document", "acme", "d-1", "text"),
        verb("schedule", JOB, 5),
        verb("reset_to_pending", JOB),
    ):
        with pytest.raises(NoAccess, match=words) as refused:
            ask()
        assert refused.value.code == code
        assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_line_without_credentials_is_refused_as_every_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a bulk each line has its error, and the bulk comes to its end."""
    for name, value in {**ALONE, **NOBODY}.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    requests = [Enqueue(lane="support", task="reply", tenant="acme", key=key, payload={}) for key in "ab"]
    lines = list(Penstock("dev", lanes={"support": a_lane()}).enqueue_many(requests))
    assert [getattr(line.error, "code", None) for line in lines] == ["no_credentials"] * 2


def _answers(code: str, status: int = 400) -> Any:
    def make_api_call(self: Any, operation: str, *_: Any, **__: Any) -> Any:
        words = "not authorized to perform: dynamodb:PutItem on «secret words»"
        told: Any = {"Error": {"Code": code, "Message": words}, "ResponseMetadata": {"HTTPStatusCode": status}}
        raise ClientError(told, operation)

    return make_api_call


@pytest.mark.fault("I1")
@pytest.mark.parametrize(
    ("code", "kind", "words"),
    [
        ("AccessDeniedException", NoAccess, "dynamodb:PutItem"),
        ("ExpiredTokenException", NoAccess, "does not accept these credentials"),
        ("ThrottlingException", Unavailable, "ThrottlingException"),
        ("ValidationException", ClientError, "ValidationException"),
    ],
)
def test_what_aws_answers_is_told_by_what_can_be_done(
    monkeypatch: pytest.MonkeyPatch, desk: Desk, code: str, kind: type[Exception], words: str
) -> None:
    """A permission, a session that is over, a bad moment; and a defect, which is nobody's to mend, as it came."""
    penstock = Penstock("dev", lanes={"support": a_lane()}, clock=desk.clock)
    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", _answers(code))
    for ask in (lambda: Penstock("dev"), lambda: penstock.enqueue("support", "reply", "acme", "evt-1")):
        with pytest.raises(kind, match=words) as refused:
            ask()
        assert kind is ClientError or "secret" not in str(refused.value)
