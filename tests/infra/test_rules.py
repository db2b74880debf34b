"""Each synth rule is met by every stage, and catches the mistake it is there for."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from infra.rules.assembly import Assembly
from infra.rules.registry import RULES, check
from tests.infra.conftest import Synthesized

pytestmark = [pytest.mark.synth, pytest.mark.xdist_group("synth")]

Templates = dict[str, Any]


def resource(templates: Templates, kind: str, *, named: str = "") -> dict[str, Any]:
    """The first resource of a type whose properties or id contain `named`."""
    for template in templates.values():
        for resource_id, body in template["Resources"].items():
            if body["Type"] == kind and (named in resource_id or named in str(body.get("Properties", {}))):
                found: dict[str, Any] = body
                return found
    raise AssertionError(f"no {kind} with {named}")


def properties(templates: Templates, kind: str, *, named: str = "") -> dict[str, Any]:
    """Its properties, to be changed."""
    found: dict[str, Any] = resource(templates, kind, named=named)["Properties"]
    return found


QUEUE, MAPPING, FUNCTION = "AWS::SQS::Queue", "AWS::Lambda::EventSourceMapping", "AWS::Lambda::Function"
TABLE, SCHEDULE, ALARM = "AWS::DynamoDB::GlobalTable", "AWS::Scheduler::Schedule", "AWS::CloudWatch::Alarm"
ALIAS, MANAGED = "AWS::Lambda::Alias", "AWS::IAM::ManagedPolicy"
TEXTS = "arn:aws:dynamodb:eu-west-1:1:table/penstock-prod-content"
VIA_DYNAMODB = {"StringEquals": {"kms:ViaService": "dynamodb.eu-west-1.amazonaws.com"}}
INVOKE, POLICY = "AWS::Lambda::EventInvokeConfig", "AWS::IAM::Policy"
LANE_QUEUE, DEAD_LETTERS = "'QueueName': 'penstock-prod-support'", "penstock-prod-support-dlq"
INTEGRATION, API_STAGE = "AWS::ApiGatewayV2::Integration", "AWS::ApiGatewayV2::Stage"
INTAKE = "penstock-prod-support-intake"
VERSION = {"Key": "penstock:version", "Value": "1"}
STREAM, WORKER = "StartingPosition", "penstock-prod-support-worker"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A mistake that a rule must see."""

    rule: str
    what: str
    mistake: Callable[[Templates], object]
    part_of_sentence: str


def _set(kind: str, named: str, **values: Any) -> Callable[[Templates], object]:
    return lambda templates: properties(templates, kind, named=named).update(values)


def _drop(kind: str, named: str, *path: str) -> Callable[[Templates], object]:
    def drop(templates: Templates) -> None:
        inner = properties(templates, kind, named=named)
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]

    return drop


def _statement(templates: Templates, **changes: Any) -> None:
    """Change the worker's statement about jobs."""
    for statement in properties(templates, POLICY, named="OwnQueue")["PolicyDocument"]["Statement"]:
        if statement.get("Sid") == "Jobs":
            statement.update(changes)


def _variable(templates: Templates, name: str, value: str) -> None:
    properties(templates, FUNCTION, named=WORKER)["Environment"]["Variables"][name] = value


def _route_to(templates: Templates, function: str) -> None:
    """Put a function of the lane's stack behind its public address."""
    (found,) = [
        resource_id
        for resource_id, body in templates["Lane-support"]["Resources"].items()
        if body["Type"] == FUNCTION and body["Properties"]["FunctionName"] == function
    ]
    properties(templates, INTEGRATION)["IntegrationUri"] = {"Fn::GetAtt": [found, "Arn"]}


