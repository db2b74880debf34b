"""Names that only the deployed stage itself and the people who look at it use.

Whatever a function or a tool looks up by name stands in `shared.contract.names`. A hyphen separates the parts:
lanes have none in theirs, so no lane can ever collide with a name written here.
"""

from __future__ import annotations

from shared.contract import names


def lane_part(lane: str) -> str:
    """A lane's part of a stack's name: CloudFormation allows no underscore there."""
    return f"Lane-{lane.replace('_', '-')}"


def failure_queue(stage: str, of: str) -> str:
    """Where `of` leaves what it could not deliver: `stream`, `schedule` or `run`."""
    return f"{names.PREFIX}-{stage}-{of}-failed"


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


def schedule_group(stage: str) -> str:
    """The group that holds the stage's schedules, and nothing else."""
    return f"{names.PREFIX}-{stage}"


def break_glass_role(stage: str) -> str:
    """The role an operator assumes in an emergency; made by whoever owns the account, never by this app."""
    return f"{names.PREFIX}-{stage}-break-glass"
