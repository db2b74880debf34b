"""What went wrong, as one sentence that names it and says what to do. Never a traceback, never an SDK's text."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from typing import Any

from shared.contract import table
from shared.core.errors import BadInput, PenstockError, Unavailable, UnreadableRow
from shared.core.switches import WAY_OUT

_LONG = re.compile(r"\S{240,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as a person and a program read it."""

    code: str
    field: str
    problem: str

    @property
    def sentence(self) -> str:
        """For people."""
        return _recognised(f"{self.field}: {self.problem}" if self.field else self.problem)

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {"error": {"code": self.code, "field": _recognised(self.field), "problem": _recognised(self.problem)}}


def _recognised(text: str) -> str:
    """In one line, and what was given no longer than one needs to recognise it."""
    return _LONG.sub(lambda word: f"{word[0][:60]}…", " ".join(text.split()))


def problem_of(exc: BaseException) -> Problem:
    """The problem behind an error, whatever raised it."""
    if isinstance(exc, BadInput):
        return Problem(code=exc.code, field=exc.field, problem=exc.problem)
    if isinstance(exc, Unavailable):
        return Problem(
            code=exc.code,
            field=exc.what,
            problem=f"did not answer ({exc.reason}); nothing is known of this request: look, then try again",
        )
    if isinstance(exc, UnreadableRow):
        return Problem(code=exc.code, field=f"row {exc.key}", problem=f"{exc.problem}; {_way_out(exc.key)}")
    if isinstance(exc, PenstockError):
        return Problem(code=exc.code, field="", problem=str(exc))
    module = type(exc).__module__
    if module.startswith("botocore"):
        return _from_sdk(exc)
    if module.startswith("ops.local"):
        return Problem(code="local_stack", field="", problem=str(exc))
    if isinstance(exc, OSError):
        return Problem(code="file", field=str(exc.filename or ""), problem=(exc.strerror or "cannot be used").lower())
    return Problem(
        code="defect",
        field="",
        problem=f"an unexpected {type(exc).__name__} at {_place(exc)}; PENSTOCK_TRACEBACK=1 shows all of it",
    )


def _way_out(key: str) -> str:
    """What to do about a row that cannot be read."""
    if key == table.SWITCHES:
        return f"nothing is sent until it is mended: {WAY_OUT}"
    kind, _, name = key.partition("#")
    resets = {"CAP": f"capacity unpin {name} --reset", "BUDGET": f"budget set {name} --reset"}
    if kind in resets:
        return f"read it with the version that wrote it, or begin it anew: `penstock {resets[kind]} --why …`"
    return "it is left alone: read it with the version that wrote it"


def not_supported(exc: BaseException) -> bool:
    """True when the endpoint does not have this operation at all: an emulator, or a region without it."""
    from botocore.exceptions import ClientError
    from botocore.parsers import ResponseParserError

    from shared.adapters.aws.errors import code_of

    if isinstance(exc, ResponseParserError):
        return True
    if not isinstance(exc, ClientError):
        return False
    code, status = code_of(exc), exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    unknown = ("NotImplemented", "UnknownOperation", "InvalidAction", "UnsupportedOperation", "UnknownService")
    return status == 501 or any(word in code for word in unknown)


def _from_sdk(exc: Any) -> Problem:
    # The SDK is imported already where one of its errors is raised; who only asks for help does not pay for it.
    from botocore.exceptions import ClientError

    from shared.adapters.aws.access import own_error
    from shared.adapters.aws.errors import code_of

    kind = type(exc).__name__
    error = own_error(exc)
    if isinstance(error, Unavailable) and not isinstance(exc, ClientError):
        return Problem(
            code="not_reachable",
            field="",
            problem=f"{error.what} is not reachable ({kind}): is the network up? Is the local stack, if meant?",
        )
    if error is not None:
        return problem_of(error)
    if not isinstance(exc, ClientError):
        return Problem(
            code="aws_setup",
            field="",
            problem=f"the AWS SDK cannot work as it is set up ({kind}): look at the AWS_ variables and the profile",
        )
    return Problem(
        code="aws_error",
        field="",
        problem=f"AWS answered {exc.operation_name} with {code_of(exc)}; nothing more is known",
    )


def _place(exc: BaseException) -> str:
    frames = traceback.extract_tb(exc.__traceback__)
    return "an unknown place" if not frames else f"{'/'.join(frames[-1].filename.split('/')[-3:])}:{frames[-1].lineno}"
