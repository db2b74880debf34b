"""`penstock enqueue`: one job from options, or many from a file of JSON lines."""

from __future__ import annotations

import hashlib
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from ops.cli.command import Asked
from ops.cli.moments import moment_of
from ops.cli.show import Column, Output, styled, table
from ops.cli.trouble import Problem, problem_of
from shared.contract import strict_json
from shared.core.document import MAX_DOCUMENT_BYTES
from shared.core.errors import BadInput, PenstockError
from shared.core.job import DEFAULT_PRIORITY

if TYPE_CHECKING:
    from ops.cli.stage import Stage
    from shared.client import Penstock
    from shared.usecases.enqueue import Enqueue

EXAMPLES = (
    'penstock enqueue support answer_event --tenant acme --key evt-1 --payload \'{"conversation_id": "c-9"}\'',
    "penstock enqueue support answer_event --tenant acme --key evt-2 --payload @event.json --priority 0",
    "penstock enqueue extraction extract_document --tenant acme --key doc-7 --document report.txt",
    "penstock enqueue rewrite complaint_rewrite -t home-1 -k REQUEST -k RECIPIENT -p @text.json --facts @facts.json",
    "penstock enqueue --file jobs.jsonl",
)
FIELDS = ("lane", "task", "tenant", "key", "payload", "not_before", "priority", "facts")
MAX_LINE_BYTES = 512 * 1024
NO_PAYLOAD = "{}"
CHUNK = 500
SHOWN = 40
"""Refused lines shown to a person; a program gets all of them."""


def enqueue(
    asked: Asked,
    lane: Annotated[str | None, typer.Argument(metavar="LANE", show_default=False, help="The job's lane.")] = None,
    task: Annotated[str | None, typer.Argument(metavar="TASK", show_default=False, help="One of its tasks.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", "-t", show_default=False, help="Whose job it is.")] = None,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", "-k", show_default=False, help="The cause, an id; several times for several parts."),
    ] = None,
    payload: Annotated[
        str, typer.Option("--payload", "-p", metavar="JSON|@FILE", help="The text, an object; @- reads standard input.")
    ] = NO_PAYLOAD,
    document: Annotated[
        Path | None,
        typer.Option("--document", metavar="FILE", show_default=False, help="Store this text, enqueue its reference."),
    ] = None,
    not_before: Annotated[
        str | None, typer.Option("--not-before", metavar="TIME", show_default=False, help="ISO 8601 with a zone.")
    ] = None,
    priority: Annotated[int, typer.Option("--priority", help="0 first, 3 last.")] = DEFAULT_PRIORITY,
    facts: Annotated[
        str | None,
        typer.Option(
            "--facts", metavar="JSON|@FILE", show_default=False, help="What its record asks for, where its lane routes."
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", show_default=False, help="A JSON object a line; - reads input."),
    ] = None,
) -> None:
    """Enqueue one job, or every line of a file.

    The key names the cause: the same cause again is the same job, never a second one. A file's lines have the
    fields lane, task, tenant, key, payload and, if wanted, not_before, priority and facts; a bad line is named and
    harms no other. In JSON, a file answers one line for each of its lines, and a summary last.
    """
    from shared.usecases.enqueue import Enqueue

    single = (lane, task, tenant, key, document, facts)
    if file is not None:
        if any(part is not None for part in single):
            raise typer.BadParameter("give either --file, or a lane, task, tenant and key")
        _from_file(asked, file)
        return
    if lane is None or task is None or tenant is None or not key:
        raise typer.BadParameter("needs LANE TASK --tenant T --key K, or --file jobs.jsonl")
    if document is not None and payload != NO_PAYLOAD:
        raise typer.BadParameter("give either --payload or --document")
    door = _door(asked.stage())
    request = Enqueue(
        lane=lane,
        task=task,
        tenant=tenant,
        key=key,
        payload=_json("payload", payload) if document is None else {"document": _stored(door, document, tenant)},
        not_before=None if not_before is None else moment_of("not_before", not_before),
        priority=priority,
        facts=None if facts is None else _json("facts", facts),
    )
    ref = door.put(request)
    if asked.out.json:
        asked.out.document({"job_id": ref.job_id, "created": ref.created})
    elif ref.created:
        asked.out.say(f"created {ref.job_id}")
    else:
        asked.out.say(f"existing {ref.job_id}: this cause was enqueued before, so nothing was added")


def _door(stage: Stage) -> Penstock:
    from shared.client import Penstock

    return Penstock(stage.name, lanes=stage.lanes, jobs=stage.jobs, content=stage.content, clock=stage.clock)


def _stored(door: Penstock, file: Path, tenant: str) -> str:
    """The reference of the stored file. Its id is its hash: another text under the same key is refused as a conflict,
    and leaves the first one's text as it was."""
    with file.open("rb") as stream:
        data = stream.read(MAX_DOCUMENT_BYTES + 1)
    return door.put_document(tenant, hashlib.sha256(data).hexdigest()[:32], data)


