"""Names that only the deployed stage itself and the people who look at it use.

Whatever a function or a tool looks up by name stands in `shared.contract.names`. A hyphen separates the parts:
lanes have none in theirs, so no lane can ever collide with a name written here.
"""

from __future__ import annotations

from shared.contract import names


def lane_part(lane: str) -> str:
    """A lane's part of a stack's name: CloudFormation allows no underscore there."""
    return f"Lane-{lane.replace('_', '-')}"


def lane_watch_part(lane: str) -> str:
    """The part of the name of the stack that watches a lane."""
    return lane_part(lane).replace("Lane-", "Watch-", 1)


FAILURES = ("stream", "feed", "schedule", "run")
"""Who has a queue for what could not be delivered."""


def failure_queue(stage: str, of: str) -> str:
    """Where one of `FAILURES` leaves what it could not deliver."""
    return f"{names.PREFIX}-{stage}-{of}-failed"


RUN_FAILURES = ("schedule", "run")
"""What a lane with runs has such queues for."""


def run_failures(lane: str, of: str) -> str:
    """A lane's own one of these, in the words of `failure_queue`."""
    return f"{lane}-{of}"


def title(name: str) -> str:
    """A name as a construct's id."""
    return "".join(part.capitalize() for part in name.replace("_", "-").split("-"))


def access_log(name: str) -> str:
    """The access log of a public address. The prefix keeps the account's policy for log delivery short."""
    return f"/aws/vendedlogs/{name}"


def content_key_alias(stage: str) -> str:
    """The alias of the key of the content store."""
    return f"alias/{names.PREFIX}-{stage}-content"


def alarm_key_alias(stage: str) -> str:
    """The alias of the key of the alarm topic."""
    return f"alias/{names.PREFIX}-{stage}-alarms"


def alarm_topic(stage: str) -> str:
    """The topic every alarm speaks to."""
    return f"{names.PREFIX}-{stage}-alarms"


def alarm(stage: str, subject: str, problem: str) -> str:
    """An alarm: what it is about, then what is wrong."""
    return f"{names.PREFIX}-{stage}-{subject}-{problem}"


def dashboard(stage: str, subject: str) -> str:
    """A dashboard's name."""
    return f"{names.PREFIX}-{stage}-{subject}"


def schedule_group(stage: str, lane: str = "") -> str:
    """The group that holds the stage's schedules, and nothing else; a lane with runs has one of its own."""
    return f"{names.PREFIX}-{stage}-{lane}" if lane else f"{names.PREFIX}-{stage}"


def redriver_role(stage: str) -> str:
    """How CloudFormation begins the name of the redriver's role: its stack, then its logical id."""
    return f"{names.stack(stage, 'Control')}-RedriverRole"


def break_glass_role(stage: str) -> str:
    """The role an operator assumes in an emergency; made by whoever owns the account, never by this app."""
    return f"{names.PREFIX}-{stage}-break-glass"
