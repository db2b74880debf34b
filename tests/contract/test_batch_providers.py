"""What every batch provider does, whoever it is: in memory, the OpenAI Batch API, a plain endpoint of one's own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from shared.core.batch import (
    Answered,
    Declined,
    LineFault,
    Member,
    NotTaken,
    NoWord,
    Over,
    ResultLine,
    Taken,
    UnderWay,
    Unreadable,
    Vanished,
    judge,
)
from shared.core.errors import Unavailable
from shared.core.sensitive import Sensitive
from tests.contract.providers import SECRET, TOKEN, HttpWorld, MemoryWorld, ProviderWorld, a_request
from tests.waiting import PATIENCE_S

KINDS = ["memory", "openai_chat", "openai_responses", "plain"]
TAG = "penstock/local/run-1/001"
MEMBERS = [Member(job_id=f"job-{number}", fence=1) for number in range(1, 5)]
NAMES = [member.custom_id for member in MEMBERS]
REQUESTS = [a_request(name) for name in NAMES]
SOON = PATIENCE_S


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest) -> Iterator[ProviderWorld]:
    made: ProviderWorld = MemoryWorld() if request.param == "memory" else HttpWorld(str(request.param))
    made.behave()
    yield made
    made.close()


def submitted(world: ProviderWorld, tag: str = TAG, requests: list[Any] = REQUESTS) -> str:
    said = world.provider.submit(tag, requests, timeout_s=SOON)
    assert isinstance(said, Taken)
    return said.provider_id


def over(world: ProviderWorld, provider_id: str) -> Over:
    said = world.provider.progress(provider_id, timeout_s=SOON)
    assert isinstance(said, Over)
    return said


def results(world: ProviderWorld, ended: Over) -> list[ResultLine]:
    return list(world.provider.results(ended, timeout_s=SOON))


def test_a_batch_is_found_followed_and_read(world: ProviderWorld) -> None:
    """From the submission to the answers: each request is answered with its own text, and paid for once."""
    world.behave(takes_s=100)
    batch = submitted(world)
    assert world.provider.find(TAG, timeout_s=SOON) == [batch]
    world.forward(50)
    assert world.provider.progress(batch, timeout_s=SOON) == UnderWay("in_progress", done=2, total=4)
    world.forward(50)
    ended = over(world, batch)
    assert ended.status == "completed"
    lines = results(world, ended)
    assert {line.custom_id: line.text for line in lines if isinstance(line, Answered)} == {
        name: Sensitive(f"[rewritten] {SECRET} of {name}") for name in NAMES
    }
    assert len(lines) == 4
    assert all(isinstance(line, Answered) and (line.tokens or 0) > 0 and not line.cut for line in lines)
    assert world.paid() == Counter(NAMES)


@pytest.mark.fault("G1")
def test_a_tag_is_found_among_many(world: ProviderWorld) -> None:
    """More batches than fit on a page of any list; those of one tag are told oldest first, those of none are none."""
    one = [REQUESTS[0]]
    first = submitted(world, "tag-a", one)
    for number in range(120):
        submitted(world, f"other-{number}", one)
    second = submitted(world, "tag-a", one)
    assert world.provider.find("tag-a", timeout_s=SOON) == [first, second]
    assert world.provider.find("tag-", timeout_s=SOON) == []


def test_how_far_back_is_no_reason_to_miss_it(world: ProviderWorld) -> None:
    """Told when the tag was written, a provider finds what came after, by a clock that differs from ours, too."""
    for number in range(120):
        submitted(world, f"old-{number}", [REQUESTS[0]])
    world.forward(86_400)
    written = world.clock.now()  # type: ignore[attr-defined]  # each kind of world has one
    batch = submitted(world)
    assert world.provider.find(TAG, timeout_s=SOON, since=written) == [batch]
    assert world.provider.find(TAG, timeout_s=SOON, since=written + timedelta(minutes=5)) == [batch]
    assert world.provider.find("never", timeout_s=SOON, since=written) == []


@pytest.mark.fault("G1")
def test_a_lost_answer_is_found_by_its_tag(world: ProviderWorld) -> None:
    """Nobody can tell whether it was taken, until the provider is asked: then there is one batch, and it goes on."""
    world.lose("after")
    assert isinstance(world.provider.submit(TAG, REQUESTS, timeout_s=SOON), NoWord)
    found = world.provider.find(TAG, timeout_s=SOON)
    assert isinstance(found, list)
    (batch,) = found
    assert over(world, batch).status == "completed"
    assert (world.tagged(TAG), world.paid()) == (1, Counter(NAMES))


@pytest.mark.fault("G1")
def test_a_submission_that_was_never_taken_is_not_found(world: ProviderWorld) -> None:
    """The same silence, and nothing there: it may be submitted again."""
    world.lose("before")
    assert isinstance(world.provider.submit(TAG, REQUESTS, timeout_s=SOON), NoWord)
    assert world.provider.find(TAG, timeout_s=SOON) == []
    assert world.tagged(TAG) == 0


def test_a_list_may_lag_behind(world: ProviderWorld) -> None:
    """An empty list right after a lost answer is what a list that lags says, too; later it shows the batch."""
    world.behave(listed_after_s=60)
    world.lose("after")
    assert isinstance(world.provider.submit(TAG, REQUESTS, timeout_s=SOON), NoWord)
    assert world.provider.find(TAG, timeout_s=SOON) == []
    world.forward(60)
    found = world.provider.find(TAG, timeout_s=SOON)
    assert isinstance(found, list)
    assert len(found) == 1


@pytest.mark.parametrize(
    ("status", "flags"),
    [(429, (True, False, False)), (401, (False, True, False)), (400, (False, False, True))],
)
def test_a_refusal_says_whose_fault_it_is(world: ProviderWorld, status: int, flags: tuple[bool, bool, bool]) -> None:
    """The limits', the token's or the batch's; nothing was taken."""
    world.refuse(status)
    said = world.provider.submit(TAG, REQUESTS, timeout_s=SOON)
    assert isinstance(said, NotTaken)
    assert (said.limited, said.auth, said.permanent) == flags
    assert (said.retry_after_s is not None) == (status == 429)
    assert world.provider.find(TAG, timeout_s=SOON) == []


