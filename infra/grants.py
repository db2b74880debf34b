"""Who may do what: the one table of permissions.

Every role is made from it, `docs` and tests read it, and the calls recorded on the local stack are compared
with it. Actions are exact, resources are exact; a permission nobody uses is a mistake. No function may delete
a row: that alone rules out two ways of sending twice. Besides these, each function writes its own log group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

WORKER = "worker"
"""One entry serves the workers of all lanes; each lane's role names that lane's own resources."""

INTAKE = "intake"
"""One entry serves the intakes of all lanes, as with workers."""


class Resource(StrEnum):
    """What a permission is about; `infra.arns` knows where each one is."""

    JOBS = "jobs"
    WAITING = "jobs/waiting"
    STREAM = "jobs/stream"
    ANY_STREAM = "jobs/any-stream"
    EFFECTS = "effects"
    CONTROL = "control"
    LEDGER = "ledger"
    HISTORY = "history"
    EVENT_SOURCES = "event-sources"
    ANY_EVENT_SOURCE = "any-event-source"
    OWN_QUEUE = "own-queue"
    LANE_QUEUES = "lane-queues"
    DEAD_LETTERS = "dead-letters"
    STREAM_FAILURES = "stream-failures"
    FEED_FAILURES = "feed-failures"
    EVENT_BUS = "event-bus"
    RUN_FAILURES = "run-failures"
    CONTENT = "content"
    PAYLOADS = "content/payloads"
    CONTENT_BUCKET = "content-bucket"
    CONTENT_KEY = "content-key"
    PAYLOAD_ROWS = "payload-rows"
    PAYLOAD_ROWS_KEY = "payload-rows-key"
    SECRET = "secret"
    PRODUCED = "content/produced"
    ALL_QUEUES = "all-queues"
    ALL_DEAD_LETTERS = "all-dead-letters"
    ALL_EVENT_SOURCES = "all-event-sources"
    ALL_FUNCTIONS = "all-functions"
    ALL_RUNS = "all-runs"
    ALL_LOGS = "all-logs"
    ALL_SCHEDULES = "all-schedules"
    ALL_STACKS = "all-stacks"
    ALL_SECRETS = "all-secrets"
    PARAMETERS = "parameters"
    LANES_PARAMETER = "lanes-parameter"
    ALARM_TOPIC = "alarm-topic"
    NO_SINGLE_ONE = "no-single-one"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Some actions on one resource, and why they are needed."""

    on: Resource
    actions: tuple[str, ...]
    why: str
    by_platform: bool = False
    """Lambda or S3 itself asks for these with the function's role; the function's code does not."""


def _grant(on: Resource, service: str, actions: str, why: str, *, by_platform: bool = False) -> Grant:
    named = tuple(f"{service}:{action}" for action in actions.split())
    return Grant(on=on, actions=named, why=why, by_platform=by_platform)


def _rows(on: Resource, actions: str, why: str) -> Grant:
    return _grant(on, "dynamodb", actions, why)


def _queues(on: Resource, actions: str, why: str, *, by_platform: bool = False) -> Grant:
    return _grant(on, "sqs", actions, why, by_platform=by_platform)


_RUN = _rows(Resource.LEDGER, "PutItem UpdateItem Query", "its run, once per slot, and whether one is still going")
_FAILED_RUN = _queues(Resource.RUN_FAILURES, "SendMessage", "where Lambda leaves a run that failed", by_platform=True)
_LIST_CONTENT = _grant(
    Resource.CONTENT_BUCKET,
    "s3",
    "ListBucket",
    "S3 tells absent from forbidden only to those who may list",
    by_platform=True,
)
_READS_PAYLOAD_ROWS = _rows(Resource.PAYLOAD_ROWS, "GetItem", "reads small payloads")
_PAYLOAD_ROWS_KEY = _grant(
    Resource.PAYLOAD_ROWS_KEY,
    "kms",
    "Decrypt",
    "DynamoDB opens the table's own key on the caller's behalf, for a write as for a read",
    by_platform=True,
)
_SWITCHES = _rows(Resource.CONTROL, "GetItem", "reads switches and caps")
_READS_STREAM = (
    _grant(
        Resource.STREAM,
        "dynamodb",
        "DescribeStream GetRecords GetShardIterator",
        "Lambda reads the jobs table's stream with this role",
        by_platform=True,
    ),
    _grant(
        Resource.ANY_STREAM,
        "dynamodb",
        "ListStreams",
        "Lambda looks the stream up; the action knows no single stream",
        by_platform=True,
    ),
)

