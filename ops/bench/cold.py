"""What a cold start imports and builds, beside two bare SDK clients in the same interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ops.bench import stub_aws, workload
from ops.bench.table import Measured, Row
from shared.contract import env

GROUP = "worker cold import"
ROOT = Path(__file__).resolve().parents[2]
STAGED = ROOT / "build" / "local" / "support"
PROMISED = 1.25

# A lane that spends a vendor account, as the shipped ones do: its purse and its ledger are built, too.
ENVIRON = {
    **stub_aws.ENVIRON,
    **workload.ENVIRON,
    env.SETTINGS: workload.settings_file(
        **{
            **workload.TOLD,
            "lanes": {workload.LANE.name: {**workload.LANE.to_mapping(), "accounts": ["helpdesk"]}},
            "accounts": {"helpdesk": {"vendor": "helpdesk", "requests_per_minute": 600}},
        }
    ),
}
# Processor time: importing waits for nobody once the files are in memory, and a busy machine tells on it least.
CLOCK = "import sys, time; sys.path[:0] = sys.argv[1:]; began = time.process_time()\n"
STOP = "\nprint(time.process_time() - began, file=sys.stderr)"
BARE = 'import boto3; boto3.client("dynamodb"); boto3.client("s3")'
# An empty batch builds everything a first message would find, and calls nobody.
OURS = """
from functions.support.handler import handler
class Context:
    aws_request_id = "cold"
    def get_remaining_time_in_millis(self): return 60000
handler({"Records": []}, Context())
"""
STANDARD = """
import boto3
from ops.bench.standard import StandardWorker
StandardWorker(dynamodb=boto3.client("dynamodb"), s3=boto3.client("s3"), table_name="t", bucket="b", vendor_url="v")
"""


def cold(*, runs: int, staged: Path = STAGED) -> Measured:
    """The best of `runs` of each, in turn."""
    packaged = staged.is_dir()
    path = [str(staged), str(ROOT)] if packaged else [str(ROOT)]
    programs = {"bare": BARE, "ours": OURS, "standard": STANDARD}
    best = dict.fromkeys(programs, float("inf"))
    for _ in range(runs):
        for name, program in programs.items():
            best[name] = min(best[name], seconds(program, path))
    bare = best["bare"]
    source = "the staged package" if packaged else "the source tree (no staged package: `make build TARGET=local`)"
    return Measured(
        rows=(
            Row(
                group=GROUP,
                what="times bare boto3 with two clients",
                ours=best["ours"] / bare,
                standard=best["standard"] / bare,
                unit="×",
                digits=2,
                at_most=PROMISED,
            ),
            Row(
                group=GROUP,
                what="time",
                ours=best["ours"] * 1000,
                standard=best["standard"] * 1000,
                unit="ms",
            ),
        ),
        notes=(
            f"Processor time, best of {runs} fresh interpreters each, in turn, from {source}: the handler is imported "
            "and its wiring built with clients for DynamoDB and S3, Powertools Logger and Metrics included; the "
            f"interpreter's own start is not counted. Bare boto3 with the same two clients: {bare * 1000:.0f} ms.",
        ),
    )


def seconds(program: str, path: list[str]) -> float:
    """How long a program takes in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", CLOCK + program + STOP, *path],
        env={"PATH": os.environ.get("PATH", ""), **ENVIRON},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"a cold start failed: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stderr.strip().splitlines()[-1])
