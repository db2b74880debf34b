"""How the engine ends a task from inside: with an outcome the task has no say in."""

from __future__ import annotations

from shared.core.outcome import Outcome


class EndAttempt(BaseException):
    """Ends a task from inside the engine with an outcome. Not an Exception: a task's `except` must not eat it."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(type(outcome).__name__)
        self.outcome = outcome