GRANTS: Mapping[str, tuple[Grant, ...]] = {
    WORKER: (
        _queues(
            Resource.OWN_QUEUE,
            "ReceiveMessage DeleteMessage ChangeMessageVisibility GetQueueAttributes",
            "Lambda polls the lane's queue with this role",
            by_platform=True,
        ),
        _rows(Resource.JOBS, "GetItem UpdateItem", "claims and settles jobs"),
        _rows(Resource.EFFECTS, "UpdateItem Query", "writes intents and records, reads a job's effects"),
        _SWITCHES,
        _rows(Resource.LEDGER, "GetItem UpdateItem", "spends the vendor accounts of its lane, tells what it saw"),
        _grant(Resource.CONTENT, "s3", "GetObject PutObject", "reads payloads and documents, stores results"),
        _READS_PAYLOAD_ROWS,
        _PAYLOAD_ROWS_KEY,
        _LIST_CONTENT,
        _grant(Resource.CONTENT_KEY, "kms", "Decrypt GenerateDataKey", "the content store is encrypted"),
        _grant(Resource.SECRET, "secretsmanager", "GetSecretValue", "the tokens of its own vendors"),
    ),
    "run_batch_submitter": (
        _rows(Resource.WAITING, "Query", "finds what is due"),
        _rows(Resource.JOBS, "GetItem UpdateItem", "claims jobs, hands them over, puts them back"),
        _SWITCHES,
        _rows(
            Resource.LEDGER,
            "PutItem UpdateItem Query GetItem",
            "its run; batches and their members; what the vendor accounts have left",
        ),
        _grant(Resource.CONTENT, "s3", "GetObject", "reads payloads"),
        _READS_PAYLOAD_ROWS,
        _PAYLOAD_ROWS_KEY,
        _LIST_CONTENT,
        _grant(Resource.CONTENT_KEY, "kms", "Decrypt", "the content store is encrypted"),
        _grant(Resource.SECRET, "secretsmanager", "GetSecretValue", "the tokens of its own vendors"),
        _FAILED_RUN,
    ),
    "run_batch_collector": (
        _rows(Resource.JOBS, "GetItem UpdateItem", "ends jobs, puts them back"),
        _rows(Resource.LEDGER, "PutItem UpdateItem Query GetItem", "its run; batches; gives held tokens back"),
        _grant(Resource.CONTENT, "s3", "PutObject", "stores results"),
        _grant(Resource.CONTENT_KEY, "kms", "GenerateDataKey", "the content store is encrypted"),
        _grant(Resource.SECRET, "secretsmanager", "GetSecretValue", "the tokens of its own vendors"),
        _FAILED_RUN,
    ),
    "run_worker": (
        _rows(Resource.WAITING, "Query", "finds what is due"),
        _rows(Resource.JOBS, "UpdateItem", "claims and settles jobs"),
        _rows(Resource.EFFECTS, "Query", "an open intent is an unknown outcome"),
        _SWITCHES,
        _rows(
            Resource.LEDGER,
            "PutItem UpdateItem Query GetItem",
            "its run; spends the vendor accounts of its lane, tells what it saw",
        ),
        _grant(Resource.CONTENT, "s3", "GetObject PutObject", "reads payloads, stores results"),
        _READS_PAYLOAD_ROWS,
        _PAYLOAD_ROWS_KEY,
        _LIST_CONTENT,
        _grant(Resource.CONTENT_KEY, "kms", "Decrypt GenerateDataKey", "the content store is encrypted"),
        _grant(Resource.SECRET, "secretsmanager", "GetSecretValue", "the tokens of its own vendors"),
        _FAILED_RUN,
    ),
    INTAKE: (
        _rows(Resource.JOBS, "PutItem", "one job an event"),
        _rows(Resource.PAYLOAD_ROWS, "PutItem", "what the event says, before its job"),
        _PAYLOAD_ROWS_KEY,
        _grant(Resource.PAYLOADS, "s3", "PutObject", "what a long event says, before its job"),
        _grant(Resource.CONTENT_KEY, "kms", "GenerateDataKey", "the content store is encrypted"),
        _grant(Resource.SECRET, "secretsmanager", "GetSecretValue", "the keys of its own senders"),
    ),
    "stream": (
        *_READS_STREAM,
        _rows(Resource.JOBS, "UpdateItem", "stores why a job waits"),
        _SWITCHES,
        _rows(Resource.LEDGER, "GetItem UpdateItem", "sees what the vendor accounts have left, promises starts"),
        _queues(Resource.LANE_QUEUES, "SendMessage GetQueueAttributes", "sends admitted jobs, sees the depth"),
        _queues(Resource.DEAD_LETTERS, "SendMessage", "a failed job's dead letter"),
        _queues(Resource.STREAM_FAILURES, "SendMessage", "where Lambda leaves what it gave up on", by_platform=True),
    ),
    "feed": (
        *_READS_STREAM,
        _grant(Resource.EVENT_BUS, "events", "PutEvents", "tells subscribers that a job changed its state"),
        _queues(Resource.FEED_FAILURES, "SendMessage", "where Lambda leaves what it gave up on", by_platform=True),
    ),
    "dispatcher": (
        _rows(Resource.WAITING, "Query", "finds what is due"),
        _rows(Resource.JOBS, "GetItem UpdateItem", "looks again, moves the lease"),
        _SWITCHES,
        _rows(
            Resource.LEDGER,
            "PutItem UpdateItem Query GetItem",
            "its run, as the others; what the vendor accounts have left, and what it promised there",
        ),
        _queues(Resource.LANE_QUEUES, "SendMessage GetQueueAttributes", "sends due jobs, sees the depth"),
        _FAILED_RUN,
    ),
    "sweeper": (
        _rows(Resource.WAITING, "Query", "finds claims of dead runs, and failed jobs"),
        _rows(Resource.JOBS, "GetItem UpdateItem PutItem", "puts them back; one canary a lane, which has no payload"),
        _rows(Resource.EFFECTS, "Query", "an open intent is an unknown outcome"),
        _queues(
            Resource.DEAD_LETTERS,
            "ReceiveMessage SendMessage GetQueueAttributes",
            "compares failed jobs with their dead letters, sends one again that is gone or was moved without a plan",
        ),
        _RUN,
        _FAILED_RUN,
    ),
    "triage": (
        _queues(
            Resource.DEAD_LETTERS,
            "ReceiveMessage DeleteMessage GetQueueAttributes",
            "sorts arrivals; deletes only what is settled elsewhere",
        ),
        _rows(Resource.JOBS, "GetItem PutItem UpdateItem", "marks what died on the way, keeps what is unreadable"),
        _rows(Resource.EFFECTS, "Query", "an open intent is an unknown outcome"),
        _grant(Resource.CONTENT, "s3", "PutObject", "keeps what cannot be read"),
        _grant(Resource.CONTENT_KEY, "kms", "GenerateDataKey", "the content store is encrypted"),
        _RUN,
        _FAILED_RUN,
    ),
    "auditor": (
        _rows(Resource.JOBS, "Scan GetItem UpdateItem", "looks at every job, mends under a second look"),
        _rows(Resource.EFFECTS, "Query", "an open intent is an unknown outcome"),
        _RUN,
        _queues(Resource.LANE_QUEUES, "SendMessage", "sends a lost job again"),
        _queues(
            Resource.DEAD_LETTERS,
            "ReceiveMessage SendMessage GetQueueAttributes",
            "compares failed jobs with their dead letters, writes a missing one again",
        ),
        _FAILED_RUN,
    ),
    "governor": (
        _rows(Resource.WAITING, "Query", "how long the oldest job has been due"),
        _rows(Resource.CONTROL, "GetItem UpdateItem", "reads switches and caps, writes caps, closes a lane"),
        _rows(
            Resource.LEDGER,
            "PutItem UpdateItem Query GetItem",
            "its run, as the others; signals, and which accounts are shut",
        ),
        _rows(Resource.HISTORY, "PutItem", "keeps every decision"),
        _queues(Resource.LANE_QUEUES, "GetQueueAttributes", "sees the depth"),
        _queues(Resource.DEAD_LETTERS, "GetQueueAttributes", "sees the depth"),
        _grant(
            Resource.EVENT_SOURCES,
            "lambda",
            "GetEventSourceMapping UpdateEventSourceMapping",
            "asserts the caps of the lanes' workers, and of nobody else",
        ),
        _grant(
            Resource.ANY_EVENT_SOURCE,
            "lambda",
            "ListEventSourceMappings",
            "finds a worker's event source; the action knows no single one",
        ),
        _FAILED_RUN,
    ),
    "redriver": (
        _rows(Resource.JOBS, "GetItem UpdateItem", "releases the jobs of an approved plan, sees what becomes of them"),
        _rows(Resource.HISTORY, "GetItem Query PutItem", "reads plans, appends what it did; it approves nothing"),
        _SWITCHES,
        _rows(
            Resource.LEDGER, "PutItem UpdateItem Query GetItem", "its run, as the others; what the accounts have left"
        ),
        _queues(Resource.LANE_QUEUES, "GetQueueAttributes", "sees the depth; the stream sends what it releases"),
        _queues(
            Resource.LANE_QUEUES, "SendMessage", "SQS moves letters into the lane's queue with it", by_platform=True
        ),
        _queues(
            Resource.DEAD_LETTERS,
            "GetQueueAttributes StartMessageMoveTask ListMessageMoveTasks CancelMessageMoveTask",
            "stops when more jobs fail; moves every letter of an approved native plan",
        ),
        _queues(
            Resource.DEAD_LETTERS, "ReceiveMessage DeleteMessage", "SQS moves letters with this role", by_platform=True
        ),
        _FAILED_RUN,
    ),
}


