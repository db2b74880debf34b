"""Every key string of every table, in one place. Nobody else writes a key.

jobs      JOB#<id>                        waiting index: wpk, wsk (waiting, claimed by a run, failed)
          RING#<lane>#<tenant>            a fair lane's tenant with waiting jobs (same index, wpk RING#<lane>)
effects   JOB#<id>          EFFECT#<name>
control   SWITCHES          –             CAP#<lane>
ledger    RUN#<schedule>    <slot>
          BUDGET#<account>  STATE
          SIGNALS#<lane>    <minute>
          BATCH#<lane>      OPEN#<tag>, ENDED#<time>#<tag>
          MEMBERS#<tag>     IDS#<n>       who is in a batch
history   <subject>         <time>#<event id>
          PLAN#<id>         PLAN, IDS#<n>, STEP#<n>       a redrive plan, its manifest, what was done
          REDRIVE#<lane>    RUNNING       the plan that has the lane
          RESOLVE#<job id>  FENCE#<n>     what was found out about an unknown outcome
content   <tenant>#<job id>#<hash>        a small payload
"""

from __future__ import annotations

PK = "pk"
SK = "sk"
WAITING_PK = "wpk"
WAITING_SK = "wsk"
TTL = "expires_at"
"""Epoch seconds; DynamoDB removes the row some time after it."""
MOST_BYTES = 400 * 1024
"""No row can be larger."""

SWITCHES = "SWITCHES"
BUDGET_SK = "STATE"
"""Sort key of an account's one row."""
PLAN_SK = "PLAN"
"""Sort key of a plan itself."""
REDRIVE_SK = "RUNNING"
"""Sort key of the one row that says which plan has a lane."""
OPEN_BATCH, ENDED_BATCH = "OPEN#", "ENDED#"
"""Where the sort keys of a lane's batches begin."""
MANIFEST, STEPS = "IDS#", "STEP#"
"""Where the sort keys of a plan's manifest and of its steps begin."""


def job_pk(job_id: str) -> str:
    """Key of a job's row, and of its effects."""
    return f"JOB#{job_id}"


def payload_pk(tenant: str, job_id: str, digest: str) -> str:
    """Key of a small payload. The tenant is first and holds no `#`: a producer's policy can keep it to its own rows."""
    return f"{tenant}#{job_id}#{digest}"


def job_id_from(pk: str) -> str:
    """The job a key belongs to."""
    return pk.removeprefix("JOB#")


def effect_sk(name: str) -> str:
    """Sort key of one effect of a job."""
    return f"EFFECT#{name}"


def ordered_wpk(lane: str, shard: int, priority: int) -> str:
    """Waiting index, lanes served oldest first: spread over shards, one partition per priority."""
    return f"{lane}#{shard}#{priority}"


def fair_wpk(lane: str, tenant: str, priority: int) -> str:
    """Waiting index, fair lanes: each tenant's own backlog."""
    return f"{lane}#{tenant}#{priority}"


def claimed_wpk(lane: str) -> str:
    """Waiting index, jobs claimed by a run: the sweeper reads them by the time of their claim."""
    return f"CLAIMED#{lane}"


def letters_wpk(lane: str) -> str:
    """Waiting index, failed jobs whose dead letter was moved without a plan: the sweeper reads them."""
    return f"LETTERS#{lane}"


def failed_wpk(lane: str) -> str:
    """Waiting index, a lane's other failed jobs by the time of their failure; they wait for nothing."""
    return f"FAILED#{lane}"


def ring_pk(lane: str, tenant: str) -> str:
    """A fair lane's ring row: one per tenant that has something waiting."""
    return f"RING#{lane}#{tenant}"


def ring_wpk(lane: str) -> str:
    """Where a fair lane's ring rows are found, by their next due time."""
    return f"RING#{lane}"


def waiting_sk(due: str, created: str, job_id: str) -> str:
    """Order of the waiting index: due, then oldest, then id."""
    return f"{due}#{created}#{job_id}"


def due_from(wsk: str) -> str:
    """The due time a sort key starts with."""
    return wsk.split("#", 1)[0]


def created_in(wsk: str) -> str:
    """The time of creation a sort key holds."""
    return wsk.split("#", 2)[1] if wsk.count("#") > 1 else ""


def timed_in(wsk: str) -> bool:
    """True when the due time is not the moment of creation: somebody gave the job a time."""
    due, _, rest = wsk.partition("#")
    return not rest.startswith(f"{due}#")


FIRST_DUE = "0"
"""Before every due time: where the waiting index begins."""


def due_until(moment: str) -> str:
    """Upper bound for everything due up to and including `moment`."""
    return f"{moment}#~"


def cap_pk(lane: str) -> str:
    """Key of a lane's wanted cap."""
    return f"CAP#{lane}"


def run_pk(schedule: str) -> str:
    """Key of a schedule's runs."""
    return f"RUN#{schedule}"


def batch_pk(lane: str) -> str:
    """Key of a lane's batches."""
    return f"BATCH#{lane}"


def open_batch_sk(tag: str) -> str:
    """Sort key of a batch that has not ended; the tags of one run begin alike."""
    return f"{OPEN_BATCH}{tag}"


def ended_batch_sk(intended: str, tag: str) -> str:
    """Order of the batches that have ended: by the time they were begun, which whoever ends one agrees on."""
    return f"{ENDED_BATCH}{intended}#{tag}"


def members_pk(tag: str) -> str:
    """Key of who is in a batch."""
    return f"MEMBERS#{tag}"


def budget_pk(account: str) -> str:
    """Key of a vendor account's budget."""
    return f"BUDGET#{account}"


def signals_pk(lane: str) -> str:
    """Key of what a lane was seen to do, minute by minute."""
    return f"SIGNALS#{lane}"


def history_sk(at: str, event_id: str) -> str:
    """Order of a subject's history: by time."""
    return f"{at}#{event_id}"


def plan_pk(plan_id: str) -> str:
    """Key of everything about one redrive plan."""
    return f"PLAN#{plan_id}"


def manifest_sk(number: int) -> str:
    """Order of the parts of a manifest."""
    return f"{MANIFEST}{number:05d}"


def step_sk(number: int) -> str:
    """Order of a plan's steps."""
    return f"{STEPS}{number:06d}"


def redrive_pk(lane: str) -> str:
    """Key of the row that says which plan has a lane."""
    return f"REDRIVE#{lane}"


def resolution_pk(job_id: str) -> str:
    """Key of what was found out about a job."""
    return f"RESOLVE#{job_id}"


def resolution_sk(fence: int, only: str | None = None) -> str:
    """A resolution is about one failure of a job, which its fence names, or about one effect of it."""
    return f"FENCE#{fence:09d}" if only is None else f"FENCE#{fence:09d}#{only}"
