"""The vendor simulator as a process of its own: its port, its death, its record, its speed."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.waiting import PATIENCE_S, until

ROOT = Path(__file__).parents[4]
Start = Callable[..., tuple["subprocess.Popen[str]", int]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a simulator with some options and wait for its port; all are ended after the test."""
    started: list[subprocess.Popen[str]] = []

    def run(*options: str) -> tuple[subprocess.Popen[str], int]:
        port_file = tmp_path / f"port-{len(started)}"
        command = [sys.executable, "-m", "ops.vendors", "--port-file", str(port_file), *options]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        until(lambda: port_file.exists() or process.poll() is not None, "the simulator to listen")
        assert process.poll() is None, "the simulator ended at once"
        return process, int(port_file.read_text())

    yield run
    for process in started:
        process.kill()
        process.communicate()


def send(port: int, key: str) -> int:
    url = f"http://127.0.0.1:{port}/helpdesk/conversations/c1/replies"
    answer = httpx.post(url, json={"text": "Hello"}, headers={"Idempotency-Key": key}, trust_env=False)
    return answer.status_code


def summary(port: int) -> dict[str, int]:
    answer = httpx.get(f"http://127.0.0.1:{port}/_sim/summary", trust_env=False)
    numbers: dict[str, int] = answer.json()
    return numbers


def test_a_kill_loses_no_accept(start: Start, tmp_path: Path) -> None:
    """Killed and started again on its file, it still knows, finds and dedupes what it accepted."""
    file = ("--record-file", str(tmp_path / "record.jsonl"))
    process, port = start(*file)
    assert [send(port, key) for key in ("k1", "k2")] == [201, 201]
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, port = start(*file)
    assert summary(port)["accepts"] == 2
    assert send(port, "k1") == 200
    assert summary(port)["duplicates"] == 0


def test_it_says_where_it_is_and_stops_when_told(start: Start) -> None:
    """It prints its address as one line of JSON, listens on loopback, and ends with 0 on SIGTERM."""
    process, port = start("--config", '{"helpdesk": {"outage": true}}')
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    assert said == {"url": f"http://127.0.0.1:{port}", "port": port, "pid": process.pid}
    assert send(port, "k1") == 503
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=PATIENCE_S) == 0


def test_two_processes_run_at_once(start: Start) -> None:
    """Two copies have two ports and two records."""
    (_, one), (_, two) = start(), start()
    assert send(one, "k1") == 201
    assert (summary(one)["accepts"], summary(two)["accepts"]) == (1, 0)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--config", "{"], "not valid JSON"),
        (["--config", '{"fax": {}}'], "no vendor 'fax'"),
        (["--config", '{"helpdesk": {"nope": 1}}'], "no field 'nope'"),
        (["--config", '{"helpdesk": 1}'], "must be a JSON object"),
        (["--port", "99999"], "port must be"),
        (["--record-file", os.devnull + "/x"], "Not a directory"),
    ],
)
def test_it_refuses_to_start_with_a_sentence(options: list[str], word: str) -> None:
    """What cannot be started is a sentence and exit code 2, without a trace."""
    command = [sys.executable, "-m", "ops.vendors", *options]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S)
    assert ended.returncode == 2
    assert word in ended.stderr
    assert "Traceback" not in ended.stderr


def test_throughput_is_printed(start: Start) -> None:
    """Eight clients on kept-alive connections are all served; the rate is printed, not asserted."""
    _, port = start()
    threads, each, failures = 8, 200, []

    def work(name: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        for number in range(each):
            headers = {"Idempotency-Key": f"{name}-{number}", "Content-Type": "application/json"}
            path = f"/helpdesk/conversations/c{name}/replies"
            connection.request("POST", path, body=b'{"text":"Hello"}', headers=headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 201:
                failures.append(answer.status)
        connection.close()

    workers = [threading.Thread(target=work, args=(name,)) for name in range(threads)]
    started = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    took_s = time.monotonic() - started
    print(f"vendor simulator: {threads * each / took_s:.0f} requests/s with {threads} client threads")
    assert failures == []
    assert summary(port)["accepts"] == threads * each