RUN_ROLES = ("batch_submitter", "batch_collector", "worker")
"""The scheduled functions that a lane may have."""


def of_role(role: str) -> str:
    """The entry of a lane's scheduled function: one serves all lanes, as with workers."""
    if role not in RUN_ROLES:
        raise ValueError(f"runs.{role}: must be one of {', '.join(RUN_ROLES)}")
    return f"run_{role}"


_READS = (
    _rows(Resource.JOBS, "GetItem Query Scan DescribeTable DescribeTimeToLive", "looks at jobs"),
    _rows(Resource.WAITING, "Query", "looks at what waits"),
    _rows(Resource.EFFECTS, "GetItem Query DescribeTable DescribeTimeToLive", "looks at what was tried outside"),
    _rows(Resource.CONTROL, "GetItem DescribeTable", "looks at switches and caps"),
    _rows(Resource.LEDGER, "GetItem Query DescribeTable DescribeTimeToLive", "looks at runs, signals and budgets"),
    _rows(Resource.HISTORY, "GetItem Query DescribeTable", "looks at what was decided"),
    _rows(Resource.PAYLOAD_ROWS, "DescribeTable", "the table of texts is there; none of them is read"),
    _queues(Resource.ALL_QUEUES, "GetQueueUrl GetQueueAttributes", "sees the depths"),
    _grant(Resource.ALL_FUNCTIONS, "lambda", "GetFunctionConfiguration", "where a function writes its log"),
    _grant(Resource.ALL_FUNCTIONS, "lambda", "GetAlias ListVersionsByFunction", "whether a rollback is in force"),
    _grant(Resource.ALL_EVENT_SOURCES, "lambda", "GetEventSourceMapping", "whether a worker is fed, and its cap"),
    _grant(Resource.ALL_LOGS, "logs", "FilterLogEvents", "event names and ids"),
    _grant(Resource.ALL_SCHEDULES, "scheduler", "GetSchedule", "whether a schedule is on"),
    _grant(Resource.ALL_STACKS, "cloudformation", "GetTemplate", "what costs while nothing happens"),
    _grant(Resource.ALL_SECRETS, "secretsmanager", "DescribeSecret", "whether it was filled; never its value"),
    _grant(Resource.PARAMETERS, "ssm", "GetParameter", "what tools are told of the lanes"),
    _grant(Resource.ALARM_TOPIC, "sns", "ListSubscriptionsByTopic", "whether alarms reach anybody"),
    *(
        _grant(Resource.NO_SINGLE_ONE, service, actions, "looks them up; the actions know no single one")
        for service, actions in (
            ("cloudformation", "DescribeStacks"),
            ("cloudwatch", "DescribeAlarms GetMetricStatistics ListMetrics"),
            ("lambda", "GetAccountSettings ListEventSourceMappings"),
            ("logs", "DescribeLogGroups"),
            ("scheduler", "ListSchedules"),
            ("sqs", "ListQueues"),
        )
    ),
)

