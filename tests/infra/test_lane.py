"""What a lane's stack promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infra.rules.assembly import Resource
from infra.rules.queues import dead_letter_queues, policies_of, queue_sources
from infra.stage import load_stage
from shared.contract import names
from shared.core.lane import LaneSpec
from tests.infra.conftest import Stages, Synthesize, Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]


def _lane_of(stage: Synthesized, queue: Resource) -> LaneSpec:
    """The lane a queue belongs to."""
    by_queue = {names.queue(stage.spec.name, lane.name): lane for lane in stage.spec.lanes.values()}
    return by_queue[queue.properties["QueueName"]]


@pytest.mark.fault("K4")
def test_a_batch_is_not_delivered_again_while_it_is_worked_on(every_stage: Synthesized) -> None:
    """The queue's visibility timeout is at least six function timeouts, and both come from one entry."""
    for _, queue, function in queue_sources(every_stage.assembly):
        assert function is not None
        assert queue.properties["VisibilityTimeout"] >= 6 * function.properties["Timeout"]
        lane = _lane_of(every_stage, queue)
        told = (queue.properties["VisibilityTimeout"], function.properties["Timeout"])
        assert told == (lane.visibility_s, lane.function_timeout_s)


def test_throttles_do_not_dead_letter_good_jobs(every_stage: Synthesized) -> None:
    """At least ten receives before a message counts as dead."""
    for queue, _ in dead_letter_queues(every_stage.assembly):
        assert queue.properties["RedrivePolicy"]["maxReceiveCount"] >= 10


@pytest.mark.fault("F1")
def test_a_dead_letter_outlasts_its_message(every_stage: Synthesized) -> None:
    """A dead letter is kept 14 days, and a message at most 4 of them in its source."""
    for queue, dead in dead_letter_queues(every_stage.assembly):
        assert dead.properties["MessageRetentionPeriod"] == 14 * 86_400
        assert queue.properties["MessageRetentionPeriod"] <= 4 * 86_400


@pytest.mark.fault("F4")
def test_nobody_redrives_or_purges_past_the_review(every_stage: Synthesized) -> None:
    """Dead letters take messages from their own queue only, and only break-glass may move or purge them."""
    stage = every_stage.spec.name
    for queue, dead in dead_letter_queues(every_stage.assembly):
        allow = dead.properties["RedriveAllowPolicy"]
        assert allow["redrivePermission"] == "byQueue"
        assert str(queue.properties["QueueName"]) in str(allow["sourceQueueArns"])
        denied = {
            statement["Action"]: statement
            for statement in policies_of(every_stage.assembly, dead)
            if statement["Effect"] == "Deny" and "ArnNotLike" in statement.get("Condition", {})
        }
        assert set(denied) == {"sqs:StartMessageMoveTask", "sqs:PurgeQueue"}
        assert {statement["Principal"] for statement in denied.values()} == {"*"}
        but = {action: str(one["Condition"]["ArnNotLike"]["aws:PrincipalArn"]) for action, one in denied.items()}
        assert all(f"penstock-{stage}-break-glass*" in roles for roles in but.values())
        redriver = f"{names.stack(stage, 'Control')}-RedriverRole"
        assert f"{redriver}*" in but["sqs:StartMessageMoveTask"]
        assert redriver not in but["sqs:PurgeQueue"]
    # CloudFormation names a role after its stack and its logical id: that is what the policy goes by.
    (role,) = [
        one
        for one in every_stage.assembly.resources("AWS::IAM::Role")
        if f"penstock-{stage}-redriver may" in str(one.properties.get("Description", ""))
    ]
    assert f"{names.stack(stage, role.stack)}-{role.id}".startswith(redriver)
    assert "RoleName" not in role.properties


