"""A provider's batch: many jobs handed over at once, ended one by one. What it is, and what its lines may say. Pure.

    claim → INTENT (our tag) → submit → RECORD → each job batch_submitted → collect → each job's end

The tag is written before anything is sent. After a lost answer the provider is asked which batches carry it: one that
is found is adopted, so that nothing is paid for twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from shared.core.outcome import is_code
from shared.core.sensitive import Sensitive

KEPT_DAYS = 30
"""How long an ended batch is remembered."""
MAX_ANSWER_CHARS = 100_000
"""A longer answer is none that was asked for."""


# ------------------------------------------------------------------------------------------ what is handed over
@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request to a model, in no provider's shape."""

    model: str
    instructions: str
    """Ours; the same for every job of a prompt version."""
    text: Sensitive[str]
    """The customer's."""
    max_tokens: int
    """The longest answer."""
    tokens: int
    """All that it may use, by estimate: question and answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A job in a batch, under the claim that put it there: what comes back for an older claim is not its end."""

    job_id: str
    fence: int

    @property
    def custom_id(self) -> str:
        """Its name in the provider's files."""
        return f"{self.job_id}.{self.fence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One line of a batch."""

    custom_id: str
    prompt: Prompt


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Group:
    """What the jobs of one batch have in common (R12)."""

    provider: str
    model: str
    prompt_version: str
    policy_version: str
    lane: str
    locales: str
    """From and to, as `de-AT>en-GB`."""


class BatchState(StrEnum):
    """How far a batch has come; each step is written before the next is made."""

    INTENDED = "intended"
    """Nobody knows yet whether the provider has it."""
    SUBMITTED = "submitted"
    """The provider has it; not all of its jobs may say so yet."""
    HANDED = "handed"
    """Every job of it says so: it waits for its results."""
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Our record of one batch. Ids, counts and times; no text."""

    tag: str
    """Ours, in the batch's metadata at the provider; begins with the run's id."""
    run_id: str
    group: Group
    count: int
    tokens: int
    """Held of the account's enqueued-token limit until it ends."""
    intent_at: datetime
    state: BatchState = BatchState.INTENDED
    provider_id: str | None = None
    submitted_at: datetime | None = None
    ended_at: datetime | None = None
    ending: str = ""
    """How it ended, in a word."""

    @property
    def lane(self) -> str:
        """The lane its jobs are of."""
        return self.group.lane


def tag_of(stage: str, run_id: str, number: int) -> str:
    """The name of a run's n-th batch: the same run gives the same tags."""
    return f"penstock/{stage}/{run_id}/{number:03d}"


# ------------------------------------------------------------------------------------------ what a provider says
def _as_code(said: NotTaken | NoWord | Over | Declined) -> None:
    """A provider's reason is kept and logged, so it is a code; anything else might repeat what somebody wrote."""
    if said.reason and not is_code(said.reason):
        object.__setattr__(said, "reason", "no_code")


@dataclass(frozen=True, slots=True)
class Taken:
    """The provider has the batch."""

    provider_id: str


@dataclass(frozen=True, slots=True)
class NotTaken:
    """The provider certainly does not have it."""

    reason: str
    """A code: `429`, `token_limit_exceeded`, `401`, …"""
    limited: bool = False
    """Its limits said no: the batch is as good as before."""
    auth: bool = False
    permanent: bool = False
    """The batch itself is at fault: the same again would be refused again."""
    retry_after_s: float | None = None

    def __post_init__(self) -> None:
        _as_code(self)


@dataclass(frozen=True, slots=True)
class NoWord:
    """Nobody can tell: a time-out, a 5xx, a lost connection, an answer of no known shape."""

    reason: str

    def __post_init__(self) -> None:
        _as_code(self)


Submission = Taken | NotTaken | NoWord


@dataclass(frozen=True, slots=True)
class UnderWay:
    """It is being worked on: `validating`, `in_progress`, `finalizing`, `cancelling`."""

    status: str
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Over:
    """It has ended; what it did produce can be read, also when it expired or was cancelled half-way."""

    status: str
    """`completed`, `expired`, `cancelled` or `failed`."""
    output: str | None = None
    """The provider's name of the file with answers."""
    errors: str | None = None
    """The provider's name of the file with refusals."""
    reason: str = ""
    """Why it failed as a whole, as a code."""
    limited: bool = False
    """It failed because the account's limits said no: nothing of it was begun, and it is as good as before."""

    def __post_init__(self) -> None:
        _as_code(self)