PEOPLE: Mapping[str, tuple[Grant, ...]] = {
    "reader": _READS,
    "operator": (
        *_READS,
        _rows(Resource.JOBS, "UpdateItem", "cancels, holds, takes back and dismisses jobs"),
        _rows(Resource.CONTROL, "PutItem UpdateItem", "sets switches, pins caps"),
        _rows(Resource.LEDGER, "PutItem UpdateItem", "sets a vendor account right"),
        _rows(Resource.HISTORY, "PutItem UpdateItem", "asks for replays and starts them; leaves who did what"),
        _queues(Resource.ALL_DEAD_LETTERS, "ReceiveMessage", "an audit compares dead letters with their jobs"),
        _grant(Resource.ALL_RUNS, "lambda", "InvokeFunction", "starts a lane's run by hand"),
    ),
    "approver": (
        *_READS,
        _rows(Resource.HISTORY, "PutItem UpdateItem", "agrees to what somebody else asked for; leaves who did what"),
        _rows(Resource.EFFECTS, "UpdateItem", "records what was found out about an unknown outcome"),
        _rows(Resource.JOBS, "UpdateItem", "ends a job by that"),
    ),
    "producer": (
        _rows(Resource.JOBS, "PutItem", "one job a cause"),
        _rows(Resource.PAYLOAD_ROWS, "PutItem", "its text, before the job"),
        _PAYLOAD_ROWS_KEY,
        _grant(Resource.PRODUCED, "s3", "PutObject", "a long text, before the job; documents"),
        _grant(Resource.CONTENT_KEY, "kms", "GenerateDataKey", "the content store is encrypted"),
        _grant(Resource.LANES_PARAMETER, "ssm", "GetParameter", "which lanes there are"),
    ),
}
"""The same for people and their programs: what each of the stage's own roles may do."""


def granted(function: str, *, to_code: bool = False) -> set[tuple[Resource, str]]:
    """(resource, action) of a function; with `to_code` only what its own code may be seen to call."""
    return {
        (grant.on, action)
        for grant in GRANTS[function]
        for action in grant.actions
        if not (to_code and grant.by_platform)
    }
