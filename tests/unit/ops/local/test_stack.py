"""Up, down and status, with stand-ins for the two tools that are slow: the emulator and the CDK command line."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from ops.local import processes, stack, state
from ops.local.errors import DeployFailed, LocalStackError, StartFailed, ToolMissing
from tests.waiting import until

EMULATOR = """
import http.server, pathlib, subprocess, sys

said = dict(zip(sys.argv[3::2], sys.argv[4::2]))
if pathlib.Path(sys.argv[0]).with_name("broken").exists():
    sys.exit("the emulator is broken today")
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])  # a function


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(b"{}")

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if self.headers["x-amz-target"]:
            self.reply(b'{"SecretList": []}')
            return
        row = "<StackName>CDKToolkit</StackName><StackStatus>CREATE_COMPLETE</StackStatus>"
        created = "<CreateStackResult><StackId>x</StackId></CreateStackResult>"
        described = f"<DescribeStacksResult><Stacks><member>{row}</member></Stacks></DescribeStacksResult>"
        self.reply(f"<R>{created}{described}</R>".encode())

    def reply(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(said["--port"])), Answer)
pathlib.Path(said["--port-file"]).write_text(str(server.server_port))
server.serve_forever()
"""

CDK = """
import json, os, pathlib, sys

home = pathlib.Path(__file__).parent
with (home / "runs.jsonl").open("a") as out:
    out.write(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd()}) + "\\n")
for number in range(100):
    print("line", number)
if (home / "broken").exists():
    sys.exit("the stack did not want to")
