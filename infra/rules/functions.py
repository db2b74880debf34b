"""Rules about functions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping

from infra.rules.assembly import Assembly, Resource
from infra.rules.queues import DEFAULT_TIMEOUT_S, DEFAULT_VISIBILITY_S, queue_sources
from infra.rules.registry import rule
from shared.contract import env, names

CLAIM_MARGIN_S = 30
"""A claim times out this long after its function must have ended (`LaneSpec.claim_timeout_s`)."""
VERSION_TAG = "penstock:version"
MAX_WORKER_S = 120
MAX_ENVIRONMENT_BYTES = 1536
"""Lambda allows 4 KB; names alone need a third of it, and what grows with the stage has no place there."""
INTRINSIC_BYTES = 64
"""What a name or an ARN that is known only at deploy time is counted as."""

INTEGRATION = "AWS::ApiGatewayV2::Integration"

CONTRACT_VARIABLES = {value for name, value in vars(env).items() if name.isupper() and isinstance(value, str)}
LIBRARY_VARIABLES = {"AWS_SDK_UA_APP_ID", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE"}


def _functions(assembly: Assembly) -> Iterator[Resource]:
    yield from assembly.resources("AWS::Lambda::Function")


@rule("N5")
def caps_fit_the_reserve(assembly: Assembly) -> Iterator[str]:
    """The event source's cap is the throttle. Reserved concurrency below it throttles by burning receives."""
    caps: dict[str, int] = defaultdict(int)
    workers: dict[str, Resource] = {}
    for mapping, _, function in queue_sources(assembly):
        cap = mapping.properties.get("ScalingConfig", {}).get("MaximumConcurrency")
        if cap is None:
            yield f"{mapping}: needs ScalingConfig.MaximumConcurrency, the lane's cap"
        elif function is not None:
            caps[str(function)] += int(cap)
            workers[str(function)] = function
    for name, function in workers.items():
        reserved = function.properties.get("ReservedConcurrentExecutions")
        if reserved is None and assembly.stage.reserved_concurrency:
            yield f"{name}: this stage reserves concurrency, and this worker has none"
        if reserved is not None and caps[name] > reserved:
            yield f"{name}: its event sources may run {caps[name]} at once, only {reserved} are reserved"


@rule("ALIAS")
def a_rollback_repoints_one_alias(assembly: Assembly) -> Iterator[str]:
    """What feeds a worker or an intake goes through its alias, which is a version of that same function."""
    for alias in assembly.resources("AWS::Lambda::Alias"):
        version = assembly.referred(alias.stack, alias.properties.get("FunctionVersion"))
        if alias.properties.get("Name") != names.LIVE:
            yield f"{alias}: must be called {names.LIVE}"
        if version is None or version.properties.get("FunctionName") != alias.properties.get("FunctionName"):
            yield f"{alias}: must be a version of its own function, not $LATEST"
    fed = [(mapping, mapping.properties.get("FunctionName")) for mapping, _, _ in queue_sources(assembly)]
    fed += [(door, door.properties.get("IntegrationUri")) for door in assembly.resources(INTEGRATION)]
    for source, target in fed:
        if not any(alias.type == "AWS::Lambda::Alias" for alias in assembly.all_referred(source.stack, target)):
            yield f"{source}: must start the alias {names.LIVE} of its function"


@rule("PACKAGE")
def code_runs_where_it_was_built_for(assembly: Assembly) -> Iterator[str]:
    """Wheels are built for one Python on one processor; anything else fails at the first import, on AWS alone."""
    if assembly.stage.name == "local":
        return  # the emulator runs every function with its own interpreter
    for function in _functions(assembly):
        package = assembly.package_of(function)
        if package is None:
            yield f"{function}: its code must be a staged package"
            continue
        told = function.properties
        runs_on = {"runtime": told.get("Runtime"), "architecture": (told.get("Architectures") or ["x86_64"])[0]}
        if package.built_for != runs_on:
            yield f"{function}: runs on {_listed(runs_on)}, its package was built for {_listed(package.built_for)}"
        module = str(told.get("Handler", "")).rpartition(".")[0].replace(".", "/") + ".py"
        if module not in package.files:
            yield f"{function}: its package holds no {module}"


