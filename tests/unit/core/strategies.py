"""What hypothesis draws jobs, names and times from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from string import ascii_letters, ascii_lowercase, digits

from hypothesis import strategies as st

from shared.core.job import Category, Job, Status
from shared.core.outcome import Defer, Done, Fail, Outcome, Retry, Submitted
from tests.builders import NOW, a_job

names = st.builds(
    str.__add__,
    st.sampled_from(ascii_lowercase),
    st.text(ascii_lowercase + digits + "_", max_size=31),
)
identifiers = st.builds(
    str.__add__,
    st.sampled_from(ascii_letters + digits),
    st.text(ascii_letters + digits + "._:@+=/-", max_size=40),
)
moments = st.datetimes(min_value=datetime(2000, 1, 2), max_value=datetime(2199, 12, 30), timezones=st.just(UTC)).map(
    lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
)
waits = st.integers(0, 200_000).map(lambda s: timedelta(seconds=s))
codes = st.text(ascii_lowercase + "_:", min_size=1, max_size=40)
words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
json_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
)
json_values = st.recursive(
    json_scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=12,
)


def outcomes() -> st.SearchStrategy[Outcome]:
    """Every way a task may end."""
    return st.one_of(
        st.builds(Done, codes, st.none() | identifiers),
        st.builds(Retry, codes),
        st.builds(Defer, moments, codes),
        st.builds(Fail, st.sampled_from(Category), codes),
        st.builds(Submitted, identifiers),
    )


@st.composite
def claimed_jobs(draw: st.DrawFn) -> Job:
    """A job in a worker's hands, with any history of tries."""
    max_attempts = draw(st.integers(1, 5))
    return a_job(
        status=Status.PROCESSING,
        attempt_count=draw(st.integers(0, max_attempts - 1)),
        max_attempts=max_attempts,
        fence=draw(st.integers(1, 9)),
        waiting_since=draw(st.none() | st.just(NOW - timedelta(hours=1))),
    )