@pytest.mark.parametrize(("lines", "size", "count"), [(3, 10**8, 4), (100, 200, 4), (100, 10**8, 0)])
def test_what_is_too_large_is_not_sent(world: ProviderWorld, lines: int, size: int, count: int) -> None:
    """More lines or bytes than a batch may have, or none: refused before anything leaves, for good."""
    world.limit(lines=lines, size=size)
    said = world.provider.submit(TAG, REQUESTS[:count], timeout_s=SOON)
    assert isinstance(said, NotTaken)
    assert said.permanent
    assert world.tagged(TAG) == 0


@pytest.mark.fault("G5")
def test_an_expired_batch_gives_what_it_has(world: ProviderWorld) -> None:
    """The answers that were made are read and are all that was paid for; the rest says that it expired."""
    world.behave(takes_s=100, expires_s=50)
    batch = submitted(world)
    world.forward(60)
    ended = over(world, batch)
    assert ended.status == "expired"
    lines = results(world, ended)
    made = {line.custom_id for line in lines if isinstance(line, Answered)}
    late = {line.custom_id for line in lines if isinstance(line, Declined) and line.expired}
    assert made == set(NAMES[:2])
    assert late == set(NAMES[2:])
    assert world.paid() == Counter(NAMES[:2])


@pytest.mark.fault("G5")
def test_a_cancelled_batch_gives_what_it_has(world: ProviderWorld) -> None:
    """What was done stays done; the rest is never begun. A second word, or one too late, changes nothing."""
    world.behave(takes_s=100)
    batch = submitted(world)
    world.forward(50)
    world.provider.cancel(batch, timeout_s=SOON)
    world.provider.cancel(batch, timeout_s=SOON)
    world.forward(100)
    ended = over(world, batch)
    assert ended.status == "cancelled"
    lines = results(world, ended)
    assert {line.custom_id for line in lines if isinstance(line, Answered)} == set(NAMES[:2])
    assert world.paid() == Counter(NAMES[:2])
    done = submitted(world, "tag-done")
    world.forward(100)
    world.provider.cancel(done, timeout_s=SOON)
    assert over(world, done).status == "completed"


@pytest.mark.parametrize("code", ["token_limit_exceeded", "invalid_request"])
def test_a_batch_that_fails_as_a_whole_says_why(world: ProviderWorld, code: str) -> None:
    """Taken, looked at, failed: there is a code and nothing to read, and nothing was paid for. A limit is no fault of
    the batch's."""
    world.behave(fails_with=code)
    ended = over(world, submitted(world))
    assert (ended.status, ended.reason) == ("failed", code)
    assert ended.limited == (code == "token_limit_exceeded")
    assert results(world, ended) == []
    assert world.paid() == Counter()


def test_more_tokens_than_may_be_enqueued(world: ProviderWorld) -> None:
    """The second batch does not fit beside the first; once the first has ended, the same fits."""
    world.behave(takes_s=100, enqueued_tokens=140)
    first, second = submitted(world, "tag-1"), submitted(world, "tag-2")
    assert isinstance(world.provider.progress(first, timeout_s=SOON), UnderWay)
    assert over(world, second).reason == "token_limit_exceeded"
    world.forward(100)
    third = submitted(world, "tag-3")
    assert isinstance(world.provider.progress(third, timeout_s=SOON), UnderWay)


