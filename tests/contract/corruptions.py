"""Rows as nobody of ours writes them: every attribute a table can hold, in every place of a good row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from shared.adapters.attributes import Attribute, Item

NO_VALUE = "NO_VALUE"
"""Stands in every text that is drawn: no error may repeat what a row holds."""

texts = st.sampled_from(
    ["", "NaN", "Infinity", "-1", "normal", "HALT", "halt ", "yes", "9999-12-31T23:59:59", "2026-05-01T09:00:00.000Z"]
).map(lambda word: word or NO_VALUE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=12).map(
    NO_VALUE.__add__
)
numbers = st.sampled_from(
    ["0", "1", "-1", "2", "1000", "1001", "0.5", "1e3", "1e125", "-1e125", "1e-130", "9" * 38, "-" + "9" * 38]
) | st.integers(-(10**37), 10**37).map(str)
junk: st.SearchStrategy[Attribute] = st.recursive(
    st.one_of(
        texts.map(lambda value: {"S": value}),
        numbers.map(lambda value: {"N": value}),
        st.binary(min_size=1, max_size=8).map(lambda value: {"B": value}),
        st.booleans().map(lambda value: {"BOOL": value}),
        st.just({"NULL": True}),
        st.just({"SS": [NO_VALUE, "b"]}),
        st.just({"NS": ["1", "-7.5"]}),
        st.just({"BS": [b"\xff"]}),
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda parts: {"L": parts})
        | st.dictionaries(st.sampled_from(["a", "level", "cap", "S", "M"]), inner, max_size=3).map(
            lambda parts: {"M": parts}
        )
    ),
    max_leaves=4,
)
"""Any attribute of DynamoDB's, nested or not."""


@st.composite
def spoiled(draw: st.DrawFn, good: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """A good row's attributes with up to three of them lost or replaced, and perhaps one that nobody knows."""
    item: dict[str, Any] = dict(good)
    for name in draw(st.lists(st.sampled_from(sorted(good)), min_size=1, max_size=3, unique=True)):
        value = draw(st.none() | junk)
        del item[name]
        if value is not None:
            item[name] = value
    return item | draw(st.sampled_from([{}, {"weather": {"S": "fine"}}]))


@st.composite
def spoiled_parts(draw: st.DrawFn, good: Item, path: str) -> Item:
    """A row in which something inside the map at `path` is spoiled, or the map itself."""
    inner = good[path]["M"]
    kind = draw(st.sampled_from(["whole", "part", "field", "stranger"]))
    if kind == "whole":
        return draw(spoiled({path: good[path]})) | {name: value for name, value in good.items() if name != path}
    name = draw(st.sampled_from(sorted(inner)))
    if kind == "part":
        parts = {**inner, name: draw(junk)}
    elif kind == "field":
        parts = {**inner, name: {"M": draw(spoiled(inner[name]["M"]))}}
    else:
        stranger = draw(st.sampled_from(["everything", "lane/", "Lane/support", "lane/a b", "tenant/support", "all/x"]))
        parts = {**inner, stranger: inner[name]}
    return {**good, path: {"M": parts}}
