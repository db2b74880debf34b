"""Deploys the real CDK app to the emulator with the real CDK command line."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ops.local import processes
from ops.local.clients import Clients
from ops.local.emulator import plain_environment
from ops.local.errors import DeployFailed, ToolMissing
from ops.local.state import ROOT

CDK = "PENSTOCK_CDK"
"""Variable that names the CDK command line to use."""
STAGE = "local"
DEPLOY_PATIENCE_S = 300.0
_FOR_THE_APP = ("PENSTOCK_BUILD_DIR",)
_TOOLKIT = "CDKToolkit"
_BOOTSTRAP_TEMPLATE = "lib/api/bootstrap/bootstrap-template.yaml"


def command_line(app_dir: Path) -> Path:
    """The CDK command line: the variable's, the app's, or the project's."""
    if os.environ.get(CDK):
        places = [Path(os.environ[CDK])]
    else:
        places = [folder / "node_modules" / ".bin" / "cdk" for folder in (app_dir, ROOT)]
    for place in places:
        if place.exists():
            return place
    raise ToolMissing("the CDK command line", places[-1], CDK)


def environment(clients: Clients, access_key: str, secret_key: str, folder: Path) -> dict[str, str]:
    """What the command line and the app may see: the emulator and nothing of the caller's AWS account."""
    return plain_environment() | {
        # The app is Python of this very environment.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        # An address by number also makes the SDK address buckets by path: nothing resolves <bucket>.localhost.
        "AWS_ENDPOINT_URL": clients.endpoint,
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": secret_key,
        "AWS_REGION": clients.region,
        "AWS_DEFAULT_REGION": clients.region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_HOME": str(folder / "cdk-home"),  # the command line remembers accounts by access key
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
        # Three seconds of template validation: `make synth` and the infra tests do that for every stage.
        "CDK_VALIDATION": "false",
        "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",  # a list of versions, not a switch
        "NODE_NO_WARNINGS": "1",
        "NODE_COMPILE_CACHE": str(folder.parent / ".node-cache"),  # Node 22 and later
        **{name: os.environ[name] for name in _FOR_THE_APP if name in os.environ},
    }


def bootstrap(clients: Clients, cdk: Path, folder: Path) -> None:
    """Make what `cdk deploy` expects of an account, once.

    The command line's own template is handed to CloudFormation directly: the same stack as `cdk bootstrap`
    makes, without starting Node for it (under one second instead of five).
    """
    template = cdk.resolve().parents[1] / _BOOTSTRAP_TEMPLATE
    if not template.exists():
        raise ToolMissing("the CDK command line's bootstrap template", template, CDK)
    cloudformation = clients.of("cloudformation")
    cloudformation.create_stack(
        StackName=_TOOLKIT,
        TemplateBody=template.read_text(),
        Capabilities=["CAPABILITY_NAMED_IAM"],
        Parameters=[{"ParameterKey": "FileAssetsBucketKmsKeyId", "ParameterValue": "AWS_MANAGED_KEY"}],
    )
    deadline = time.monotonic() + 60
    while (stack := cloudformation.describe_stacks(StackName=_TOOLKIT)["Stacks"][0])["StackStatus"].endswith(
        "_IN_PROGRESS"
    ):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    if stack["StackStatus"] != "CREATE_COMPLETE":
        reason = stack.get("StackStatusReason", "no reason given")
        raise DeployFailed(f"bootstrap ended as {stack['StackStatus']}: {reason}", folder / "emulator.log")


def deploy(
    cdk: Path, app_dir: Path, folder: Path, env: Mapping[str, str], vendor_url: str, progress: Callable[[str], None]
) -> Path:
    """Synthesize and deploy every stack; returns the cloud assembly's folder."""
    assembly = folder / "cdk.out"
    command = [
        str(cdk), "deploy", "--all", "--require-approval", "never", "--ci", "--no-notices",
        "--app", shlex.join([sys.executable, "app.py"]),
        "--output", str(assembly),
        "--method", "direct",  # no change sets: nobody reviews them here
        "--concurrency", "4",
        "--progress", "events",
        "-c", f"stage={STAGE}",
        "-c", f"vendor_url={vendor_url}",
    ]  # fmt: skip

    def show(line: str) -> None:
        if line.startswith("✅"):
            progress(f"deployed {line.removeprefix('✅').strip()}")

    _run(command, app_dir, folder, env, show)
    return assembly


def _run(command: list[str], cwd: Path, folder: Path, env: Mapping[str, str], show: Callable[[str], None]) -> None:
    """Run the command line, its output in deploy.log, and stop it and its children when it takes too long."""
    log = folder / "deploy.log"
    with log.open("w", encoding="utf-8") as out:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        late = threading.Event()

        def give_up() -> None:
            late.set()
            processes.end_group(child.pid)

        timer = threading.Timer(DEPLOY_PATIENCE_S, give_up)
        timer.start()
        try:
            for line in child.stdout or ():
                out.write(line)
                out.flush()
                show(line.rstrip())
            child.wait()
        except BaseException:
            processes.end_group(child.pid)  # its session is its own: an interrupt at the keyboard does not reach it
            raise
        finally:
            timer.cancel()
            child.communicate()
    if late.is_set():
        raise DeployFailed(f"cdk deploy was stopped after {DEPLOY_PATIENCE_S:.0f} s", log)
    if child.returncode != 0:
        raise DeployFailed(f"cdk deploy ended with code {child.returncode}", log)
