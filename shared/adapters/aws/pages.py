"""Reading on until DynamoDB says there is no more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from shared.adapters.attributes import Item
from shared.adapters.aws.errors import ask


def pages(what: str, read: Callable[[dict[str, Any]], Mapping[str, Any]]) -> Iterator[list[Item]]:
    """The rows of each page; `read` takes the arguments that say where a page starts."""
    start: dict[str, Any] = {}
    while True:
        page = ask(what, partial(read, start))
        yield page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
