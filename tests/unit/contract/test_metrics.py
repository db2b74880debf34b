"""Who counts what: the one table of it says what the code does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from infra.grants import RUN_ROLES
from shared.contract import metrics, names

ROOT = Path(__file__).parents[3]
CONTRACT = "shared.contract.metrics"
NAMES = {value: name for name, value in vars(metrics).items() if name.isupper() and value in metrics.ALL}

Place = tuple[str, str]
"""A module, and what it defines."""


def _doors() -> dict[str, list[Place]]:
    """Kind of function → where its doors stand."""
    found: dict[str, list[Place]] = {}
    for path in sorted((ROOT / "functions").glob("*/handler.py")):
        module, of = f"functions.{path.parent.name}.handler", path.parent.name
        kind = of if of in (*names.ENGINE_FUNCTIONS, names.INTAKE) else "worker"
        for role, as_kind in {"handler": kind, **{role: f"run_{role}" for role in RUN_ROLES}}.items():
            if role in _module(module)[0]:
                found.setdefault(as_kind, []).append((module, role))
    return found


def _path(module: str) -> Path | None:
    places = (ROOT / f"{module.replace('.', '/')}.py", ROOT / module.replace(".", "/") / "__init__.py")
    return next((place for place in places if place.is_file()), None)


@cache
def _module(module: str) -> tuple[dict[str, list[ast.AST]], dict[str, Place]]:
    """What a module of ours defines at its top, and what it imports; a whole module is one that defines nothing."""
    path = _path(module)
    assert path is not None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined: dict[str, list[ast.AST]] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in (one.id for one in ast.walk(target) if isinstance(one, ast.Name)):
                    defined.setdefault(name, []).append(node)
    imported: dict[str, Place] = {}
    for one in ast.walk(tree):
        if isinstance(one, ast.ImportFrom) and one.module and one.module.partition(".")[0] in ("shared", "functions"):
            for alias in one.names:
                whole = f"{one.module}.{alias.name}"
                imported[alias.asname or alias.name] = (whole, "") if _path(whole) else (one.module, alias.name)
    return defined, imported


def _named(module: str, node: ast.AST) -> Iterator[Place]:
    """What a definition names, here or in another module of ours."""
    defined, imported = _module(module)
    for one in ast.walk(node):
        if isinstance(one, ast.Name):
            if one.id in defined:
                yield module, one.id
            elif imported.get(one.id, ("", ""))[1]:
                yield imported[one.id]
        elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id in imported:
            whole, inner = imported[one.value.id]
            if not inner:
                yield whole, one.attr


def _counted_from(door: Place) -> set[str]:
    """Every metric that is named where a door leads to."""
    seen: set[Place] = set()
    left = [door]
    while left:
        place = left.pop()
        if place in seen:
            continue
        seen.add(place)
        if place[0] == CONTRACT:
            continue
        defined, imported = _module(place[0])
        left += [named for node in defined.get(place[1], ()) for named in _named(place[0], node)]
        if place[1] in imported and place[1] not in defined:
            left.append(imported[place[1]])
    return {name for module, name in seen if module == CONTRACT} & set(NAMES.values())


@pytest.mark.fault("B10")
def test_the_table_of_who_counts_what_is_what_the_code_does() -> None:
    """Each kind of function reaches, from its door, exactly the metrics that the table gives it."""
    doors = _doors()
    assert set(doors) == {kind for kinds in metrics.COUNTED_BY.values() for kind in kinds} | {"redriver"}
    for kind, places in doors.items():
        told = {NAMES[metric] for metric, kinds in metrics.COUNTED_BY.items() if kind in kinds}
        for door in places:
            assert _counted_from(door) == told, door


@pytest.mark.fault("B10")
def test_what_is_counted_for_the_stage_or_by_account_is_listed() -> None:
    """A metric that is looked at under a lane, and counted without one, is never found."""
    without_lane, by_account, seen = set(), set(), set()
    for path in (ROOT / "shared/usecases").glob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match call:
                case ast.Call(
                    func=ast.Attribute(attr="count"),
                    args=[ast.Attribute(value=ast.Name(id="metrics"), attr=name), *_],
                    keywords=keywords,
                ):
                    given = {keyword.arg for keyword in keywords}
                    seen.add(name)
                    without_lane |= {name} - ({name} if "lane" in given else set())
                    by_account |= {name} if "account" in given else set()
    assert without_lane == {NAMES[metric] for metric in metrics.OF_THE_STAGE}
    assert by_account == {NAMES[metric] for metric in metrics.OF_AN_ACCOUNT}
    assert {NAMES[metric] for metric in metrics.ALL} - seen == {"COMPLETED", "RETRIED", "DEFERRED", "FAILED"}