def _trust(templates: Templates) -> dict[str, Any]:
    """What the sweeper's schedule says of who may take its role."""
    role = properties(templates, "AWS::IAM::Role", named="Lets the schedule penstock-prod-sweeper")
    (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
    found: dict[str, Any] = statement
    return found


def _person(templates: Templates, who: str, **trust: Any) -> None:
    """Change who may assume one of the stage's own roles."""
    role = properties(templates, "AWS::IAM::Role", named=f"'RoleName': 'penstock-prod-{who}'")
    role["AssumeRolePolicyDocument"]["Statement"][0].update(trust)


def _may(templates: Templates, who: str, action: str, resource: str = "arn:aws:x:eu-west-1:1:y", **more: Any) -> None:
    """Give one of the stage's own roles something more."""
    policy = properties(templates, MANAGED, named=f"'ManagedPolicyName': 'penstock-prod-{who}'")
    policy["PolicyDocument"]["Statement"].append({"Effect": "Allow", "Action": action, "Resource": resource, **more})


def _dimension(templates: Templates, alarm: str, name: str, value: str) -> None:
    (dimension,) = [one for one in properties(templates, ALARM, named=alarm)["Dimensions"] if one["Name"] == name]
    dimension["Value"] = value


def _drawn(templates: Templates, old: str, new: str) -> None:
    """Write something else on the page of lane support."""
    told = properties(templates, "AWS::CloudWatch::Dashboard", named="penstock-prod-support")["DashboardBody"]
    parts = told["Fn::Join"][1]
    changed = [part.replace(old, new) if isinstance(part, str) else part for part in parts]
    assert changed != parts
    told["Fn::Join"][1] = changed


def _readers(templates: Templates) -> None:
    first = resource(templates, MAPPING, named=STREAM)
    templates["Control"]["Resources"]["Reader"] = copy.deepcopy(first)


def _remove(kind: str, named: str) -> Callable[[Templates], object]:
    def remove(templates: Templates) -> None:
        victim = resource(templates, kind, named=named)
        for template in templates.values():
            template["Resources"] = {key: one for key, one in template["Resources"].items() if one is not victim}

    return remove


def _add(stack: str, kind: str, *, as_id: str = "Planted", **values: Any) -> Callable[[Templates], object]:
    def add(templates: Templates) -> None:
        templates[stack]["Resources"][as_id] = {"Type": kind, "Properties": values}

    return add


def _policy_without(kind: str, named: str, sid: str) -> Callable[[Templates], object]:
    def change(templates: Templates) -> None:
        document = properties(templates, kind, named=named)["PolicyDocument"]
        document["Statement"] = [one for one in document["Statement"] if sid not in str(one)]

    return change


def _replica(**values: Any) -> Callable[[Templates], object]:
    return lambda templates: properties(templates, TABLE, named="penstock-prod-effects")["Replicas"][0].update(values)


def _texts(**values: Any) -> Callable[[Templates], object]:
    return lambda templates: properties(templates, TABLE, named="penstock-prod-content")["Replicas"][0].update(values)


PLANTS = (
    Plant(rule="N1", what="a dead letter kept 4 days", part_of_sentence="14 days",
          mistake=_set(QUEUE, DEAD_LETTERS, MessageRetentionPeriod=345_600)),
    Plant(rule="N1", what="a failure queue kept by default", part_of_sentence="14 days",
          mistake=_drop(QUEUE, "penstock-prod-stream-failed", "MessageRetentionPeriod")),
    Plant(rule="N1", what="a source that keeps as long", part_of_sentence="less long",
          mistake=_set(QUEUE, LANE_QUEUE, MessageRetentionPeriod=1_209_600)),
    Plant(rule="N2", what="nine receives", part_of_sentence="at least 10",
          mistake=lambda t: properties(t, QUEUE, named=LANE_QUEUE)["RedrivePolicy"].update(maxReceiveCount=9)),
    Plant(rule="N2", what="no dead-letter queue", part_of_sentence="needs a dead-letter queue",
          mistake=_drop(QUEUE, LANE_QUEUE, "RedrivePolicy")),
    Plant(rule="N3", what="31 s of visibility", part_of_sentence="at least 360 s",
          mistake=_set(QUEUE, LANE_QUEUE, VisibilityTimeout=31)),
    Plant(rule="N3", what="a batching window on top", part_of_sentence=" + 50)",
          mistake=_set(MAPPING, "ScalingConfig", MaximumBatchingWindowInSeconds=50)),
    Plant(rule="N3", what="a longer timeout without a longer visibility", part_of_sentence="at least 600 s",
          mistake=_set(FUNCTION, WORKER, Timeout=100)),
    Plant(rule="N4", what="the whole batch fails", part_of_sentence="ReportBatchItemFailures",
          mistake=_drop(MAPPING, "ScalingConfig", "FunctionResponseTypes")),
    Plant(rule="N5", what="a cap above the reserve", part_of_sentence="only 10 are reserved",
          mistake=_set(MAPPING, "ScalingConfig", ScalingConfig={"MaximumConcurrency": 11})),
    Plant(rule="N5", what="no cap", part_of_sentence="needs ScalingConfig",
          mistake=_drop(MAPPING, "ScalingConfig", "ScalingConfig")),
    Plant(rule="N5", what="no reserve where the stage reserves", part_of_sentence="this worker has none",
          mistake=_drop(FUNCTION, WORKER, "ReservedConcurrentExecutions")),
    Plant(rule="N6", what="no point-in-time recovery", part_of_sentence="point-in-time recovery",
          mistake=_replica(PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": False})),
    Plant(rule="N6", what="no deletion protection", part_of_sentence="deletion protection",
          mistake=_replica(DeletionProtectionEnabled=False)),
    Plant(rule="N6", what="recovery of what customers wrote", part_of_sentence="erased text comes back",
          mistake=_texts(PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})),
    Plant(rule="N6", what="a stream of what customers wrote", part_of_sentence="must have no stream",
          mistake=_set(TABLE, "penstock-prod-content", StreamSpecification={"StreamViewType": "KEYS_ONLY"})),
    Plant(rule="N6", what="a copy of what customers wrote in another region", part_of_sentence="no second copy",
          mistake=lambda t: properties(t, TABLE, named="penstock-prod-content")["Replicas"].append({"Region": "x"})),
    Plant(rule="N6", what="what customers wrote under a key of AWS", part_of_sentence="needs the content key",
          mistake=_texts(SSESpecification={})),
    Plant(rule="TTL", what="what customers wrote for ever", part_of_sentence="must name expires_at",
          mistake=_drop(TABLE, "penstock-prod-content", "TimeToLiveSpecification")),
    Plant(rule="N6", what="a table deleted with its stack", part_of_sentence="must be retained",
          mistake=lambda t: resource(t, TABLE, named="penstock-prod-jobs").update(DeletionPolicy="Delete")),
    Plant(rule="N6", what="the content key deleted with its stack", part_of_sentence="unreadable",
          mistake=lambda t: resource(t, "AWS::KMS::Key", named="customers wrote").update(DeletionPolicy="Delete")),
    Plant(rule="N6", what="the old kind of table", part_of_sentence="TableV2",
          mistake=lambda t: t["State"]["Resources"].update(
              Old={"Type": "AWS::DynamoDB::Table", "DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"})),
    Plant(rule="N7", what="a schedule that retries", part_of_sentence="no retries",
          mistake=lambda t: properties(t, SCHEDULE)["Target"]["RetryPolicy"].update(MaximumRetryAttempts=3)),
    Plant(rule="N7", what="a run that may be a day late", part_of_sentence="at most its period",
          mistake=lambda t: properties(t, SCHEDULE)["Target"]["RetryPolicy"].update(MaximumEventAgeInSeconds=86_400)),
    Plant(rule="N7", what="a schedule without a dead-letter queue", part_of_sentence="needs a dead-letter queue",
          mistake=lambda t: properties(t, SCHEDULE, named="sweeper")["Target"].pop("DeadLetterConfig")),
    Plant(rule="N7", what="a flexible window", part_of_sentence="must be OFF",
          mistake=_set(SCHEDULE, "", FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5})),
    Plant(rule="N7", what="asynchronous retries", part_of_sentence="no asynchronous retries",
          mistake=_set(INVOKE, "", MaximumRetryAttempts=2)),
    Plant(rule="N7", what="Lambda's own six hours of patience", part_of_sentence="EventInvokeConfig",
          mistake=_remove(INVOKE, "")),
    Plant(rule="N8", what="a variable that logs every event", part_of_sentence="write payloads to the log",
          mistake=lambda t: _variable(t, "POWERTOOLS_LOGGER_LOG_EVENT", "true")),
    Plant(rule="N8", what="a variable nobody agreed on", part_of_sentence="not in shared/contract/env.py",
          mistake=lambda t: _variable(t, "MY_OWN", "1")),
    Plant(rule="ENV", what="a setting in the environment", part_of_sentence="names need less than 1536",
          mistake=lambda t: _variable(t, "PENSTOCK_SETTINGS", "x" * 1500)),
    Plant(rule="N9", what="an access key", part_of_sentence="an AWS access key",
          mistake=lambda t: _variable(t, "PENSTOCK_STAGE", "AKIA" + "ABCDEFGHIJKLMNOP")),
    Plant(rule="N9", what="an API key in a description", part_of_sentence="an API key",
          mistake=_set(FUNCTION, WORKER, Description="sk-" + "proj-" + "a1B2" * 8)),
    Plant(rule="N9", what="a secret that is not an ARN", part_of_sentence="must be an ARN",
          mistake=lambda t: _variable(t, "PENSTOCK_SECRET_ARN", "hunter2")),
    Plant(rule="N10", what="all actions", part_of_sentence="dynamodb:* is not exact",
          mistake=lambda t: _statement(t, Action="dynamodb:*")),
    Plant(rule="N10", what="all tables", part_of_sentence="wider than one resource",
          mistake=lambda t: _statement(t, Resource="*")),
    Plant(rule="N10", what="anybody's event source", part_of_sentence="wider than one resource",
          mistake=lambda t: _statement(t, Resource="arn:aws:lambda:eu-central-1:1:event-source-mapping:*")),
    Plant(rule="N10", what="a guard row may be deleted", part_of_sentence="nobody may dynamodb:DeleteItem",
          mistake=lambda t: _statement(t, Action=["dynamodb:GetItem", "dynamodb:DeleteItem"])),
    Plant(rule="N10", what="everything but", part_of_sentence="instead of what is",
          mistake=lambda t: _statement(t, NotAction="dynamodb:Scan")),
    Plant(rule="N10", what="a managed policy", part_of_sentence="managed policies",
          mistake=_set("AWS::IAM::Role", "", ManagedPolicyArns=["arn:aws:iam::aws:policy/ReadOnlyAccess"])),
    Plant(rule="N11", what="an alarm without an action", part_of_sentence="needs an action",
          mistake=_drop(ALARM, "dead-letters", "AlarmActions")),
    Plant(rule="N11", what="a dead-letter queue without an alarm", part_of_sentence="no alarm looks at it",
          mistake=_remove(ALARM, "penstock-prod-support-dead-letters")),
    Plant(rule="N11", what="an alarm that leaves one alone", part_of_sentence="runbook",
          mistake=_set(ALARM, "dead-letters", AlarmDescription="something is wrong")),
    Plant(rule="N12", what="logs kept for ever", part_of_sentence="RetentionInDays",
          mistake=_drop("AWS::Logs::LogGroup", "", "RetentionInDays")),
    Plant(rule="N12", what="a function without its log group", part_of_sentence="log group of its own",
          mistake=_drop(FUNCTION, WORKER, "LoggingConfig")),
    Plant(rule="N13", what="a function address", part_of_sentence="needs a verifier",
          mistake=_add("Control", "AWS::Lambda::Url", AuthType="NONE")),
    Plant(rule="N13", what="a route to a worker", part_of_sentence="needs a verifier",
          mistake=lambda t: _route_to(t, WORKER)),
    Plant(rule="N13", what="a route to another address", part_of_sentence="needs a verifier",
          mistake=_set(INTEGRATION, "", IntegrationType="HTTP_PROXY", IntegrationUri="https://example.com")),
    Plant(rule="N13", what="a handler that does not verify", part_of_sentence="needs a verifier",
          mistake=_set(FUNCTION, INTAKE, Handler="functions.support.handler.handler")),
    Plant(rule="N13", what="a verifier without keys", part_of_sentence="the keys of its senders",
          mistake=_drop(FUNCTION, INTAKE, "Environment", "Variables", "PENSTOCK_SECRET_ARN")),
    Plant(rule="N13", what="every path is a door", part_of_sentence="name the one route",
          mistake=_set("AWS::ApiGatewayV2::Route", "", RouteKey="$default")),
    Plant(rule="N13", what="as many requests as there are", part_of_sentence="needs a ThrottlingRateLimit",
          mistake=_drop(API_STAGE, "", "DefaultRouteSettings")),
    Plant(rule="N13", what="requests that nobody notes", part_of_sentence="needs an access log",
          mistake=_drop(API_STAGE, "", "AccessLogSettings")),
    Plant(rule="N13", what="an access log with the path", part_of_sentence="what a stranger wrote",
          mistake=lambda t: properties(t, API_STAGE)["AccessLogSettings"].update(Format="$context.path")),
    Plant(rule="N13", what="a second address", part_of_sentence="needs a stage",
          mistake=_add("Control", "AWS::ApiGatewayV2::Api", ProtocolType="HTTP")),
    Plant(rule="N13", what="everybody may invoke", part_of_sentence="everybody may invoke",
          mistake=_add("Control", "AWS::Lambda::Permission", Principal="*", Action="lambda:InvokeFunction")),
    Plant(rule="N14", what="a redrive from the console", part_of_sentence="all but break-glass",
          mistake=_policy_without("AWS::SQS::QueuePolicy", "LaneDeadLetters", "StartMessageMoveTask")),
    Plant(rule="N15", what="X-Ray on", part_of_sentence="X-Ray must be off",
          mistake=_set(FUNCTION, WORKER, TracingConfig={"Mode": "Active"})),
    Plant(rule="N16", what="a queue that takes plain text", part_of_sentence="without TLS",
          mistake=_policy_without("AWS::SQS::QueuePolicy", "LaneQueue", "SecureTransport")),
    Plant(rule="N16", what="a topic without a policy", part_of_sentence="without TLS",
          mistake=_remove("AWS::SNS::TopicPolicy", "")),
    Plant(rule="N17", what="a stream without old images", part_of_sentence="NEW_AND_OLD_IMAGES",
          mistake=_set(TABLE, "StreamViewType", StreamSpecification={"StreamViewType": "NEW_IMAGE"})),
    Plant(rule="N17", what="a reader that starts late", part_of_sentence="TRIM_HORIZON",
          mistake=_set(MAPPING, STREAM, StartingPosition="LATEST")),
    Plant(rule="N17", what="retries without end", part_of_sentence="retries must be finite",
          mistake=_set(MAPPING, STREAM, MaximumRetryAttempts=-1)),
    Plant(rule="N17", what="a day of patience", part_of_sentence="record age",
          mistake=_set(MAPPING, STREAM, MaximumRecordAgeInSeconds=86_400)),
    Plant(rule="N17", what="no failure queue", part_of_sentence="needs a failure queue",
          mistake=_drop(MAPPING, STREAM, "DestinationConfig")),
    Plant(rule="N17", what="no bisecting", part_of_sentence="must bisect",
          mistake=_set(MAPPING, STREAM, BisectBatchOnFunctionError=False)),
    Plant(rule="N17", what="no filters", part_of_sentence="needs filters",
          mistake=_drop(MAPPING, STREAM, "FilterCriteria")),
    Plant(rule="N17", what="a filter that trusts the event's name", part_of_sentence="must ask both images",
          mistake=_set(MAPPING, STREAM, FilterCriteria={"Filters": [{"Pattern": '{"eventName": ["INSERT"]}'}]})),
    Plant(rule="N17", what="a filter that lets removals pass", part_of_sentence="a removal is no news",
          mistake=_set(MAPPING, STREAM, FilterCriteria={"Filters": [
              {"Pattern": '{"dynamodb": {"OldImage": {}, "NewImage": {}}}'}]})),
    Plant(rule="N17", what="a third reader", part_of_sentence="3 readers", mistake=_readers),
    Plant(rule="N18", what="a worker of 15 minutes", part_of_sentence="at most 120 s",
          mistake=_set(FUNCTION, WORKER, Timeout=900)),
    Plant(rule="N18", what="a redelivery during a live claim", part_of_sentence="claim timeout of 90 s",
          mistake=_set(QUEUE, LANE_QUEUE, VisibilityTimeout=90)),
    Plant(rule="N19", what="an export", part_of_sentence="is an export",
          mistake=lambda t: t["State"].setdefault("Outputs", {}).update(X={"Value": "1", "Export": {"Name": "x"}})),
    Plant(rule="N19", what="an import", part_of_sentence="imports a value",
          mistake=lambda t: _variable(t, "PENSTOCK_LANE", {"Fn::ImportValue": "x"})),  # type: ignore[arg-type]
    Plant(rule="LIMITS", what="501 resources", part_of_sentence="resources, a stack may have 500",
          mistake=lambda t: t["Watch"]["Resources"].update({f"P{n}": {"Type": "x::y"} for n in range(500)})),
    Plant(rule="LIMITS", what="201 parameters", part_of_sentence="parameters, a stack may have 200",
          mistake=lambda t: t["Watch"].setdefault("Parameters", {}).update({f"P{n}": {} for n in range(201)})),
    Plant(rule="LIMITS", what="201 outputs", part_of_sentence="outputs, a stack may have 200",
          mistake=lambda t: t["Watch"].setdefault("Outputs", {}).update({f"P{n}": {} for n in range(201)})),
    Plant(rule="LIMITS", what="a megabyte of template", part_of_sentence="bytes of template",
          mistake=lambda t: t["Watch"].update(Description="x" * 1_000_000)),
    Plant(rule="LIMITS", what="a role with 11 KB of policies", part_of_sentence="IAM allows 10240",
          mistake=lambda t: _statement(t, Resource=["arn:aws:dynamodb:eu-central-1:1:table/x" + "y" * 60] * 110)),
    Plant(rule="LIMITS", what="a managed policy of 7 KB", part_of_sentence="a managed policy may have 6144",
          mistake=_add("Control", "AWS::IAM::ManagedPolicy", Roles=["x"],
                       PolicyDocument={"Statement": [{"Effect": "Allow", "Action": "a:b", "Resource": "r" * 7000}]})),
    Plant(rule="LIMITS", what="eleven managed policies", part_of_sentence="has 11 managed policies",
          mistake=lambda t: [_add("Control", "AWS::IAM::ManagedPolicy", Roles=["x"], PolicyDocument={"Statement": []},
                                  as_id=f"P{n}")(t) for n in range(11)]),
    Plant(rule="LIMITS", what="a parameter of 5 KB", part_of_sentence="a standard parameter may have 4096",
          mistake=_set("AWS::SSM::Parameter", "/penstock/prod/lanes", Value="x" * 5000)),
    Plant(rule="TAGS", what="the version on an event source", part_of_sentence="stands on functions, and on nothing",
          mistake=_set(MAPPING, "", Tags=[VERSION])),
    Plant(rule="TAGS", what="the version on a table", part_of_sentence="stands on functions, and on nothing",
          mistake=lambda t: properties(t, TABLE)["Replicas"][0]["Tags"].append(VERSION)),
    Plant(rule="TAGS", what="the version on a key", part_of_sentence="stands on functions, and on nothing",
          mistake=lambda t: properties(t, "AWS::KMS::Key")["Tags"].append(VERSION)),
    Plant(rule="TAGS", what="the version on a secret", part_of_sentence="stands on functions, and on nothing",
          mistake=lambda t: properties(t, "AWS::SecretsManager::Secret")["Tags"].append(VERSION)),
    Plant(rule="TAGS", what="the version on an alarm", part_of_sentence="stands on functions, and on nothing",
          mistake=_set(ALARM, "", Tags=[VERSION])),
    Plant(rule="TAGS", what="the version on an address", part_of_sentence="stands on functions, and on nothing",
          mistake=_set("AWS::ApiGatewayV2::Api", "", Tags={"penstock:version": "1"})),
    Plant(rule="TAGS", what="a function without its version", part_of_sentence="stands on functions, and on nothing",
          mistake=_drop(FUNCTION, WORKER, "Tags")),
    Plant(rule="RUNS", what="a role that any schedule may take", part_of_sentence="must be the group of",
          mistake=lambda t: _trust(t)["Condition"].pop("ArnEquals")),
    Plant(rule="RUNS", what="a role for another group's schedules", part_of_sentence="must be the group of",
          mistake=lambda t: _trust(t)["Condition"].update(
              ArnEquals={"aws:SourceArn": "arn:aws:scheduler:eu-west-1:1:schedule-group/default"})),
    Plant(rule="RUNS", what="a role for the schedules of all accounts", part_of_sentence="must be this account",
          mistake=lambda t: _trust(t)["Condition"].pop("StringEquals")),
    Plant(rule="RUNS", what="a role that functions may take", part_of_sentence="and nobody else",
          mistake=lambda t: _trust(t).update(Principal={"Service": "lambda.amazonaws.com"})),
    Plant(rule="RUNS", what="a schedule that may invoke everything", part_of_sentence="and nothing else",
          mistake=lambda t: properties(t, POLICY, named="SweeperRunRole")["PolicyDocument"]["Statement"][0].update(
              Resource="*")),
    Plant(rule="RUNS", what="twice as often as the function is told", part_of_sentence="tells it 300",
          mistake=_set(SCHEDULE, "sweeper", ScheduleExpression="rate(2 minutes)")),
    Plant(rule="RUNS", what="a function that is told another period", part_of_sentence="tells it 60",
          mistake=lambda t: properties(t, FUNCTION, named="penstock-prod-sweeper")["Environment"]["Variables"].update(
              PENSTOCK_PERIOD_S="60")),
    Plant(rule="RUNS", what="a schedule for somebody else's function", part_of_sentence="a function of its stack",
          mistake=lambda t: properties(t, SCHEDULE)["Target"].update(Arn="arn:aws:lambda:eu-west-1:1:function:x")),
    Plant(rule="WHO", what="a name that anybody may choose", part_of_sentence="may choose a name",
          mistake=lambda t: _person(t, "approver", Condition={})),
    Plant(rule="WHO", what="a name that is asked for only where it is given", part_of_sentence="may choose a name",
          mistake=lambda t: _person(t, "operator", Condition={
              "StringEqualsIfExists": {"sts:RoleSessionName": "${aws:username}"}})),
    Plant(rule="WHO", what="a name like one's own", part_of_sentence="may choose a name",
          mistake=lambda t: _person(t, "reader", Condition={
              "StringLike": {"sts:RoleSessionName": "${aws:username}*"}})),
    Plant(rule="WHO", what="a role for other accounts", part_of_sentence="this account alone",
          mistake=lambda t: _person(t, "approver", Principal={"AWS": "arn:aws:iam::2:root"})),
    Plant(rule="WHO", what="a role for everybody", part_of_sentence="this account alone",
          mistake=lambda t: _person(t, "approver", Principal={"AWS": "*"})),
    Plant(rule="WHO", what="a role by a token of elsewhere", part_of_sentence="sts:AssumeRole alone",
          mistake=lambda t: _person(t, "operator", Action=["sts:AssumeRole", "sts:AssumeRoleWithWebIdentity"])),
    Plant(rule="WHO", what="a role of a person that nobody lists", part_of_sentence="may choose a name",
          mistake=_add("Control", "AWS::IAM::Role", AssumeRolePolicyDocument={"Statement": [
              {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "arn:aws:iam::1:root"}}]})),
    Plant(rule="WHO", what="no approver", part_of_sentence="penstock-prod-approver is missing",
          mistake=_remove("AWS::IAM::Role", "'RoleName': 'penstock-prod-approver'")),
    Plant(rule="WHO", what="a reader of secrets", part_of_sentence="a reader needs no secret's value",
          mistake=lambda t: _may(t, "reader", "secretsmanager:GetSecretValue")),
    Plant(rule="WHO", what="an operator of secrets", part_of_sentence="an operator needs no secret's value",
          mistake=lambda t: _may(t, "operator", "secretsmanager:GetSecretValue")),
    Plant(rule="WHO", what="a reader who opens texts", part_of_sentence="may not kms:Decrypt",
          mistake=lambda t: _may(t, "reader", "kms:Decrypt", Condition=VIA_DYNAMODB)),
    Plant(rule="WHO", what="an approver who reads objects", part_of_sentence="may not s3:GetObject",
          mistake=lambda t: _may(t, "approver", "s3:GetObject")),
    Plant(rule="WHO", what="an operator who reads rows of text", part_of_sentence="may not dynamodb:GetItem",
          mistake=lambda t: _may(t, "operator", "dynamodb:GetItem", TEXTS)),
    Plant(rule="WHO", what="a reader who writes", part_of_sentence="a reader changes nothing",
          mistake=lambda t: _may(t, "reader", "dynamodb:UpdateItem")),
    Plant(rule="WHO", what="a producer who sends", part_of_sentence="may not sqs:SendMessage",
          mistake=lambda t: _may(t, "producer", "sqs:SendMessage")),
    Plant(rule="WHO", what="a producer who reads texts", part_of_sentence="reads no text of customers",
          mistake=lambda t: _may(t, "producer", "dynamodb:GetItem", TEXTS)),
    Plant(rule="WHO", what="a producer who opens objects", part_of_sentence="may not kms:Decrypt",
          mistake=lambda t: _may(t, "producer", "kms:Decrypt")),
    Plant(rule="N10", what="a person who may do everything everywhere", part_of_sentence="wider than one resource",
          mistake=lambda t: _may(t, "operator", "lambda:InvokeFunction", "*")),
    Plant(rule="METRICS", what="an alarm on what nobody counts", part_of_sentence="nobody counts Penstock JobsLost",
          mistake=_set(ALARM, "support-effects-unknown", MetricName="JobsLost")),
    Plant(rule="METRICS", what="an alarm on what another function counts", part_of_sentence="auditor counts no Canar",
          mistake=lambda t: _dimension(t, "support-canary-late", "service", "auditor")),
    Plant(rule="METRICS", what="an alarm on another lane's worker", part_of_sentence="extraction-worker counts no Eff",
          mistake=lambda t: _dimension(t, "support-effects-unknown", "service", "extraction-worker")),
    Plant(rule="METRICS", what="an alarm on another stage", part_of_sentence="not counted for support of dev",
          mistake=lambda t: _dimension(t, "support-effects-unknown", "stage", "dev")),
    Plant(rule="METRICS", what="one lane's part of what is counted for all", part_of_sentence="for support of prod",
          mistake=lambda t: _dimension(t, "auditor-jobs-repaired", "lane", "support")),
    Plant(rule="METRICS", what="a count without its account", part_of_sentence="is not counted by lane, service, stage",
          mistake=_set(ALARM, "support-effects-unknown", MetricName="PermitsTaken")),
    Plant(rule="METRICS", what="a metric that AWS has not", part_of_sentence="AWS/Lambda counts no Error by",
          mistake=_set(ALARM, "support-worker-function-errors", MetricName="Error")),
    Plant(rule="METRICS", what="a queue that is not there", part_of_sentence="which is not in this stage",
          mistake=lambda t: _dimension(t, "support-queue-age", "QueueName", "penstock-prod-suport")),
    Plant(rule="METRICS", what="a graph of what nobody counts", part_of_sentence="nobody counts Penstock JobsDone",
          mistake=lambda t: _drawn(t, "JobsCompleted", "JobsDone")),
    Plant(rule="METRICS", what="a graph of another stage", part_of_sentence="is not counted for support of dev",
          mistake=lambda t: _drawn(t, 'stage=\\"prod\\"', 'stage=\\"dev\\"')),
    Plant(rule="CALLS", what="a call that is not allowed", part_of_sentence="may not dynamodb:UpdateItem on jobs",
          mistake=lambda t: _statement(t, Action="dynamodb:GetItem")),
    Plant(rule="CALLS", what="another stage's table", part_of_sentence="may not dynamodb:GetItem on jobs :table/pen",
          mistake=lambda t: _statement(t, Resource="arn:aws:dynamodb:eu-west-1:1:table/penstock-dev-jobs")),
    Plant(rule="CALLS", what="a denied call", part_of_sentence="may not dynamodb:GetItem on jobs",
          mistake=lambda t: _statement(t, Effect="Deny")),
    Plant(rule="CALLS", what="a role without its policy", part_of_sentence="may not sqs:ReceiveMessage on own-queue",
          mistake=lambda t: properties(t, POLICY, named="OwnQueue").update(Roles=[])),
    Plant(rule="CALLS", what="a function that nobody knows", part_of_sentence="is in no table of grants",
          mistake=_set(FUNCTION, WORKER, FunctionName="penstock-prod-helper")),
    Plant(rule="TTL", what="rows that expire by another attribute", part_of_sentence="must name expires_at",
          mistake=_set(TABLE, "penstock-prod-jobs", TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})),
    Plant(rule="TTL", what="rows that never expire", part_of_sentence="must name expires_at",
          mistake=_drop(TABLE, "penstock-prod-effects", "TimeToLiveSpecification")),
    Plant(rule="TTL", what="decisions that are forgotten", part_of_sentence="never expire",
          mistake=_set(TABLE, "penstock-prod-history",
                       TimeToLiveSpecification={"AttributeName": "expires_at", "Enabled": True})),
    Plant(rule="ALIAS", what="a source on the newest code", part_of_sentence="must start the alias live",
          mistake=lambda t: properties(t, MAPPING, named="ScalingConfig").update(
              FunctionName=properties(t, ALIAS)["FunctionName"])),
    Plant(rule="ALIAS", what="an address on the newest code", part_of_sentence="must start the alias live",
          mistake=lambda t: _route_to(t, INTAKE)),
    Plant(rule="ALIAS", what="an alias of the newest code", part_of_sentence="not $LATEST",
          mistake=_set(ALIAS, "", FunctionVersion="$LATEST")),
    Plant(rule="ALIAS", what="an alias of another name", part_of_sentence="must be called live",
          mistake=_set(ALIAS, "", Name="green")),
    Plant(rule="PACKAGE", what="another Python than the wheels'", part_of_sentence="python3.12 on arm64",
          mistake=_set(FUNCTION, WORKER, Runtime="python3.12")),
    Plant(rule="PACKAGE", what="another processor than the wheels'", part_of_sentence="python3.13 on x86_64",
          mistake=_drop(FUNCTION, WORKER, "Architectures")),
    Plant(rule="PACKAGE", what="a handler that is not there", part_of_sentence="holds no functions/nowhere/handler.py",
          mistake=_set(FUNCTION, WORKER, Handler="functions.nowhere.handler.handler")),
    Plant(rule="PACKAGE", what="code from elsewhere", part_of_sentence="must be a staged package",
          mistake=_set(FUNCTION, WORKER, Code={"S3Bucket": "x", "S3Key": "y.zip"})),
    Plant(rule="E3", what="an outage of an hour dead-letters everything", part_of_sentence="must exceed 3600 s",
          mistake=_set(QUEUE, LANE_QUEUE, VisibilityTimeout=360)),
)  # fmt: skip


