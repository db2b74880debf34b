"""`penstock local`: what it asks of the local stack, and how commands find the stack that runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from ops.cli.stage import chosen
from ops.local import stack
from ops.local.errors import StartFailed
from ops.local.judge import Closing
from ops.local.logs import LogLine
from ops.local.state import StackState, home

STARTED = datetime.now(UTC).isoformat(timespec="seconds")


def a_stack(name: str = "default") -> StackState:
    """A running local stack."""
    return StackState(
        name=name,
        endpoint=f"http://127.0.0.1:{4000 + len(name)}",
        vendor_url="http://127.0.0.1:5000",
        emulator_pid=1,
        vendor_pid=2,
        region="us-east-1",
        account="000000000000",
        stage="local",
        access_key=f"KEY-{name}",
        stacks=("Penstock-local-State",),
        started_at=STARTED,
    )


@dataclass
class Stacks:
    """Local stacks that only seem to run."""

    running: dict[str, StackState] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def up(self, *, name: str, progress: Callable[[str], None], **asked: Any) -> StackState:
        self.asked.append({"name": name, **asked})
        progress("emulator on …")
        self.add(name)
        return self.running[name]

    def down(self, *, name: str) -> bool:
        return self.running.pop(name, None) is not None

    def status(self, *, name: str = "default") -> StackState | None:
        return self.running.get(name)

    def logs(self, name: str, function: str, since: datetime | None = None) -> Iterator[LogLine]:
        self.asked.append({"name": name, "function": function, "since": since})
        yield LogLine(function=function, at=datetime.now(UTC), text=f"hello from {function}\n")

    def add(self, name: str) -> None:
        (home() / name).mkdir(parents=True, exist_ok=True)
        self.running[name] = a_stack(name)


@pytest.fixture
def stacks(monkeypatch: pytest.MonkeyPatch) -> Stacks:
    """No process is started here."""
    fake = Stacks()
    for name in ("up", "down", "status", "logs"):
        monkeypatch.setattr(stack, name, getattr(fake, name))
    known = ["penstock-local-stream", "penstock-local-support-worker"]
    monkeypatch.setattr("ops.local.logs.functions", lambda _: known)
    return fake


def test_up_passes_on_what_was_asked(penstock: Any, stacks: Stacks) -> None:
    """Name and ports reach the stack; progress goes beside the answer."""
    said = penstock("local", "up", "--name", "two", "--port", "4600", "--vendor-port", "4601")
    assert stacks.asked == [{"name": "two", "port": 4600, "vendor_port": 4601}]
    assert "emulator on" in said.err
    assert "http://127.0.0.1" in said.out
    document = penstock("local", "up", "--json")
    assert document.err == ""
    assert document.document["environment"]["AWS_ACCESS_KEY_ID"] == "KEY-default"


def test_up_that_fails_says_why(penstock: Any, stacks: Stacks, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The stack's own words, its log's tail included, and exit code 1."""

    def fails(**_: Any) -> None:
        raise StartFailed("the emulator", "ended before it was ready", tmp_path / "emulator.log")

    monkeypatch.setattr(stack, "up", fails)
    assert "the emulator ended before it was ready" in penstock("local", "up", code=1).err
    assert penstock("local", "up", "--json", code=1).document["error"]["code"] == "local_stack"


@pytest.mark.parametrize("port", ["0", "70000", "http"])
def test_ports_are_ports(penstock: Any, stacks: Stacks, port: str) -> None:
    """A port out of range is a usage error; nothing is started."""
    penstock("local", "up", "--port", port, code=2)
    assert stacks.asked == []


def test_bad_name_is_refused(penstock: Any) -> None:
    """A stack's name becomes a folder: anything else than a plain name is refused."""
    assert "name" in penstock("local", "down", "--name", "../up", code=1).err


def test_down_and_status(penstock: Any, stacks: Stacks) -> None:
    """Status lists what runs and ends with 1 when nothing does; down says whether there was anything to stop."""
    assert "penstock local up" in penstock("local", "status", code=1).err
    assert penstock("local", "status", "--json", code=1).document["error"]["code"] == "not_running"
    assert "no local stack two" in penstock("local", "status", "--name", "two", code=1).err
    stacks.add("default")
    stacks.add("two")
    assert [one["name"] for one in penstock("local", "status", "--json").lines] == ["default", "two"]
    assert [one["name"] for one in penstock("local", "status", "--name", "two", "--json").lines] == ["two"]
    assert "http://127.0.0.1:4007" in penstock("local", "status").out
    assert penstock("local", "down", "--name", "two", "--json").document == {"name": "two", "stopped": True}
    assert "was not running" in penstock("local", "down", "--name", "two").out


