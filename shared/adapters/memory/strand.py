"""An invocation that may stand still in the middle: its own thread, of which only one ever runs."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Strand:
    """Runs `work` in a thread of its own, but never beside anything else: the baton is passed, not shared.

    `begin` and `resume` return when the work is over or has called `hold`. So an execution with frozen workers
    is as deterministic as one without threads.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._work = work
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._failure: BaseException | None = None
        self.over = False

    def begin(self) -> None:
        """Run until the work is over or holds."""
        self._thread.start()
        self._wait()

    def hold(self) -> None:
        """Called by the work itself: give the baton back and stand still until `resume`."""
        self._back.release()
        self._go.acquire()

    def resume(self) -> None:
        """Run on from where the work holds."""
        self._go.release()
        self._wait()

    def _wait(self) -> None:
        self._back.acquire()
        if self.over:
            self._thread.join()
            if self._failure is not None:
                raise self._failure

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as exc:
            self._failure = exc
        self.over = True
        self._back.release()
