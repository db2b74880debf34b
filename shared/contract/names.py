"""Physical names of what a stage deploys: infra creates them, runtime and tools find them."""

from __future__ import annotations

PREFIX = "penstock"
TABLES = ("jobs", "effects", "control", "ledger", "history")
"""What the engine remembers; text that a customer wrote is in none of them."""
CONTENT_TABLE = "content"
"""Where small payloads are: rows that hold text, and nothing else."""
WAITING_INDEX = "waiting"
ENGINE_FUNCTIONS = ("stream", "feed", "dispatcher", "sweeper", "triage", "auditor", "redriver", "governor")
SCHEDULED = ("dispatcher", "sweeper", "triage", "auditor", "redriver", "governor")
INTAKE = "intake"
"""The package of the functions that take events from outside; lanes that do each have one."""
PAYLOADS = "payload/"
"""Where in the content store's bucket the texts of producers are."""
PAYLOAD_ROWS = "text/"
"""How the reference of a payload begins that is a row of the content table; its key follows."""
RESULTS = "result/"
"""Where jobs keep their answers."""
PRODUCED = (PAYLOADS, "document/")
"""What producers put there."""
ROLES = ("reader", "operator", "approver", "producer")
"""The roles that a stage has for people and for their programs."""
FREE_SESSION_NAMES = "free_session_names"
"""Whether a caller counts as whoever it says it is."""
READ_BY_WORKERS = (PAYLOADS, "document/", RESULTS)
"""What a worker asks for and may find absent; quarantined messages are not among it."""
SETTINGS_FILE = "settings.json"
"""What a function is told of lanes, vendors and accounts; it stands at the root of its package."""
BUILT_FOR_FILE = "built_for.json"
"""The runtime and architecture that a package was put together for; it stands there, too."""
LIVE = "live"
"""The alias every worker's event source points at."""

FEED_SOURCE = "penstock"
FEED_DETAIL_TYPE = "Job State Changed"
"""What every event of the change feed has, and a subscriber's rule asks for."""


def table(stage: str, name: str) -> str:
    """A table's name."""
    return f"{PREFIX}-{stage}-{name}"


def queue(stage: str, lane: str) -> str:
    """A lane queue's name."""
    return f"{PREFIX}-{stage}-{lane}"


def dead_letter_queue(stage: str, lane: str) -> str:
    """A lane's dead-letter queue's name."""
    return f"{PREFIX}-{stage}-{lane}-dlq"


def bucket(stage: str, account: str, region: str) -> str:
    """The content store's bucket."""
    return f"{PREFIX}-{stage}-content-{account}-{region}"


def function(stage: str, name: str) -> str:
    """A function's name: an engine function, or a lane's worker."""
    return f"{PREFIX}-{stage}-{name}"


def role(stage: str, who: str) -> str:
    """The name of one of the stage's roles for people."""
    return f"{PREFIX}-{stage}-{who}"


def worker(lane: str) -> str:
    """The function part of a lane's worker."""
    return f"{lane}-worker"


def run(lane: str, role: str) -> str:
    """One of a lane's scheduled functions: its schedule, and its part of a function's name."""
    return f"{lane}_{role}"


def intake(lane: str) -> str:
    """The function part of a lane's intake; its secret has the same name."""
    return f"{lane}-{INTAKE}"


def event_bus(stage: str) -> str:
    """The bus of the change feed: a stage has its own, and nobody else publishes there."""
    return f"{PREFIX}-{stage}"


def schedule(stage: str, name: str) -> str:
    """A schedule's name."""
    return f"{PREFIX}-{stage}-{name}"


def secret(stage: str, name: str) -> str:
    """A secret's name."""
    return f"{PREFIX}/{stage}/{name}"


def stack(stage: str, part: str) -> str:
    """A stack's name: State, Control, Watch or Lane-<name>."""
    return f"Penstock-{stage}-{part}"


def lanes_parameter(stage: str) -> str:
    """The parameter that holds the deployed lanes' settings, for producers and tools."""
    return f"/{PREFIX}/{stage}/lanes"


def rules_parameter(stage: str) -> str:
    """The parameter that holds the rules lanes are judged and steered by, for tools."""
    return f"/{PREFIX}/{stage}/rules"


def accounts_parameter(stage: str) -> str:
    """The parameter that holds the deployed vendor accounts, for tools."""
    return f"/{PREFIX}/{stage}/accounts"


def routing_parameter(stage: str) -> str:
    """The parameter that holds what the deployed lanes' events may be about, for tools."""
    return f"/{PREFIX}/{stage}/routing"


def vendors_parameter(stage: str) -> str:
    """The parameter that holds the deployed vendors' addresses and abilities, for tools."""
    return f"/{PREFIX}/{stage}/vendors"


def people_parameter(stage: str) -> str:
    """The parameter that holds which callers count as people, for tools."""
    return f"/{PREFIX}/{stage}/people"


def parameter_part(parameter: str, number: int) -> str:
    """Where a part of a parameter stands that is too large for one."""
    return f"{parameter}/{number}"
