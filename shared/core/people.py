"""People: whom AWS names for certain, and whether a second yes comes from a second person.

Whoever assumes a role chooses the name of the session, unless the role's trust forbids it. A name counts where nobody
can choose it: an IAM user's, that of an Identity Center session, and that of a session of one of the stage's own roles.
One name is one person, in whichever of these it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared.core.errors import BadInput

IDENTITY_CENTER = "AWSReservedSSO_"
"""How the roles of Identity Center begin; only AWS makes and changes these."""
_USER = re.compile(r"arn:[\w-]+:iam::\d+:user/(?:\S*/)?(?P<name>[^/\s]+)")
_SESSION = re.compile(r"arn:[\w-]+:sts::\d+:assumed-role/(?P<role>[^/\s]+)/(?P<name>[^/\s]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Whom a stage knows by name."""

    roles: frozenset[str] = frozenset()
    """The stage's own roles for people: their trust pins the session's name to the person's."""
    free_session_names: bool = False
    """Any caller counts as whoever it says it is: two names may be one person."""

    def named(self, caller: str) -> str | None:
        """The person whom AWS names as the caller; None where the name may be anybody's."""
        if user := _USER.fullmatch(caller):
            return user["name"].casefold()
        session = _SESSION.fullmatch(caller)
        if session and (session["role"].startswith(IDENTITY_CENTER) or session["role"] in self.roles):
            return session["name"].casefold()
        return caller if self.free_session_names else None

    def check_second(self, what: str, subject: str, *, asked: str, agrees: str, verb: str) -> None:
        """Whoever agrees is not whoever asked: both are named for certain, and differently. Raises BadInput."""
        if self.named(agrees) is None:
            raise BadInput("caller", f"{agrees} may have chosen its name, so its yes is nobody's: {self.instead}")
        if self.named(asked) is None:
            raise BadInput(
                what,
                f"{subject} was requested by {asked}, who may have chosen that name and be you: somebody whom AWS names"
                " must request it again",
            )
        if self.named(asked) == self.named(agrees):
            raise BadInput(what, f"{subject} was requested by you: somebody else must {verb} it")

    @property
    def instead(self) -> str:
        """What to do without a name that counts."""
        roles = f", or assume one of {', '.join(sorted(self.roles))}" if self.roles else ""
        return f"sign in as an IAM user or by Identity Center{roles}"
