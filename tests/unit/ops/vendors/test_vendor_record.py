"""The record: the judge of duplicates, with and without a file under it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ops.vendors.accounts import Accounts
from ops.vendors.helpdesk import action_request
from ops.vendors.journal import Journal, JournalError
from ops.vendors.record import Ending, Entry, Record, VerdictKind

NOW = datetime(2026, 1, 1, 12, 30, 0, 250_000, tzinfo=UTC)


def an_entry(**changes: object) -> Entry:
    values: dict[str, object] = {
        "at": NOW,
        "vendor": "helpdesk",
        "method": "POST",
        "path": "/helpdesk/conversations/c1/replies",
        "verdict": VerdictKind.ACCEPTED,
        "ending": Ending.ANSWERED,
        "key": "k1",
        "action": "reply",
        "conversation": "c1",
        "text_sha256": "aa",
    }
    return Entry(**{**values, **changes})  # type: ignore[arg-type]


def test_duplicates_are_accepts_minus_distinct_effects() -> None:
    """Three accepts of one key and one of another are two duplicates, with the evidence beside them."""
    record = Record()
    for key in ("k1", "k2", "k1", "k1"):
        record.append(an_entry(key=key))
    summary = record.summary()
    assert (summary.accepts, summary.distinct_keys, summary.duplicates) == (4, 2, 2)
    assert [[entry.seq for entry in group] for group in record.duplicate_groups()] == [[1, 3, 4]]


@pytest.mark.parametrize("verdict", [kind for kind in VerdictKind if kind is not VerdictKind.ACCEPTED])
def test_only_accepts_are_judged(verdict: VerdictKind) -> None:
    """Nothing but an accept can be a duplicate: not a repeat that was deduped, nor one refused."""
    record = Record()
    record.append(an_entry())
    record.append(an_entry(verdict=verdict))
    assert record.duplicates() == 0
    assert len(record.accepts) == 1
    assert len(record.requests()) == 2


def test_without_a_key_the_content_is_judged() -> None:
    """Sends without a key are the same when conversation, action and text are the same."""
    record = Record()
    record.append(an_entry(key=""))
    record.append(an_entry(key="", text_sha256="bb"))
    record.append(an_entry(key="", conversation="c2"))
    assert record.duplicates() == 0
    record.append(an_entry(key=""))
    assert record.duplicates() == 1


def test_the_same_text_under_two_keys_is_pointed_out() -> None:
    """A caller whose key changes with each attempt has no duplicates, but its texts are counted."""
    record = Record()
    record.append(an_entry(key="job-1-attempt-1"))
    record.append(an_entry(key="job-1-attempt-2"))
    summary = record.summary()
    assert (summary.duplicates, summary.repeated_texts) == (0, 1)


def test_requests_are_found_by_vendor_key_and_number() -> None:
    """The record can be read on from a sequence number, by vendor, and by key."""
    record = Record()
    for vendor, key in (("helpdesk", "k1"), ("openai", ""), ("helpdesk", "k2")):
        record.append(an_entry(vendor=vendor, key=key))
    assert [entry.seq for entry in record.requests(vendor="helpdesk")] == [1, 3]
    assert [entry.seq for entry in record.requests(since=1)] == [2, 3]
    assert [entry.seq for entry in record.requests(key="k2")] == [3]


def test_no_text_is_kept() -> None:
    """Neither the text of a send nor the caller's token is anywhere in the record."""
    accounts = Accounts()
    canary, token = "CANARY-a-customer-wrote-this", "CANARY-token"
    for action in ("reply", "tag", "assign"):
        accounts.handle(action_request(conversation="c", action=action, text=canary, token=token), NOW)
    kept = json.dumps([entry.to_json() for entry in accounts.record.requests()])
    assert "CANARY" not in kept
    assert {entry.text_length for entry in accounts.record.accepts} == {len(canary)}


def test_an_entry_survives_json() -> None:
    """An entry written and read back is the same entry."""
    entry = an_entry(seq=3, status=201, reason="share", tokens=5)
    assert Entry.from_json(json.loads(json.dumps(entry.to_json()))) == entry


def test_a_journal_brings_the_record_back(tmp_path: Path) -> None:
    """A record over a file is the same after reopening, and goes on counting."""
    journal = Journal(tmp_path / "record.jsonl")
    record = Record(entries=journal.load(), sink=journal)
    record.append(an_entry())
    record.append(an_entry(key="k2"))
    journal.close()
    journal = Journal(tmp_path / "record.jsonl")
    again = Record(entries=journal.load(), sink=journal)
    assert again.requests() == record.requests()
    assert again.append(an_entry(key="k3")).seq == 3
    again.clear()
    journal.close()
    assert (tmp_path / "record.jsonl").read_bytes() == b""


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    """A line torn by a kill is dropped, and what follows starts on a line of its own."""
    path = tmp_path / "record.jsonl"
    journal = Journal(path)
    Record(sink=journal).append(an_entry())
    journal.close()
    with path.open("ab") as file:
        file.write(b'{"at": "2026-')
    journal = Journal(path)
    record = Record(entries=journal.load(), sink=journal)
    record.append(an_entry(key="k2"))
    assert [entry.key for entry in journal.load()] == ["k1", "k2"]
    journal.close()


@pytest.mark.parametrize("line", [b"nonsense\n", b'{"at": 1}\n', b'{"at": "2026-01-01T00:00:00"}\n', b"[]\n"])
def test_a_strange_line_is_named(tmp_path: Path, line: bytes) -> None:
    """A file that is not a record is refused by line, never read as an empty one."""
    path = tmp_path / "record.jsonl"
    path.write_bytes(line)
    journal = Journal(path)
    with pytest.raises(JournalError, match=r"record\.jsonl, line 1"):
        journal.load()
    journal.close()


def test_one_file_has_one_writer(tmp_path: Path) -> None:
    """Two simulators cannot share a record file: their sequence numbers would collide."""
    first = Journal(tmp_path / "record.jsonl")
    with pytest.raises(JournalError, match="in use"):
        Journal(tmp_path / "record.jsonl")
    first.close()