@dataclass(frozen=True, slots=True)
class Vanished:
    """The provider does not know it (any more)."""


Progress = UnderWay | Over | Vanished | NoWord


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A line with an answer."""

    custom_id: str
    text: Sensitive[str]
    tokens: int | None = None
    """What it was charged with, where the provider says so."""
    cut: bool = False
    """It was cut off at its longest: not the whole answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declined:
    """A line with a refusal."""

    custom_id: str
    reason: str
    permanent: bool = False
    auth: bool = False
    limited: bool = False
    expired: bool = False

    def __post_init__(self) -> None:
        _as_code(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A line of no known shape; its id when at least that could be read."""

    custom_id: str | None = None


ResultLine = Answered | Declined | Unreadable


# ------------------------------------------------------------------------------------------------- the judgement
class LineFault(StrEnum):
    """What can be wrong with a result file; each has a rule and a counter."""

    MISSING = "line_missing"
    """A job without a line: submitted again."""
    DUPLICATE = "line_duplicate"
    """The same line twice: counts once."""
    CONFLICT = "line_conflict"
    """Two lines of one job that differ: neither is believed; submitted again."""
    UNKNOWN = "line_unknown"
    """A line nobody asked for: left out."""
    MALFORMED = "line_malformed"
    """A line of no known shape: its job, when it can be told, is submitted again."""
    EXPIRED = "line_expired"
    """Not begun in the provider's time: submitted again."""
    LATE = "line_late"
    """Its job has left this batch meanwhile: left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What each job of a batch got, by its custom id, and what was wrong with the file."""

    lines: Mapping[str, Answered | Declined | LineFault]
    faults: Mapping[LineFault, int] = field(default_factory=dict)


def judge(members: Iterable[Member], lines: Iterable[ResultLine]) -> Verdict:
    """One end for each member, whatever the lines are, in whatever order they come."""
    wanted = {member.custom_id for member in members}
    found: dict[str, Answered | Declined | LineFault] = {}
    faults: dict[LineFault, int] = {}

    def count(fault: LineFault) -> None:
        faults[fault] = faults.get(fault, 0) + 1

    for line in lines:
        name = line.custom_id
        if isinstance(line, Unreadable):
            count(LineFault.MALFORMED)
            if name is not None and name in wanted:
                # An answer beside it is as little believed as one of two that differ.
                found[name] = LineFault.MALFORMED if name not in found else LineFault.CONFLICT
            continue
        if name not in wanted:
            count(LineFault.UNKNOWN)
            continue
        before = found.get(name)
        if before is None:
            found[name] = line
        elif before == line:
            count(LineFault.DUPLICATE)
        elif before is not LineFault.CONFLICT:
            count(LineFault.CONFLICT)
            found[name] = LineFault.CONFLICT
    for name in sorted(wanted):
        given = found.get(name)
        if given is None:
            count(LineFault.MISSING)
            found[name] = LineFault.MISSING
        elif isinstance(given, Declined) and given.expired:
            count(LineFault.EXPIRED)
    return Verdict(lines=found, faults=faults)


def grouped(pairs: Iterable[tuple[Group, Request]]) -> dict[Group, list[Request]]:
    """Requests by what they have in common: the groups in the order of their first job, each in the order given."""
    groups: dict[Group, list[Request]] = {}
    for group, request in pairs:
        groups.setdefault(group, []).append(request)
    return groups


LINE_BYTES, TOKEN_BYTES = 600, 8
"""What a line is at most besides its texts, and a token of them written as JSON: estimates to split by, never less."""


def fitting(requests: Sequence[Request], *, most_tokens: int | None, most_lines: int, most_bytes: int) -> int:
    """How many of the first requests fit into one batch. One that is too large by itself still counts as fitting: its
    provider has the last word."""
    tokens = size = 0
    for number, request in enumerate(requests):
        tokens += request.prompt.tokens
        size += LINE_BYTES + TOKEN_BYTES * request.prompt.tokens + 2 * len(request.prompt.instructions)
        over = number >= most_lines or (number > 0 and size > most_bytes)
        if over or (most_tokens is not None and tokens > most_tokens):
            return number
    return len(requests)