def test_what_nobody_knows_has_vanished(world: ProviderWorld) -> None:
    """An id that never was, and a batch that is forgotten; to stop either is no error."""
    assert world.provider.progress("batch_never_was", timeout_s=SOON) == Vanished()
    world.provider.cancel("batch_never_was", timeout_s=SOON)
    batch = submitted(world)
    world.vanish(batch)
    assert world.provider.progress(batch, timeout_s=SOON) == Vanished()


def test_a_file_that_is_not_there_cannot_be_read(world: ProviderWorld) -> None:
    """It is no empty file: nobody may take its lines for missing."""
    with pytest.raises(Unavailable):
        results(world, Over(status="completed", output="file-out-nobody/output"))


LINES = {
    "refused": (Declined, None),
    "rate_limited": (Declined, None),
    "server_error": (Declined, None),
    "expired": (Declined, LineFault.EXPIRED),
    "missing": (LineFault.MISSING, LineFault.MISSING),
    "duplicate": (Answered, LineFault.DUPLICATE),
    "conflict": (LineFault.CONFLICT, LineFault.CONFLICT),
    "malformed": (LineFault.MALFORMED, LineFault.MALFORMED),
}


@pytest.mark.fault("G2", "G4")
@pytest.mark.parametrize("fault", LINES)
def test_one_bad_line_is_one_bad_line(world: ProviderWorld, fault: str) -> None:
    """Whatever a line is like, its own job gets that end, is counted so, and the others get theirs."""
    world.behave(lines={NAMES[1]: fault})
    verdict = judge(MEMBERS, results(world, over(world, submitted(world))))
    end, counted = LINES[fault]
    given = verdict.lines[NAMES[1]]
    assert given is end if isinstance(end, LineFault) else isinstance(given, end)  # type: ignore[arg-type]
    assert verdict.faults == ({counted: 1} if counted else {})
    others = [verdict.lines[name] for name in NAMES if name != NAMES[1]]
    assert all(isinstance(line, Answered) for line in others)


@pytest.mark.parametrize(
    ("fault", "permanent", "limited"),
    [("refused", True, False), ("rate_limited", False, True), ("server_error", False, False)],
)
def test_a_refused_line_says_whether_it_may_pass(
    world: ProviderWorld, fault: str, permanent: bool, limited: bool
) -> None:
    """Refused for good, by a limit, or by trouble that passes; none of them was paid for."""
    world.behave(lines={NAMES[0]: fault})
    lines = results(world, over(world, submitted(world)))
    (line,) = [line for line in lines if isinstance(line, Declined)]
    assert (line.custom_id, line.permanent, line.limited, line.expired) == (NAMES[0], permanent, limited, False)
    assert NAMES[0] not in world.paid()


@pytest.mark.fault("G3")
def test_lines_nobody_asked_for_are_told_apart(world: ProviderWorld) -> None:
    """They come with ids of their own, and a line without any says so."""
    world.behave(unknown_lines=2, lines={NAMES[3]: "nameless"})
    lines = results(world, over(world, submitted(world)))
    assert Unreadable() in lines
    verdict = judge(MEMBERS, lines)
    assert verdict.faults == {LineFault.UNKNOWN: 2, LineFault.MALFORMED: 1, LineFault.MISSING: 1}
    assert set(verdict.lines) == set(NAMES)


@pytest.mark.req("R14")
def test_no_text_is_in_anything_that_can_be_written_down(
    world: ProviderWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither in what is said, nor in an error, nor in a log at its loudest, whatever goes wrong."""
    caplog.set_level(logging.DEBUG)
    faults = dict(zip(NAMES, ["malformed", "conflict", "refused", "duplicate"], strict=True))
    world.behave(lines=faults)
    batch = submitted(world)
    said: list[object] = [REQUESTS, batch, over(world, batch), results(world, over(world, batch))]
    world.lose("after")
    said.append(world.provider.submit("tag-2", REQUESTS, timeout_s=SOON))
    world.refuse(400)
    said.append(world.provider.submit("tag-3", REQUESTS, timeout_s=SOON))
    with pytest.raises(Unavailable) as raised:
        results(world, Over(status="completed", output="nobody/output"))
    said += [raised.value, raised.value.__cause__, raised.value.__context__, vars(world.provider)]
    written = "\n".join([*(f"{one!r} {one}" for one in said), caplog.text])
    assert SECRET not in written
    assert TOKEN not in written
