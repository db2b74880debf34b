"""What hypothesis draws jobs, names and times from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from string import ascii_letters, ascii_lowercase, digits

from hypothesis import settings
from hypothesis import strategies as st

from shared.core.job import Category, Job, Status
from shared.core.outcome import Defer, Done, Fail, Outcome, Retry, Submitted
from tests.builders import NOW, a_job

few = settings(max_examples=25)
"""For properties whose examples are dear: seconds count in the suite everybody runs."""

# Drawn in the cheapest way that still varies: these stand in almost every property.
names = st.text(ascii_lowercase + digits + "_", max_size=31).map("n".__add__)
identifiers = st.text(ascii_letters + digits + "._:@+=/-", max_size=40).map("i".__add__)
moments = st.integers(0, 199 * 365 * 86_400_000).map(
    lambda ms: datetime(2000, 1, 2, tzinfo=UTC) + timedelta(milliseconds=ms)
)
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
    max_leaves=5,
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
