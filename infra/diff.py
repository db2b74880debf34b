"""`python -m infra.diff`: what a deploy of this version changes, and whether it would lose anything.

python -m infra.diff            compare every stage with its last release; 1 when a store or a guard of it would be lost
python -m infra.diff --accept   make the present templates the last release, in the commit that raises the version
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from infra import guards, release
from infra.deployment import Deployment, project_version
from infra.main import new_app, synthesize
from infra.packages import Packages
from infra.rules.assembly import Assembly
from infra.stage import load_stage
from shared.contract import names
from shared.core.stage import STAGES

STORES: Mapping[str, tuple[str, ...]] = {
    "AWS::DynamoDB::GlobalTable": ("TableName", "KeySchema", "StreamSpecification", "GlobalSecondaryIndexes"),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::KMS::Key": ("KeySpec", "KeyUsage", "MultiRegion"),
    "AWS::SecretsManager::Secret": ("Name",),
    "AWS::SQS::Queue": ("QueueName", "FifoQueue"),
}
"""What remembers, and the properties whose change makes CloudFormation build it anew (or cannot be undone)."""

GUARDS = ("DeletionPolicy", "UpdateReplacePolicy")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference to the last release."""

    stage: str
    where: str
    what: str
    loses: bool = False

    def __str__(self) -> str:
        return f"{'!' if self.loses else ' '} {self.stage} {self.where}: {self.what}"


def changes(stage: str, before: release.Templates, after: release.Templates) -> Iterator[Change]:
    """Every difference, losses marked. Both sides normalized."""
    for stack in sorted({*before, *after}):
        old = before.get(stack, {}).get("Resources", {})
        new = after.get(stack, {}).get("Resources", {})
        for resource in sorted({*old, *new}):
            where = f"{stack}/{resource}"
            for what, loses in _resource_changes(old.get(resource), new.get(resource)):
                yield Change(stage=stage, where=where, what=what, loses=loses)


def _resource_changes(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Iterator[tuple[str, bool]]:
    if old is None:
        yield f"added, {new['Type'] if new else ''}", False
        return
    kind = old["Type"]
    if new is None:
        yield f"removed, {kind}", _remembers(old) or kind in guards.POLICIES
        return
    if new["Type"] != kind:
        yield f"becomes {new['Type']}, was {kind}", _remembers(old)
        return
    before, after = old.get("Properties", {}), new.get("Properties", {})
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            replaced = name in STORES.get(kind, ())
            yield f"{name} changed{' (replaces it)' if replaced else ''}", replaced
    for sentence in guards.weakened(kind, before, after):
        yield f"weaker: {sentence}", True
    for guard in GUARDS:
        if old.get(guard) != new.get(guard):
            weaker = kind in STORES and old.get(guard) == "Retain"
            yield f"{guard} was {old.get(guard)}, is {new.get(guard)}", weaker


def _remembers(resource: Mapping[str, Any]) -> bool:
    """A key is worth what it encrypts: the one that was made to be deleted with its stack guards nothing."""
    if resource["Type"] == "AWS::KMS::Key":
        return resource.get("DeletionPolicy") == "Retain"
    return resource["Type"] in STORES


def current(stage: str) -> release.Templates:
    """The stage's templates as this version makes them. Code does not count, so none needs to be built."""
    spec = load_stage(stage, for_show=True)
    with tempfile.TemporaryDirectory() as folder:
        packages = Packages.placeholders(Path(folder) / "build", (*names.ENGINE_FUNCTIONS, names.INTAKE, *spec.lanes))
        # Reminders are for whoever deploys.
        quiet = {"@aws-cdk/core:annotationsInValidationReport": False}
        app = new_app(context=quiet, outdir=str(Path(folder) / "out"), thorough=False)
        deployment = Deployment(stage=spec, packages=packages, version=project_version())
        templates = Assembly.read(spec, synthesize(app, deployment, thorough=False)).templates
    return {stack: release.normalized(template) for stack, template in templates.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """0: safe to deploy. 1: a store or a guard of it would be lost, or there is nothing to compare with."""
    parser = argparse.ArgumentParser(prog="python -m infra.diff", description=__doc__.splitlines()[0])
    parser.add_argument("--accept", action="store_true", help="make the present templates the last release")
    options = parser.parse_args(argv)
    if options.accept:
        return _accept()
    lost = False
    for stage in STAGES:
        after = current(stage)
        before = release.read(stage)
        if not before:
            sys.stderr.write(f"diff: no release of stage {stage} is recorded; run python -m infra.diff --accept\n")
            lost = True
            continue
        found = list(changes(stage, before, after))
        for change in found:
            sys.stdout.write(f"{change}\n")
        if not found:
            sys.stdout.write(f"  {stage}: as released\n")
        lost = lost or any(change.loses for change in found)
    if lost:
        sys.stderr.write("diff: lines marked ! lose data or what guards it; see docs/deploy.md#upgrade\n")
    return 1 if lost else 0


def _accept() -> int:
    """Record this version's templates. A version is recorded once: what was deployed under its name does not change."""
    version, recorded = project_version(), release.version()
    if recorded is not None and release.order(version) <= release.order(recorded):
        sys.stderr.write(
            f"diff: {recorded} is recorded already: raise the version in pyproject.toml and record it in the same"
            " commit (to record the same one again before that commit: git checkout infra/release)\n"
        )
        return 1
    for stage in STAGES:
        release.write(stage, current(stage))
    release.name(version)
    sys.stdout.write(f"diff: {version} is recorded for {', '.join(STAGES)}: commit it with the version\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