def _json(field: str, given: str) -> Any:
    if not given.startswith("@"):
        data: str | bytes = given
    elif given == "@-":
        data = sys.stdin.buffer.read(MAX_LINE_BYTES + 1)
    else:
        data = Path(given[1:]).read_bytes()
    try:
        return strict_json.loads(data)
    except strict_json.NotStrict as exc:
        raise BadInput(field, str(exc)) from None


# -------------------------------------------------------------------------------------------------- files
@dataclass(slots=True)
class Tally:
    """What became of a file's lines."""

    counts: Counter[str] = field(default_factory=Counter)
    refused: list[tuple[int, Problem]] = field(default_factory=list)

    def summary(self) -> dict[str, int]:
        """The numbers, zeros too."""
        kinds = ("created", "existing", "refused")
        return {"lines": self.counts.total(), **{kind: self.counts[kind] for kind in kinds}}


def _from_file(asked: Asked, name: str) -> None:
    door = _door(asked.stage())
    tally = Tally()
    with _opened(name) as stream, asked.out.working("enqueuing") as tell:
        lines = requests_of(stream)
        while chunk := list(islice(lines, CHUNK)):
            _put(chunk, door, tally, asked.out)
            tell(_said(tally))
    if asked.out.json:
        asked.out.line({"summary": tally.summary()})
    else:
        _tell(tally, asked.out)
    if tally.refused:
        raise typer.Exit(1)


def _put(chunk: list[tuple[int, Enqueue | BadInput]], door: Penstock, tally: Tally, out: Output) -> None:
    good = [(number, request) for number, request in chunk if not isinstance(request, BadInput)]
    results: dict[int, Any] = {number: request for number, request in chunk if isinstance(request, BadInput)}
    for result in door.enqueue_many(request for _, request in good):
        results[good[result.position][0]] = result.error or result.ref
    for number in sorted(results):
        answer = results[number]
        if isinstance(answer, PenstockError):
            problem = problem_of(answer)
            tally.counts["refused"] += 1
            tally.refused.append((number, problem))
            document = {"line": number, **problem.document()}
        else:
            tally.counts["created" if answer.created else "existing"] += 1
            document = {"line": number, "job_id": answer.job_id, "created": answer.created}
        if out.json:
            out.line(document)


def _tell(tally: Tally, out: Output) -> None:
    if tally.refused:
        rows = [(str(number), problem.field, problem.problem) for number, problem in tally.refused[:SHOWN]]
        out.say(table([Column(header="line", right=True), "field", "why it was refused"], rows))
        if len(tally.refused) > SHOWN:
            out.say(f"… and {len(tally.refused) - SHOWN:,} more; --json lists them all")
    out.say(styled(_said(tally), "yellow" if tally.refused else "green"))


def _said(tally: Tally) -> str:
    summary = tally.summary()
    return (
        f"{summary['lines']:,} lines: {summary['created']:,} created, {summary['existing']:,} existing,"
        f" {summary['refused']:,} refused"
    )


def requests_of(stream: BinaryIO) -> Iterator[tuple[int, Enqueue | BadInput]]:
    """Each line that is not blank, by its number: a request, or what is wrong with it."""
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(MAX_LINE_BYTES)
            yield number, BadInput("line", f"has over {MAX_LINE_BYTES} bytes")
        elif line.strip():
            try:
                yield number, request_of(line)
            except BadInput as exc:
                yield number, exc


def request_of(line: bytes) -> Enqueue:
    """What one line asks for. Raises BadInput, naming a field and never a value."""
    from shared.usecases.enqueue import Enqueue

    try:
        values = strict_json.loads(line, max_bytes=MAX_LINE_BYTES)
    except strict_json.NotStrict as exc:
        raise BadInput("line", str(exc)) from None
    if not isinstance(values, dict):
        raise BadInput("line", "is not an object")
    # A field's name is not repeated: it could be text that came to stand in the wrong place.
    if not set(values) <= set(FIELDS):
        raise BadInput("line", f"has a field that is none of {', '.join(FIELDS)}")
    for name in FIELDS[:4]:
        if name not in values:
            raise BadInput(name, "is missing")
    key, priority = values["key"], values.get("priority", DEFAULT_PRIORITY)
    if not isinstance(key, str | list):
        raise BadInput("key", "must be text, or a list of texts")
    if type(priority) is not int:
        raise BadInput("priority", "must be a whole number")
    at = values.get("not_before")
    return Enqueue(
        lane=values["lane"],
        task=values["task"],
        tenant=values["tenant"],
        key=key,
        payload=values.get("payload", {}),
        not_before=None if at is None else moment_of("not_before", at),
        priority=priority,
        facts=values.get("facts"),
    )


@contextmanager
def _opened(name: str) -> Iterator[BinaryIO]:
    if name == "-":
        yield sys.stdin.buffer
        return
    with Path(name).open("rb") as stream:
        yield stream