def planted(assembly: Assembly, plant: Plant) -> Assembly:
    """The assembly with the mistake in it."""
    templates: Templates = copy.deepcopy(dict(assembly.templates))
    plant.mistake(templates)
    return replace(assembly, templates=templates)


ROWS = {
    "WHO": "J9",
    "METRICS": "B10",
    "CALLS": "J7",
    "TAGS": "K5",
    "LIMITS": "K6",
    "ENV": "K6",
    "N13": "J1",
    "N1": "F1",
    "N3": "B1",
    "N6": "K2",
    "N14": "F4",
    "N17": "B12",
}
"""Rules that are the answer to a row of the catalogue of failures."""


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(
            plant,
            id=f"{plant.rule}: {plant.what}",
            marks=[pytest.mark.fault(ROWS[plant.rule])] if plant.rule in ROWS else [],
        )
        for plant in PLANTS
    ],
)
def test_a_planted_mistake_is_caught(prod: Synthesized, plant: Plant) -> None:
    """The rule that is there for a mistake sees it, in a sentence that says what to do."""
    sentences = [finding.sentence for finding in check(planted(prod.assembly, plant)) if finding.rule == plant.rule]
    assert any(plant.part_of_sentence in sentence for sentence in sentences), sentences


@pytest.mark.req("F12")
@pytest.mark.fault("J7", "K5", "B10")
def test_every_stage_meets_every_rule(every_stage: Synthesized) -> None:
    """No stage has a finding, so synth succeeds."""
    assert not check(every_stage.assembly)


def test_no_rule_is_unproven(prod: Synthesized) -> None:
    """Each registered rule has at least one planted mistake, and says why it exists."""
    check(prod.assembly)
    assert {plant.rule for plant in PLANTS} == set(RULES)
    assert all(rule.__doc__ for rule in RULES.values())


def test_a_stage_that_keeps_nothing_needs_no_protection(local: Synthesized) -> None:
    """What only matters where data is kept is not asked of a stage that keeps none, and is asked of the others."""
    keeping = replace(local.assembly, stage=replace(local.spec, retain=True))
    assert {finding.rule for finding in check(keeping)} == {"N6"}
