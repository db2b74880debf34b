"""Passage: which effects of its job an attempt has passed, and what earlier attempts left there.

The names of a task's effects and their order are a function of its job and of what it kept. So an attempt passes every
effect that stands before it begins a new one, and has passed all of them when it ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.core.effects import Effect, EffectRow
from shared.core.job import Category, Job
from shared.core.outcome import Fail
from shared.core.ports import Clock, EffectStore
from shared.usecases.ending import EndAttempt
from shared.usecases.persist import persist


@dataclass(slots=True, kw_only=True)
class Passage:
    """One attempt's. On a job's first attempt nothing is read unless it meets a row that it did not write."""

    job: Job
    effects: EffectStore
    clock: Clock
    _met: bool = False
    _made: dict[str, bool] = field(default_factory=dict)
    """The effects this attempt has passed, in their order: whether the vendor has it."""
    _rows: dict[str, EffectRow] | None = None

    @property
    def alone(self) -> bool:
        """True while nothing tells that another attempt was here."""
        return self.job.fence <= 1 and not self._met and not self._rows

    def rows(self) -> dict[str, EffectRow]:
        """What stood there when it was first asked for, by name: one consistent read an attempt."""
        if self._rows is None:
            self._rows = {row.name: row for row in persist(lambda: self.effects.of_job(self.job.job_id), self.clock)}
        return self._rows

    def enter(self, name: str, request: Effect) -> EffectRow | None:
        """The row that stands under the name, if any is known. Ends the attempt where the task has gone another way."""
        if self.alone or name in self._made:
            return None
        row = self.rows().get(name)
        if row is not None:
            return self.same(row, request)
        left_out = [other for other in self.rows() if other not in self._made]
        if left_out:
            raise EndAttempt(Fail(Category.MALFORMED, f"new_effect:{name}"))
        return None

    def meet(self, row: EffectRow, request: Effect) -> EffectRow:
        """A row that this attempt did not write stands in its way."""
        self._met = self._met or row.name not in self._made
        return self.same(row, request)

    def same(self, row: EffectRow, request: Effect) -> EffectRow:
        """The row, if it is of this very effect: the same name for another one ends the attempt."""
        if not row.is_of(request):
            raise EndAttempt(Fail(Category.MALFORMED, f"other_effect:{row.name}"))
        return row

    def disturbed(self) -> None:
        """An effect of this attempt ended in no result: what stands there must be read."""
        self._met, self._rows = True, None

    def passed(self, name: str, *, stands: bool) -> None:
        """The attempt goes on behind this effect; `stands`: the vendor has it."""
        self._made[name] = stands or self._made.get(name, False)

    def left_out(self) -> list[EffectRow]:
        """What an earlier attempt began and this one did not find at the vendor itself."""
        return [row for row in self.rows().values() if not self._made.get(row.name, False)]
