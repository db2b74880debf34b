"""Standard output and error as a command line meets them: full, closed, or with nobody who reads any more."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import Any


class Unwritten(Exception):
    """An answer that could not be written. What was asked for may have been done."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.gone = error.errno == errno.EPIPE
        """Nobody reads any more, and nobody wants to be told."""
        reason = (error.strerror or "it cannot be used").lower()
        self.sentence = (
            f"standard output: the answer could not be written ({reason}); what was asked for may have been done:"
            " look before you ask again"
        )


class Answers:
    """A stream whose failures are told apart from those of every other file; `beside` the answer they are ignored."""

    def __init__(self, stream: Any, *, beside: bool) -> None:
        self._stream, self._beside = stream, beside

    def write(self, text: str) -> int:
        """As the stream does it."""
        with self._heard():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """As the stream does it."""
        with self._heard():
            self._stream.flush()

    @contextlib.contextmanager
    def _heard(self) -> Iterator[None]:
        try:
            yield
        except OSError as exc:
            if not self._beside:
                raise Unwritten(exc) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Standard output and error for one command. A closed one takes everything and keeps nothing."""
    before = sys.stdout, sys.stderr
    with contextlib.ExitStack() as opened:

        def usable(stream: Any) -> Any:
            if stream is None:
                return opened.enter_context(open(os.devnull, "w"))
            # A terminal that cannot show a character gets another one, not an error.
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
            return stream

        sys.stdout = Answers(usable(sys.stdout), beside=False)
        sys.stderr = Answers(usable(sys.stderr), beside=True)
        try:
            yield
            sys.stdout.flush()
        except Unwritten:
            _drop(before[0])
            raise
        finally:
            sys.stdout, sys.stderr = before


def _drop(stream: Any) -> None:
    """What could not be written is not tried again when the interpreter ends."""
    with contextlib.suppress(OSError, AttributeError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
