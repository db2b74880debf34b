"""What went wrong, as one sentence that names it and says what to do. Never a traceback, never an SDK's text."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from typing import Any

from shared.contract import table
from shared.core.errors import BadInput, PenstockError, Unavailable, UnreadableRow
from shared.core.switches import WAY_OUT

CREDENTIALS = "sign in (`aws sso login`) or set AWS_PROFILE; for the local stack: `penstock local up`"
_ACTION = re.compile(r"perform: ([a-z0-9-]+:[A-Za-z0-9*]+)")
_UNACCEPTED = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_NO_CREDENTIALS = (
    "CredentialRetrievalError",
    "LoginRefreshRequired",
    "NoAuthTokenError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "SSOTokenLoadError",
    "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An error as a person and a program read it."""

    code: str
    field: str
    problem: str

    @property
    def sentence(self) -> str:
        """For people."""
        return f"{self.field}: {self.problem}" if self.field else self.problem

    def document(self) -> dict[str, Any]:
        """For programs."""
        return {"error": {"code": self.code, "field": self.field, "problem": self.problem}}


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
    if module.startswith(("botocore", "boto3")):
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


def access_denied(exc: BaseException) -> str | None:
    """The action that was denied, or None when something else is wrong."""
    code, status = _code(exc)
    # A 403 by itself is S3's way to say it: a HEAD has no body for a code.
    if "AccessDenied" not in code and "Unauthorized" not in code and not (code == "403" and status == 403):
        return None
    message = str(getattr(exc, "response", {}).get("Error", {}).get("Message", ""))
    found = _ACTION.search(message)
    return found[1] if found else str(getattr(exc, "operation_name", "the request"))


def not_supported(exc: BaseException) -> bool:
    """True when the endpoint does not have this operation at all: an emulator, or a region without it."""
    if type(exc).__module__ == "botocore.parsers":
        return True
    code, status = _code(exc)
    unknown = ("NotImplemented", "UnknownOperation", "InvalidAction", "UnsupportedOperation", "UnknownService")
    return status == 501 or any(word in code for word in unknown)


def _from_sdk(exc: BaseException) -> Problem:
    kind = type(exc).__name__
    code, _ = _code(exc)
    if kind in _NO_CREDENTIALS or kind == "ProfileNotFound":
        what = "the AWS profile does not exist" if kind == "ProfileNotFound" else "no usable AWS credentials were found"
        return Problem(code="no_credentials", field="", problem=f"{what}: {CREDENTIALS}")
    if kind == "NoRegionError":
        return Problem(
            code="no_region",
            field="",
            problem="no AWS region is set: set AWS_DEFAULT_REGION, or a profile that has one",
        )
    if code in _UNACCEPTED:
        return Problem(
            code="no_credentials", field="", problem=f"AWS does not accept these credentials ({code}): {CREDENTIALS}"
        )
    if (action := access_denied(exc)) is not None:
        return Problem(
            code="access_denied", field="", problem=f"access denied: {action}; this caller needs that permission"
        )
    if not code:
        where = getattr(exc, "kwargs", {}).get("endpoint_url") or "AWS"
        return Problem(
            code="not_reachable",
            field="",
            problem=f"{where} is not reachable ({kind}): is the network up? Is the local stack, if meant?",
        )
    operation = getattr(exc, "operation_name", "the request")
    if "NotFound" in code or "NonExistent" in code or code == "NoSuchBucket":
        return Problem(
            code="not_found",
            field="",
            problem=f"{operation} found nothing ({code}): is this stage deployed in this account and region?",
        )
    return Problem(code="aws_error", field="", problem=f"AWS answered {operation} with {code}; nothing more is known")


def _code(exc: BaseException) -> tuple[str, int]:
    """An AWS error's code and HTTP status; empty for anything else."""
    response = getattr(exc, "response", None)
    if not isinstance(response, dict):
        return "", 0
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    return str(response.get("Error", {}).get("Code", "")), int(status)


def _place(exc: BaseException) -> str:
    frames = traceback.extract_tb(exc.__traceback__)
    return "an unknown place" if not frames else f"{'/'.join(frames[-1].filename.split('/')[-3:])}:{frames[-1].lineno}"