def test_env_prints_what_a_shell_reads(penstock: Any, stacks: Stacks) -> None:
    """One export a line; an error when nothing runs."""
    assert "penstock local up" in penstock("local", "env", code=1).err
    stacks.add("default")
    assert "export AWS_ENDPOINT_URL=http://127.0.0.1:4007" in penstock("local", "env").out
    assert penstock("local", "env", "--json").document["PENSTOCK_STAGE"] == "local"


def test_logs(penstock: Any, stacks: Stacks) -> None:
    """Of one function by its short or whole name, or of all; an unknown one is refused with those there are."""
    stacks.add("default")
    for name in ("stream", "penstock-local-stream"):
        assert "hello from penstock-local-stream" in penstock("local", "logs", name).out
    assert len(penstock("local", "logs", "--since", "5m", "--json").lines) == 2
    assert stacks.asked[-1]["since"] is not None
    assert "stream, support-worker" in penstock("local", "logs", "nope", code=1).err
    assert "since" in penstock("local", "logs", "--since", "soon", code=1).err


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (1, 1)])
def test_demo_ends_with_its_verdict(penstock: Any, monkeypatch: pytest.MonkeyPatch, lost: int, code: int) -> None:
    """The closing numbers are the answer; a loss or a duplicate ends with 1. For a program, stdout is JSON alone."""
    asked: list[dict[str, Any]] = []

    def tell(**given: Any) -> Closing:
        asked.append(given)
        given["console"].print("once upon a time")
        return Closing(
            enqueued=3,
            repeated=0,
            completed=3,
            deferred=0,
            retried=0,
            recovered=0,
            vendor_accepts=3,
            duplicates=0,
            lost=lost,
        )

    monkeypatch.setattr("ops.local.demo.run", tell)
    assert penstock("local", "demo", "--json", code=code).document["lost"] == lost
    assert "once upon a time" in penstock("local", "demo", "--keep", "--name", "show", code=code).out
    assert [(one["name"], one["headless"], one["keep"]) for one in asked] == [
        ("demo", True, False),
        ("show", True, True),
    ]


# ---------------------------------------------------------------------------------------- finding the stack
def test_a_running_stack_is_the_default_stage(stacks: Stacks) -> None:
    """Without a stage, a running local stack is meant, and the clients are pointed at it."""
    stacks.add("default")
    environ = {"AWS_PROFILE": "production", "AWS_ACCESS_KEY_ID": "real"}
    assert chosen(None, environ) == "local"
    assert environ["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4007"
    assert environ["AWS_ACCESS_KEY_ID"] == "KEY-default"
    assert "AWS_PROFILE" not in environ


def test_another_stack_is_found_or_named(stacks: Stacks) -> None:
    """The only one that runs is meant, whatever its name; with several, PENSTOCK_LOCAL says which."""
    stacks.add("two")
    environ: dict[str, str] = {}
    chosen("local", environ)
    assert environ["AWS_ACCESS_KEY_ID"] == "KEY-two"
    stacks.add("default")
    environ = {"PENSTOCK_LOCAL": "two"}
    chosen("local", environ)
    assert environ["AWS_ACCESS_KEY_ID"] == "KEY-two"


def test_an_endpoint_of_the_callers_own_wins(stacks: Stacks) -> None:
    """AWS_ENDPOINT_URL is the caller's word: nothing is changed."""
    stacks.add("default")
    environ = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "mine"}
    assert chosen("local", environ) == "local"
    assert environ == {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "mine"}


def test_other_stages_leave_the_environment_alone(stacks: Stacks) -> None:
    """A real stage uses the caller's own settings, also while a local stack runs."""
    stacks.add("default")
    environ = {"AWS_PROFILE": "production", "PENSTOCK_STAGE": "local"}
    assert chosen("prod", environ) == "prod"
    assert environ == {"AWS_PROFILE": "production", "PENSTOCK_STAGE": "local"}
