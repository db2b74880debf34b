"""The pure vendor: given configuration, seed, time and request, the verdict. No sockets, no real time."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from ops.vendors.accounts import Accounts
from ops.vendors.helpdesk import action_request, lookup_request
from ops.vendors.record import Ending, VerdictKind
from ops.vendors.request import VendorRequest
from ops.vendors.verdict import Verdict

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def reply(key: str = "k1", *, conversation: str = "c1", text: str = "Hello") -> VendorRequest:
    return action_request(conversation=conversation, text=text, key=key)


def later(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def helpdesk(**changes: object) -> Accounts:
    return Accounts(seed=7, configs={"helpdesk": changes})


# --------------------------------------------------------------------------------------- deduplication
def test_dedupe_on_gives_one_accept() -> None:
    """With deduplication, the same key twice is one accept, and the repeat hears the first id."""
    accounts = helpdesk(dedupe_by_key=True)
    first, second = accounts.handle(reply(), NOW), accounts.handle(reply(), later(1))
    assert (first.status, second.status) == (201, 200)
    assert first.body["id"] == second.body["id"]
    assert [entry.verdict for entry in accounts.record.requests()] == [
        VerdictKind.ACCEPTED,
        VerdictKind.DEDUPED,
    ]
    assert accounts.record.duplicates() == 0


def test_dedupe_off_gives_two_accepts() -> None:
    """Without deduplication, the same key twice takes place twice and is judged a duplicate."""
    accounts = helpdesk(dedupe_by_key=False)
    first, second = accounts.handle(reply(), NOW), accounts.handle(reply(), later(1))
    assert first.body["id"] != second.body["id"]
    assert len(accounts.record.accepts) == 2
    assert accounts.record.duplicates() == 1


def test_dedupe_ends_with_its_window() -> None:
    """A repeat inside the window is deduped; at its end it takes place again and is a duplicate."""
    accounts = helpdesk(dedupe_window_s=60)
    kinds = [accounts.handle(reply(), later(at)).kind for at in (0, 59.999, 60)]
    assert kinds == [VerdictKind.ACCEPTED, VerdictKind.DEDUPED, VerdictKind.ACCEPTED]
    assert accounts.record.duplicates() == 1


def test_one_key_may_serve_two_actions() -> None:
    """The same key on a reply and on a tag is two effects, and no duplicate."""
    accounts = helpdesk()
    accounts.handle(reply(), NOW)
    tag = accounts.handle(action_request(conversation="c1", action="tag", text="vip", key="k1"), NOW)
    assert tag.accepted
    assert accounts.record.duplicates() == 0


@pytest.mark.parametrize(("key_reuse", "status"), [("first_id", 200), ("conflict", 409)])
def test_a_key_with_another_text_never_takes_place(key_reuse: str, status: int) -> None:
    """A key that comes again with another text is answered as configured; nothing is sent."""
    accounts = helpdesk(key_reuse=key_reuse)
    accounts.handle(reply(text="one"), NOW)
    assert accounts.handle(reply(text="two"), NOW).status == status
    assert len(accounts.record.accepts) == 1


# -------------------------------------------------------------------------------------------- look-ups
def test_lookup_exact_finds_at_once() -> None:
    """An exact look-up finds an accept at the moment it happened, and nothing else."""
    accounts = helpdesk(lookup="exact")
    sent = accounts.handle(reply(), NOW)
    found = accounts.handle(lookup_request(key="k1"), NOW)
    assert found.body["found"] is True
    assert found.body["id"] == sent.body["id"]
    assert accounts.handle(lookup_request(key="other"), NOW).body == {"found": False}


def test_lookup_eventual_finds_after_its_lag() -> None:
    """An eventual look-up denies an accept until its lag has passed, then finds it."""
    accounts = helpdesk(lookup="eventual", lookup_lag_s=30)
    accounts.handle(reply(), NOW)
    answers = [accounts.handle(lookup_request(key="k1"), later(at)).body["found"] for at in (0, 29.9, 30)]
    assert answers == [False, False, True]


def test_lookup_none_cannot_be_asked() -> None:
    """A vendor without a look-up says so, for the look-up and for the list, and never says absent."""
    accounts = helpdesk(lookup="none")
    accounts.handle(reply(), NOW)
    listing = VendorRequest(method="GET", path="/helpdesk/actions")
    for request in (lookup_request(key="k1"), listing):
        answer = accounts.handle(request, NOW)
        assert answer.status == 501
        assert "found" not in answer.body


def test_the_list_shows_accepts_only() -> None:
    """The list holds what was accepted, in order, and reads on after a sequence number."""
    accounts = helpdesk(script=[{"match": {"nth": 2}, "do": "status:503"}])
    for key in ("k1", "k2", "k3"):
        accounts.handle(reply(key), NOW)
    request = VendorRequest(method="GET", path="/helpdesk/actions", query={"after": "1"})
    actions = accounts.handle(request, NOW).body["actions"]
    assert isinstance(actions, list)
    assert [action["key"] for action in actions] == ["k3"]


def test_faults_by_share_spare_lookups_unless_told() -> None:
    """A vendor that fails every send can still be asked; with faults_on_lookup it cannot."""
    accounts = helpdesk(error_5xx_share=1, error_5xx_accepted=True)
    assert accounts.handle(reply(), NOW).status == 503
    assert accounts.handle(lookup_request(key="k1"), NOW).body["found"] is True
    accounts.configure("helpdesk", faults_on_lookup=True)
    assert accounts.handle(lookup_request(key="k1"), NOW).status == 503


# ---------------------------------------------------------------------------------------------- faults
@pytest.mark.parametrize(
    ("changes", "accepted", "status", "ending"),
    [
        ({"outage": True}, False, 503, Ending.ANSWERED),
        ({"outage": "refuse"}, False, None, Ending.DROPPED),
        ({"drop_before_accept_share": 1}, False, None, Ending.DROPPED),
        ({"drop_after_accept_share": 1}, True, None, Ending.DROPPED),
        ({"error_5xx_share": 1, "error_5xx_status": 502}, False, 502, Ending.ANSWERED),
        ({"error_5xx_share": 1, "error_5xx_accepted": True}, True, 503, Ending.ANSWERED),
        ({"error_429_share": 1}, False, 429, Ending.ANSWERED),
        ({"hang_s": 9}, True, 201, Ending.HUNG),
        ({"hang_s": 9, "hang_before_accept": True}, False, None, Ending.HUNG),
        ({"valid_tokens": ["secret"]}, False, 401, Ending.ANSWERED),
    ],
)
def test_each_fault_accepts_or_not(
    changes: dict[str, object], accepted: bool, status: int | None, ending: Ending
) -> None:
    """Every fault is in the record with what took place and with what the caller heard, apart."""
    accounts = helpdesk(**changes)
    verdict = accounts.handle(reply(), NOW)
    (entry,) = accounts.record.requests()
    assert (verdict.accepted, verdict.status) == (accepted, status)
    assert (entry.accepted, entry.status, entry.ending) == (accepted, status, ending)
    assert len(accounts.record.accepts) == int(accepted)


def test_shares_are_exact_shares() -> None:
    """Each share of faults is that share of all requests, also when several are set."""
    accounts = helpdesk(error_429_share=0.1, error_5xx_share=0.2, drop_after_accept_share=0.3)
    for number in range(4000):
        accounts.handle(reply(f"k{number}"), NOW)
    seen = Counter((e.verdict, e.ending) for e in accounts.record.requests())
    assert seen[VerdictKind.REFUSED_429, Ending.ANSWERED] == pytest.approx(400, abs=90)
    assert seen[VerdictKind.REFUSED_5XX, Ending.ANSWERED] == pytest.approx(800, abs=120)
    assert seen[VerdictKind.ACCEPTED, Ending.DROPPED] == pytest.approx(1200, abs=140)
    assert seen[VerdictKind.ACCEPTED, Ending.ANSWERED] == pytest.approx(1600, abs=150)


def test_latency_and_jitter_are_the_wait() -> None:
    """A request waits the latency and at most the jitter more; the hang comes on top."""
    accounts = helpdesk(latency_s=0.1, latency_jitter_s=0.05)
    waits = [accounts.handle(reply(f"k{number}"), NOW).wait_s for number in range(200)]
    assert min(waits) >= 0.1
    assert max(waits) < 0.15
    assert len(set(waits)) > 150
    accounts.configure("helpdesk", latency_jitter_s=0, hang_s=2)
    assert accounts.handle(reply("last"), NOW).wait_s == pytest.approx(2.1)


def test_the_script_is_consumed_in_order() -> None:
    """A step takes the nth request it matches, once; steps for the same request follow one another."""
    accounts = helpdesk(
        script=[
            {"match": {"path_contains": "/replies", "nth": 3}, "do": "drop_after_accept"},
            {"match": {"key": "k2"}, "do": "status:429"},
            {"match": {"key": "k2"}, "do": "accept_then_status:502"},
            {"match": {"method": "get"}, "do": "hang:5", "times": 2},
        ]
    )
    heard = [accounts.handle(reply(key), NOW).status for key in ("k1", "k2", "k3", "k2", "k2")]
    # k2 comes a second time as the fourth request: accepted, answered 502; then it is a repeat.
    assert heard == [201, 429, None, 502, 200]
    waits = [accounts.handle(lookup_request(key="k1"), NOW).wait_s for _ in range(3)]
    assert waits == [5, 5, 0]
    assert accounts.vendor("helpdesk").config.script == ()


def test_a_scripted_answer_shields_from_chance_and_limits() -> None:
    """The step `answer` serves its request whatever the shares and the limits say."""
    accounts = helpdesk(error_5xx_share=1, requests_per_minute=1, script=[{"match": {"nth": 2}, "do": "answer"}])
    assert [accounts.handle(reply(key), NOW).status for key in ("a", "b", "c")] == [503, 201, 429]


# ------------------------------------------------------------------------------------------------ seed
def _story(seed: int, order: list[int]) -> dict[str, list[tuple[str, int | None, float, str]]]:
    changes = {
        "error_429_share": 0.1,
        "error_5xx_share": 0.1,
        "drop_after_accept_share": 0.1,
        "drop_before_accept_share": 0.1,
        "latency_jitter_s": 0.2,
    }
    accounts = Accounts(seed=seed, configs={"helpdesk": changes})
    heard: dict[str, list[tuple[str, int | None, float, str]]] = {}
    for number in order:
        key = f"k{number}"
        verdict = accounts.handle(reply(key), NOW)
        heard.setdefault(key, []).append((verdict.kind, verdict.status, verdict.wait_s, verdict.vendor_id))
    return heard


def test_a_seed_replays_identically() -> None:
    """The same seed gives the same verdicts, waits and ids; another seed gives others."""
    order = [number % 60 for number in range(180)]
    assert _story(7, order) == _story(7, order)
    assert _story(7, order) != _story(8, order)


def test_a_replay_does_not_depend_on_the_order() -> None:
    """Requests that race are met by the same faults in whatever order they come in."""
    order = [number % 60 for number in range(180)]
    assert _story(7, order) == _story(7, list(reversed(order)))


def test_a_reset_replays_from_the_start() -> None:
    """After a reset the same requests meet the same faults, and the switches are back."""
    accounts = helpdesk(error_5xx_share=0.5)

    def play() -> list[Verdict]:
        return [accounts.handle(reply(f"k{number}"), NOW) for number in range(30)]

    first = play()
    accounts.configure("helpdesk", outage=True)
    accounts.reset()
    assert play() == first


# --------------------------------------------------------------------------------------------- threads
def test_racing_threads_give_one_accept_per_key() -> None:
    """Eight threads with the same keys: one accept a key, dense numbers, nothing missing."""
    accounts = helpdesk()

    def send() -> None:
        for number in range(100):
            accounts.handle(reply(f"k{number}"), NOW)

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    summary = accounts.record.summary()
    assert (summary.requests, summary.accepts, summary.duplicates) == (800, 100, 0)
    assert [entry.seq for entry in accounts.record.requests()] == list(range(1, 801))
