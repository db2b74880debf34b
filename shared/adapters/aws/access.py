"""Why AWS does not serve this process, as one of our errors: no region, no credentials, no permission, no stage."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from shared.adapters.aws.errors import Meaning, code_of, meaning_of
from shared.core.errors import NoAccess, PenstockError, Unavailable, UnknownStage

P = ParamSpec("P")
T = TypeVar("T")

CREDENTIALS = "sign in (`aws sso login`), set AWS_PROFILE or run with a role; for the local stack: `penstock local up`"
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
_NO_CREDENTIALS = frozenset(
    {
        "CredentialRetrievalError",
        "LoginRefreshRequired",
        "NoAuthTokenError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "SSOTokenLoadError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError",
    }
)
_ABSENT = ("NotFound", "NonExistent", "NoSuchBucket")


def in_our_words(call: Callable[P, T]) -> Callable[P, T]:
    """`call`, whose errors of the SDK become ours where they say what to do; others are raised as they came."""

    @wraps(call)
    def told(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except (ClientError, BotoCoreError, ResponseParserError) as exc:
            error = own_error(exc)
            if error is None:
                raise
        # Raised out here, so that the SDK's error, which may carry a row or arguments, is not its context.
        raise error

    return told


def own_error(exc: ClientError | BotoCoreError | ResponseParserError) -> PenstockError | None:
    """Ours for an error of the SDK, or None for a defect."""
    if isinstance(exc, ResponseParserError):
        return Unavailable("AWS", "its answer is none of AWS's")
    kind, code = type(exc).__name__, code_of(exc)
    if kind == "ProfileNotFound":
        return NoAccess("no_credentials", f"the AWS profile does not exist: {CREDENTIALS}")
    if kind in _NO_CREDENTIALS:
        return NoAccess("no_credentials", f"no usable AWS credentials were found: {CREDENTIALS}")
    if kind == "NoRegionError":
        return NoAccess("no_region", "no AWS region is set: set AWS_DEFAULT_REGION, or a profile that has one")
    if kind == "InvalidRegionError":
        return NoAccess(
            "no_region", "the AWS region that is set is no region: look at AWS_DEFAULT_REGION or the profile"
        )
    if code in _UNACCEPTED:
        return NoAccess("no_credentials", f"AWS does not accept these credentials ({code}): {CREDENTIALS}")
    if (action := denied(exc)) is not None:
        return NoAccess("access_denied", f"access denied: {action}; this caller needs that permission")
    if meaning_of(exc) is Meaning.UNAVAILABLE:
        where = exc.operation_name if isinstance(exc, ClientError) else exc.kwargs.get("endpoint_url")
        return Unavailable(str(where or "AWS"), code)
    if isinstance(exc, ClientError) and any(word in code for word in _ABSENT):
        operation = exc.operation_name
        return UnknownStage(f"{operation} found nothing ({code}): is this stage deployed in this account and region?")
    return None


def denied(exc: BaseException) -> str | None:
    """The action that was denied, or None when something else is wrong."""
    if not isinstance(exc, ClientError):
        return None
    code = code_of(exc)
    status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    # A 403 by itself is S3's way to say it: a HEAD has no body for a code.
    if "AccessDenied" not in code and "Unauthorized" not in code and not (code == "403" and status == 403):
        return None
    found = _ACTION.search(str(exc.response.get("Error", {}).get("Message", "")))
    return found[1] if found else exc.operation_name