@rule("N8")
def known_variables_only(assembly: Assembly) -> Iterator[str]:
    """Some variables make libraries log payloads; and what the contract does not name, nobody should read."""
    for function in _functions(assembly):
        for variable in function.properties.get("Environment", {}).get("Variables", {}):
            if variable in env.FORBIDDEN:
                yield f"{function}: {variable} makes a library write payloads to the log"
            elif variable not in CONTRACT_VARIABLES | LIBRARY_VARIABLES:
                yield f"{function}: {variable} is not in shared/contract/env.py"


@rule("ENV")
def environment_fits(assembly: Assembly) -> Iterator[str]:
    """Lambda refuses more than 4 KB of environment; what grows with the lanes would get there."""
    for function in _functions(assembly):
        variables = function.properties.get("Environment", {}).get("Variables", {})
        size = sum(len(name.encode()) + _size(value) for name, value in variables.items())
        if size > MAX_ENVIRONMENT_BYTES:
            yield f"{function}: its environment has about {size} bytes; names need less than {MAX_ENVIRONMENT_BYTES}"


@rule("TAGS")
def the_version_stands_on_functions_alone(assembly: Assembly) -> Iterator[str]:
    """It changes with each release: on an event source it would send the baseline cap again, on a store a change."""
    for resource in assembly.resources():
        # A table's tags stand in its replicas, an address' in a map.
        marked = f'"{VERSION_TAG}"' in json.dumps(resource.properties)
        if marked != (resource.type == "AWS::Lambda::Function"):
            yield f"{resource}: {VERSION_TAG} stands on functions, and on nothing else"


@rule("N12")
def logs_expire(assembly: Assembly) -> Iterator[str]:
    """A log group that Lambda makes by itself is kept for ever and belongs to nobody."""
    for function in _functions(assembly):
        group = assembly.referred(function.stack, function.properties.get("LoggingConfig", {}).get("LogGroup"))
        if group is None or group.type != "AWS::Logs::LogGroup":
            yield f"{function}: needs a log group of its own"
    for group in assembly.resources("AWS::Logs::LogGroup"):
        if not group.properties.get("RetentionInDays"):
            yield f"{group}: needs RetentionInDays"


@rule("N15")
def no_tracing(assembly: Assembly) -> Iterator[str]:
    """Trace segments can carry payloads, and nobody erases them."""
    for function in _functions(assembly):
        if function.properties.get("TracingConfig", {}).get("Mode") == "Active":
            yield f"{function}: X-Ray must be off where customers' text is handled"


@rule("N18")
def rescue_meets_a_stale_claim(assembly: Assembly) -> Iterator[str]:
    """A redelivery must come after the first worker's claim ran out, or nobody rescues the job."""
    for _, queue, function in queue_sources(assembly):
        if function is None:
            continue
        timeout = function.properties.get("Timeout", DEFAULT_TIMEOUT_S)
        visibility = queue.properties.get("VisibilityTimeout", DEFAULT_VISIBILITY_S)
        if timeout > MAX_WORKER_S:
            yield f"{function}: a worker's timeout is at most {MAX_WORKER_S} s; longer work is submitted and collected"
        if timeout + CLAIM_MARGIN_S >= visibility:
            yield f"{queue}: visibility must exceed the claim timeout of {timeout + CLAIM_MARGIN_S} s"


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, dict) and isinstance(value.get("Fn::Join"), list):
        separator, parts = value["Fn::Join"]
        return sum(_size(part) for part in parts) + len(separator) * (len(parts) - 1)
    return INTRINSIC_BYTES if isinstance(value, dict) else len(json.dumps(value))


def _listed(told: Mapping[str, str]) -> str:
    return " on ".join(str(value) for value in told.values()) or "an unknown place"