print("\\u2705  State (penstock-local-state)")
out = pathlib.Path(sys.argv[sys.argv.index("--output") + 1])
out.mkdir(exist_ok=True)
(out / "manifest.json").write_text(json.dumps({"artifacts": {}}))
"""


class Tools:
    """The stand-ins, and what they were asked."""

    def __init__(self, place: Path) -> None:
        self.emulator = self._script(place / "emulator" / "python", EMULATOR)
        self.cdk = self._script(place / "aws-cdk" / "bin" / "cdk", CDK)
        bootstrap = place / "aws-cdk" / "lib" / "api" / "bootstrap" / "bootstrap-template.yaml"
        bootstrap.parent.mkdir(parents=True)
        bootstrap.write_text("Resources: {}\n")
        self.app = place / "app"
        self.app.mkdir()
        (self.app / "app.py").write_text("")

    @staticmethod
    def _script(place: Path, code: str) -> Path:
        place.parent.mkdir(parents=True)
        place.write_text(f"#!{sys.executable}\n{dedent(code)}")
        place.chmod(0o755)
        return place

    def break_(self, tool: Path) -> None:
        (tool.parent / "broken").touch()

    @property
    def deploys(self) -> list[dict[str, object]]:
        runs = self.cdk.parent / "runs.jsonl"
        return [json.loads(line) for line in runs.read_text().splitlines()] if runs.exists() else []


@pytest.fixture
def tools(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Tools]:
    made = Tools(tmp_path)
    monkeypatch.setenv("PENSTOCK_EMULATOR_PYTHON", str(made.emulator))
    monkeypatch.setenv("PENSTOCK_CDK", str(made.cdk))
    yield made
    for name in state.names():
        stack.down(name=name)


def test_up_starts_everything_and_says_so(tools: Tools, home: Path) -> None:
    """Emulator, vendors and app are up when `up` returns, and each step was told."""
    told: list[str] = []
    running = stack.up(app_dir=tools.app, progress=told.append)
    assert stack.status() == running
    assert running.endpoint.startswith("http://127.0.0.1:")
    assert running.vendor_url.startswith("http://127.0.0.1:")
    assert [line.split(" (")[0].split(" on ")[0] for line in told] == [
        "emulator",
        "vendor simulator",
        "deployed State",
        "synthesized and deployed",
        "deployed equals template, 0 properties the emulator had left out said again",
        f"ready in {told[-1].split()[2]} s",
    ]
    asked = tools.deploys[0]["argv"]
    assert isinstance(asked, list)
    assert asked[:2] == ["deploy", "--all"]
    assert {"stage=local", f"vendor_url={running.vendor_url}"} <= set(asked)


def test_the_command_line_cannot_reach_a_real_account(
    tools: Tools, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever AWS settings the caller has, the deploy sees the emulator and made-up keys only."""
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAREAL")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "real")
    monkeypatch.setenv("AWS_ENDPOINT_URL_CLOUDFORMATION", "https://cloudformation.eu-central-1.amazonaws.com")
    monkeypatch.setenv("HTTPS_PROXY", "http://192.0.2.1:1")
    running = stack.up(app_dir=tools.app)
    seen = tools.deploys[0]["env"]
    assert isinstance(seen, dict)
    assert {name: value for name, value in seen.items() if name.startswith("AWS_") or "PROXY" in name} == {
        "AWS_ENDPOINT_URL": running.endpoint,
        "AWS_ACCESS_KEY_ID": running.access_key,
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_REGION": running.region,
        "AWS_DEFAULT_REGION": running.region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def test_up_again_does_nothing_until_the_app_changes(tools: Tools, home: Path) -> None:
    """A running stack is returned as it is; a changed app is deployed to the same emulator."""
    first = stack.up(app_dir=tools.app)
    assert stack.up(app_dir=tools.app) == first
    assert len(tools.deploys) == 1
    (tools.app / "app.py").write_text("# changed")
    again = stack.up(app_dir=tools.app)
    assert (again.endpoint, again.emulator_pid) == (first.endpoint, first.emulator_pid)
    assert len(tools.deploys) == 2


def test_a_failed_second_deploy_is_tried_again(tools: Tools, home: Path) -> None:
    """A failure leaves the stack running and does not count as deployed."""
    running = stack.up(app_dir=tools.app)
    (tools.app / "app.py").write_text("# changed")
    tools.break_(tools.cdk)
    for _ in range(2):
        with pytest.raises(DeployFailed):
            stack.up(app_dir=tools.app)
    assert stack.status() == running
    assert len(tools.deploys) == 3


def test_a_failed_deploy_shows_why_and_leaves_nothing(tools: Tools, home: Path) -> None:
    """The last lines and the log's place are in the error, and nothing runs on."""
    tools.break_(tools.cdk)
    with pytest.raises(DeployFailed) as failure:
        stack.up(app_dir=tools.app)
    text = str(failure.value)
    assert "the stack did not want to" in text
    assert "line 99" in text
    assert "line 10\n" not in text
    assert str(home / "default" / "deploy.log") in text
    assert stack.status() is None
    assert state.read("default") is None
    assert not (home / "default" / "tmp").exists()


def test_an_emulator_that_does_not_start_shows_why(tools: Tools, home: Path) -> None:
    """Its own last words are in the error."""
    tools.break_(tools.emulator)
    with pytest.raises(StartFailed, match="the emulator is broken today"):
        stack.up(app_dir=tools.app)
    assert stack.status() is None


def test_a_missing_tool_is_named_before_anything_starts(
    tools: Tools, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the place and the way out."""
    monkeypatch.setenv("PENSTOCK_CDK", str(home / "nowhere"))
    with pytest.raises(ToolMissing, match="make setup"):
        stack.up(app_dir=tools.app)
    monkeypatch.setenv("PENSTOCK_CDK", str(tools.cdk))
    monkeypatch.setenv("PENSTOCK_EMULATOR_PYTHON", str(home / "nowhere"))
    with pytest.raises(ToolMissing, match="make setup"):
        stack.up(app_dir=tools.app)
    assert state.read("default") is None


def test_down_stops_every_process(tools: Tools, home: Path) -> None:
    """Functions the emulator started end with it; logs stay to be read."""
    running = stack.up(app_dir=tools.app)
    until(lambda: len(processes.group(running.emulator_pid)) == 2, "the emulator's child")
    assert stack.down()
    assert processes.group(running.emulator_pid) == []
    assert processes.group(running.vendor_pid) == []
    assert stack.status() is None
    assert not stack.down()
    assert (home / "default" / "deploy.log").exists()


def test_status_cleans_up_after_a_crash(tools: Tools, home: Path) -> None:
    """An emulator that died is not running, and what it left behind is gone."""
    running = stack.up(app_dir=tools.app)
    os.kill(running.emulator_pid, signal.SIGKILL)
    until(lambda: stack.status() is None, "the stack to be gone")
    assert processes.group(running.emulator_pid) == []
    assert processes.group(running.vendor_pid) == []
    assert state.read("default") is None


def test_up_after_a_crash_starts_afresh(tools: Tools, home: Path) -> None:
    """A crash needs no cleaning by hand."""
    running = stack.up(app_dir=tools.app)
    os.kill(running.vendor_pid, signal.SIGKILL)
    until(lambda: stack.status() is None, "the stack to be gone")
    again = stack.up(app_dir=tools.app)
    assert again.emulator_pid != running.emulator_pid
    assert stack.status() == again


def test_two_stacks_run_side_by_side(tools: Tools, home: Path) -> None:
    """Another name is another stack, on other ports; stopping one leaves the other."""
    first = stack.up(name="one", app_dir=tools.app)
    second = stack.up(name="two", app_dir=tools.app)
    assert len({first.endpoint, first.vendor_url, second.endpoint, second.vendor_url}) == 4
    assert first.access_key != second.access_key
    stack.down(name="one")
    assert stack.status(name="one") is None
    assert stack.status(name="two") == second


def test_a_given_port_is_kept_or_refused(tools: Tools, home: Path) -> None:
    """A port that is asked for is used; a running stack is not moved in silence."""
    running = stack.up(app_dir=tools.app)
    port = int(running.endpoint.rpartition(":")[2])
    assert stack.up(app_dir=tools.app, port=port) == running
    with pytest.raises(LocalStackError, match="already runs"):
        stack.up(app_dir=tools.app, port=port + 1)
    stack.down()
    assert stack.up(app_dir=tools.app, port=port).endpoint == f"http://127.0.0.1:{port}"


def test_the_environment_leads_to_the_stack(tools: Tools, home: Path) -> None:
    """Everything boto3 and the commands need is there."""
    running = stack.up(app_dir=tools.app)
    told = stack.environment(running)
    assert told["AWS_ENDPOINT_URL"] == running.endpoint
    assert told["AWS_ACCESS_KEY_ID"] == running.access_key
    assert told["PENSTOCK_STAGE"] == "local"
    assert told["AWS_DEFAULT_REGION"] == running.region


def test_a_stack_that_is_not_running_has_no_logs(home: Path) -> None:
    """Asking for logs without a stack is an error with a sentence."""
    with pytest.raises(LocalStackError, match="not running"):
        stack.logs("default", "f")


def test_calls_are_read_while_they_are_written(home: Path) -> None:
    """A line that is not whole yet is left for the next look."""
    place = home / "default"
    place.mkdir(parents=True)
    assert stack.calls() == {}
    line = json.dumps({"function": "f", "action": "sqs:SendMessage", "resource": "q"})
    (place / "calls.jsonl").write_text(f"{line}\n{line[:20]}")
    assert stack.calls() == {"f": {("sqs:SendMessage", "q")}}