def test_a_rollback_repoints_one_alias(every_stage: Synthesized) -> None:
    """The event source reads for the alias `live`, and the version it pointed at before is kept."""
    for mapping, _, _ in queue_sources(every_stage.assembly):
        assert mapping.properties["FunctionName"]["Fn::Join"][1][-1] == f":{names.LIVE}"
    for alias in every_stage.assembly.resources("AWS::Lambda::Alias"):
        assert alias.properties["Name"] == names.LIVE
        version = every_stage.assembly.referred(alias.stack, alias.properties["FunctionVersion"])
        assert version is not None
        assert version.body["DeletionPolicy"] == "Retain"


@pytest.mark.req("C7")
def test_the_cap_is_the_throttle_and_the_reserve_only_the_ceiling(prod: Synthesized) -> None:
    """The event source starts at the baseline; reserved concurrency is the ceiling, above it."""
    for mapping, queue, function in queue_sources(prod.assembly):
        lane = _lane_of(prod, queue)
        assert function is not None
        assert mapping.properties["ScalingConfig"] == {"MaximumConcurrency": lane.baseline}
        assert function.properties["ReservedConcurrentExecutions"] == lane.ceiling >= lane.baseline


def test_a_small_account_reserves_nothing(stages: Stages) -> None:
    """Where the stage says so, no concurrency is reserved: a fresh account has ten to give."""
    dev = stages("dev")
    assert all(
        "ReservedConcurrentExecutions" not in function.properties
        for function in dev.assembly.resources("AWS::Lambda::Function")
    )


def test_one_bad_item_returns_alone(every_stage: Synthesized) -> None:
    """The mapping asks which items failed, and takes batches as the lane says."""
    for mapping, queue, _ in queue_sources(every_stage.assembly):
        assert mapping.properties["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        assert mapping.properties["BatchSize"] == _lane_of(every_stage, queue).batch_size


def test_a_secret_is_made_empty_and_kept(prod: Synthesized) -> None:
    """The lane's secret holds an empty object until a person fills it; a deploy never writes a token."""
    secret = prod.the("AWS::SecretsManager::Secret", Name=names.secret("prod", "support"))
    assert secret.properties["SecretString"] == "{}"
    assert secret.body["DeletionPolicy"] == "Retain"


def test_everything_says_whose_it_is(every_stage: Synthesized) -> None:
    """Whatever can carry tags names its stage, a function its version, and in a lane's stack the lane."""
    for resource in every_stage.assembly.resources(
        "AWS::SQS::Queue", "AWS::Lambda::Function", "AWS::IAM::Role", "AWS::Logs::LogGroup", "AWS::S3::Bucket"
    ):
        tags = {tag["Key"]: tag["Value"] for tag in resource.properties["Tags"]}
        assert tags["penstock:stage"] == every_stage.spec.name
        assert tags.get("penstock:version") == ("9.9.9" if resource.type == "AWS::Lambda::Function" else None)
        if resource.stack.startswith("Lane-"):
            assert f"Lane-{tags['penstock:lane'].replace('_', '-')}" == resource.stack


def test_a_new_lane_is_one_entry(synthesize: Synthesize) -> None:
    """A second lane with an underscore in its name and no secret deploys beside the first and meets every rule."""
    from infra.rules.registry import check

    spec = load_stage("prod", for_show=True)
    second = LaneSpec(name="my_lane", tasks=("do_it",), vendors=("openai",))
    both = synthesize(replace(spec, lanes={**spec.lanes, "my_lane": second}), thorough=False)
    assert both.queue(names.queue("prod", "my_lane")).stack == "Lane-my-lane"
    assert "PENSTOCK_SECRET_ARN" not in both.function("my_lane-worker").properties["Environment"]["Variables"]
    assert not check(both.assembly)


def test_a_lane_may_not_be_called_like_the_engine(synthesize: Synthesize) -> None:
    """Its package would be the engine's; the sentence says so."""
    spec = load_stage("prod", for_show=True)
    lane = LaneSpec(name="sweeper", tasks=("do_it",))
    with pytest.raises(ValueError, match=r"lanes\.sweeper: the engine has a function of that name"):
        synthesize(replace(spec, lanes={"sweeper": lane}), thorough=False)
