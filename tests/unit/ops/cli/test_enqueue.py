"""`penstock enqueue`: one cause is one job; a bad line is named and harms no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ops.cli.enqueue import MAX_LINE_BYTES
from ops.cli.stage import Stage
from shared.core.job import job_id_of

ONE = ("enqueue", "support", "reply", "--tenant", "acme", "--key", "evt-1")


def line(**values: Any) -> str:
    """One good line, changed by `values`; None removes a field."""
    whole = {"lane": "support", "task": "reply", "tenant": "acme", "key": "evt-1", **values}
    return json.dumps({name: value for name, value in whole.items() if value is not None})


def test_creates_a_job_once(penstock: Any, deployed: Stage) -> None:
    """The same cause twice is one job: created, then existing."""
    job_id = job_id_of("support", "acme", "reply", "evt-1")
    assert f"created {job_id}" in penstock(*ONE).out
    assert f"existing {job_id}" in penstock(*ONE).out
    assert penstock(*ONE, "--json").document == {"job_id": job_id, "created": False}


def test_key_parts_time_and_priority(penstock: Any, deployed: Stage) -> None:
    """Several --key are the parts of one key; a time and a priority arrive on the row."""
    more = ("--key", "part-2", "--not-before", "2099-01-01T00:00Z", "--priority", "0", "--json")
    job_id = penstock(*ONE, *more).document["job_id"]
    job = deployed.jobs.get(job_id)
    assert job is not None
    assert job_id == job_id_of("support", "acme", "reply", ["evt-1", "part-2"])
    assert (job.priority, job.not_before_at is not None, job.waits) == (0, True, True)


def test_payload_from_a_file_and_from_input(penstock: Any, deployed: Stage, tmp_path: Path) -> None:
    """`@file` and `@-` give the same payload, hence the same job."""
    (tmp_path / "event.json").write_text('{"text": "hello"}')
    first = penstock(*ONE, "--payload", f"@{tmp_path / 'event.json'}", "--json").document
    again = penstock(*ONE, "--payload", "@-", "--json", stdin='{"text": "hello"}').document
    assert (first["created"], again) == (True, {**first, "created": False})
    job = deployed.jobs.get(first["job_id"])
    assert job is not None
    assert job.payload_ref is not None
    assert deployed.content.get(job.payload_ref) == b'{"text":"hello"}'


def test_a_document_is_stored_and_its_reference_enqueued(penstock: Any, deployed: Stage, tmp_path: Path) -> None:
    """The same file again is the same job; another file under the same key is a conflict and replaces nothing."""
    file = tmp_path / "report.txt"
    file.write_text("Ada met Bob.")
    asked = (*ONE, "--document", str(file), "--json")
    first, again = penstock(*asked).document, penstock(*asked).document
    assert (first["created"], again) == (True, {**first, "created": False})
    job = deployed.jobs.get(first["job_id"])
    assert job is not None
    assert job.payload_ref is not None
    ref = json.loads(deployed.content.get(job.payload_ref) or b"")["document"]
    assert ref.startswith("document/acme/")
    assert deployed.content.get(ref) == b"Ada met Bob."
    file.write_text("Eve met Bob.")
    assert penstock(*asked, code=1).document["error"]["code"] == "enqueue_conflict"
    assert deployed.content.get(ref) == b"Ada met Bob."


@pytest.mark.parametrize(("payload", "code"), [(("--payload", '{"a": 1}'), 2), ((), 1)], ids=["two", "none"])
def test_a_document_that_cannot_be_taken_is_a_mistake(penstock: Any, deployed: Stage, payload: Any, code: int) -> None:
    """Beside a payload, or not there: nothing is enqueued."""
    penstock(*ONE, *payload, "--document", "nowhere.txt", code=code)
    assert deployed.jobs.get(job_id_of("support", "acme", "reply", "evt-1")) is None


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("enqueue", "nolane", "reply", "-t", "a", "-k", "1"), "lane"),
        (("enqueue", "support", "nope", "-t", "a", "-k", "1"), "task"),
        (("enqueue", "support", "reply", "-t", "a b", "-k", "1"), "tenant"),
        (("enqueue", "support", "reply", "-t", "a" * 65, "-k", "1"), "tenant"),
        (("enqueue", "support", "reply", "-t", "a", "-k", ""), "key"),
        ((*ONE, "--priority", "7"), "priority"),
        ((*ONE, "--not-before", "2026-01-01T00:00:00"), "not_before"),
        ((*ONE, "--payload", "{"), "payload"),
        ((*ONE, "--payload", "[1]"), "payload"),
        ((*ONE, "--payload", '{"a": 1, "a": 2}'), "payload"),
        ((*ONE, "--payload", '{"a": NaN}'), "payload"),
        ((*ONE, "--payload", '{"a": ' + "[" * 40 + "]" * 40 + "}"), "payload"),
    ],
    ids=lambda value: value[-1][:20] if isinstance(value, tuple) else value,
)
def test_bad_input_is_named(penstock: Any, deployed: Stage, arguments: tuple[str, ...], field: str) -> None:
    """What cannot be used is named by its field; nothing is written."""
    assert penstock(*arguments, "--json", code=1).document["error"]["field"] == field
    assert penstock(*arguments, code=1).err.startswith(f"{field}: ")
    assert list(deployed.jobs.scan()) == []


def test_same_cause_with_other_text_is_refused(penstock: Any, deployed: Stage) -> None:
    """Another payload under a known key is a conflict: the first job stands."""
    penstock(*ONE, "--payload", '{"text": "one"}')
    assert (
        penstock(*ONE, "--payload", '{"text": "two"}', "--json", code=1).document["error"]["code"] == "enqueue_conflict"
    )


@pytest.mark.parametrize("arguments", [("enqueue",), ONE[:3], (*ONE, "--file", "x.jsonl")])
def test_one_job_or_a_file(penstock: Any, arguments: tuple[str, ...]) -> None:
    """A lane, task, tenant and key, or a file: anything between is a usage error."""
    penstock(*arguments, code=2)


def test_file_that_is_missing(penstock: Any, deployed: Stage) -> None:
    """A file that is not there is named."""
    assert "nowhere.jsonl" in penstock("enqueue", "--file", "nowhere.jsonl", code=1).err


BAD_LINES = [
    ('{"lane": "support", "lane": "mail"}', "line", "has the same field twice"),
    (line(payload="x").replace('"x"', "NaN"), "line", "holds NaN or Infinity"),
    (line(payload="x").replace('"x"', "[" * 40 + "]" * 40), "line", "is nested deeper than 32 levels"),
    ("not json", "line", "is not valid JSON"),
    ("[1]", "line", "is not an object"),
    (line(surprise=1), "line", "has a field that is none of"),
    (line(tenant=None), "tenant", "is missing"),
    (line(key=7), "key", "must be text"),
    (line(key=[]), "key", "is missing"),
    (line(priority="1"), "priority", "must be a whole number"),
    (line(priority=True), "priority", "must be a whole number"),
    (line(not_before="soon"), "not_before", "is not an ISO 8601 time"),
    (line(not_before=7), "not_before", "must be a time"),
    (line(payload=[1]), "payload", "must be an object"),
    (line(lane="nope"), "lane", "is not configured"),
    (line(lane=["support"]), "lane", "is not configured"),
    (line(task="nope"), "task", "is not one of lane"),
    ('"' + "x" * MAX_LINE_BYTES + '"', "line", "has over"),
]


def test_a_file_of_good_and_bad_lines(penstock: Any, deployed: Stage, tmp_path: Path) -> None:
    """Bad lines are reported by number and reason, the rest is enqueued, and the end is 1."""
    good = [line(key=f"evt-{number}") for number in range(1, 4)]
    lines = [good[0], "", *(text for text, _, _ in BAD_LINES), *good[1:], good[0]]
    (tmp_path / "jobs.jsonl").write_text("\n".join(lines))

    said = penstock("enqueue", "--file", str(tmp_path / "jobs.jsonl"), "--json", code=1).lines

    refused = {one["line"]: one["error"] for one in said if "error" in one}
    assert list(refused) == list(range(3, 3 + len(BAD_LINES)))
    for (_, field, problem), error in zip(BAD_LINES, refused.values(), strict=True):
        assert error["field"] == field
        assert error["problem"].startswith(problem) or problem in error["problem"]
    assert said[-1] == {
        "summary": {"lines": len(BAD_LINES) + 4, "created": 3, "existing": 1, "refused": len(BAD_LINES)}
    }
    assert len(list(deployed.jobs.scan())) == 3


def test_a_file_for_people(penstock: Any, deployed: Stage) -> None:
    """From standard input, for people: refused lines in a table, the numbers last."""
    said = penstock("enqueue", "--file", "-", stdin=f"{line()}\nnot json\n", code=1)
    assert "is not valid JSON" in said.out
    assert "2 lines: 1 created, 0 existing, 1 refused" in said.out
    assert "1 lines: 0 created, 1 existing, 0 refused" in penstock("enqueue", "-f", "-", stdin=line()).out
