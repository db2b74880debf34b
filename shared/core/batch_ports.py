"""What provider batches need of the world beside the engine's own ports; a contract suite each in `tests/contract`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from shared.core.batch import Batch, Member, NoWord, Over, Progress, Request, ResultLine, Submission


class BatchProvider(Protocol):
    """A service that works off many requests at its own pace. Spoken to with client retries off."""

    name: str
    most_lines: int
    """Requests in one batch, at most."""
    most_bytes: int
    """Bytes of one batch's input, at most; a batch that is larger is `NotTaken`, permanent, before anything is sent."""

    def submit(self, tag: str, requests: Sequence[Request], *, timeout_s: float) -> Submission:
        """Hand a batch over, with our tag in its metadata. Never raises for what the provider does."""
        ...

    def find(self, tag: str, *, timeout_s: float, since: datetime | None = None) -> list[str] | NoWord:
        """The provider's ids of the batches that carry the tag, oldest first. `since` is when the tag was written:
        a provider that has to be read from its newest batch on need not be read any further back."""
        ...

    def progress(self, provider_id: str, *, timeout_s: float) -> Progress:
        """How far it is."""
        ...

    def results(self, over: Over, *, timeout_s: float) -> Iterator[ResultLine]:
        """The lines of both files, as they come. Raises Unavailable when a file cannot be read, BadInput when one is
        larger than any that was asked for."""
        ...

    def cancel(self, provider_id: str, *, timeout_s: float) -> None:
        """Ask it to stop; what is done stays done. Never raises for what the provider does."""
        ...


class BatchStore(Protocol):
    """Our record of batches and of who is in them. The members are written once."""

    def intend(self, batch: Batch, members: Sequence[Member]) -> Batch | None:
        """Write a batch before it is submitted, its members first. None: written (or this very intent was before).
        A batch: another one stands under its tag."""
        ...

    def members(self, tag: str) -> tuple[Member, ...]:
        """Who is in it, in its order."""
        ...

    def move(self, before: Batch, after: Batch) -> None:
        """Write `after` if the row still has `before`'s state. Being applied already counts as success.
        Raises BatchMoved with the row as it stands."""
        ...

    def under_way(self, lane: str, *, run_id: str = "", readable: bool = False) -> list[Batch]:
        """Batches that have not ended, oldest first (a consistent read); of one run only when it is named. Raises
        UnreadableRow, unless only the `readable` ones are asked for."""
        ...

    def ended(self, lane: str, *, limit: int) -> list[Batch]:
        """Those that have ended, the one that was begun last first."""
        ...
