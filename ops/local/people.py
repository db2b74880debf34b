"""The people of a local stack: two, so that one developer can try what takes two. Its STS knows each by name."""

from __future__ import annotations

from ops.local.clients import Clients
from ops.local.errors import LocalStackError
from ops.local.state import StackState

PEOPLE = ("ada", "bob")


def key_of(running: StackState, name: str) -> str:
    """Somebody's access key id, made when it is first asked for; an error says who there is."""
    if name not in PEOPLE:
        raise LocalStackError(f"nobody here is called {name[:32]!r}: {' and '.join(PEOPLE)} are")
    iam = Clients(
        endpoint=running.endpoint, access_key=running.access_key, region=running.region, account=running.account
    ).of("iam")
    if name not in {user["UserName"] for user in iam.list_users()["Users"]}:
        iam.create_user(UserName=name)
    held = iam.list_access_keys(UserName=name)["AccessKeyMetadata"]
    made: str = held[0]["AccessKeyId"] if held else iam.create_access_key(UserName=name)["AccessKey"]["AccessKeyId"]
    return made
