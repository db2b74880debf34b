"""Where a batch provider's contract is run: in memory, and over real HTTP against the simulator. Each has a provider
and the same back door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ops.vendors.server import VendorSimulator
from shared.adapters.memory.batch_provider import Behaviour, LineSays, MemoryBatchProvider, SubmitSays
from shared.adapters.memory.clock import VirtualClock
from shared.adapters.vendors.openai_batch import OpenAiBatch
from shared.adapters.vendors.plain_batch import PlainBatch
from shared.core.batch import Prompt, Request
from shared.core.batch_ports import BatchProvider
from shared.core.sensitive import Sensitive
from shared.core.vendor import VendorSpec

REFUSALS = {429: SubmitSays.REFUSE_RATE, 401: SubmitSays.REFUSE_AUTH, 400: SubmitSays.REFUSE_PERMANENT}
SECRET = "Zebraword"
"""In every text that is sent and in every answer; nowhere else."""

TOKEN = "sk-Quaggaword"


def a_request(name: str, *, tokens: int = 25, max_tokens: int = 200) -> Request:
    """One request whose text is its own."""
    prompt = Prompt(
        model="m-1",
        instructions="Rewrite this kindly.",
        text=Sensitive(f"{SECRET} of {name}"),
        max_tokens=max_tokens,
        tokens=tokens,
    )
    return Request(custom_id=name, prompt=prompt)


class ProviderWorld(Protocol):
    """A provider, and what a test may do behind its back."""

    provider: BatchProvider

    def behave(self, **how: Any) -> None:
        """takes_s, expires_s, listed_after_s, fails_with, enqueued_tokens, unknown_lines, lines."""
        ...

    def lose(self, when: str) -> None:
        """The next submission's answer is lost, `before` it is taken or `after`."""
        ...

    def refuse(self, status: int) -> None:
        """The next submission is refused."""
        ...

    def forward(self, seconds: float) -> None:
        """The provider's time passes."""
        ...

    def vanish(self, provider_id: str) -> None:
        """The provider forgets a batch."""
        ...

    def tagged(self, tag: str) -> int:
        """How many batches it took under a tag."""
        ...

    def paid(self) -> Mapping[str, int]:
        """How often each request was worked on."""
        ...

    def limit(self, *, lines: int, size: int) -> None:
        """Lower what one batch may have."""
        ...

    def close(self) -> None: ...


class MemoryWorld:
    """The provider of simulations."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.memory = MemoryBatchProvider(clock=self.clock)
        self.provider: BatchProvider = self.memory

    def behave(self, **how: Any) -> None:
        lines = {name: LineSays(says) for name, says in how.pop("lines", {}).items()}
        self.memory.does = Behaviour(lines=lines, answer=_rewritten, **how)

    def lose(self, when: str) -> None:
        self.memory.submits.append(SubmitSays.LOSE_AFTER if when == "after" else SubmitSays.LOSE_BEFORE)

    def refuse(self, status: int) -> None:
        self.memory.submits.append(REFUSALS[status])

    def forward(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def vanish(self, provider_id: str) -> None:
        self.memory.vanish(provider_id)

    def tagged(self, tag: str) -> int:
        return len(self.memory.tagged(tag))

    def paid(self) -> Mapping[str, int]:
        return self.memory.paid()

    def limit(self, *, lines: int, size: int) -> None:
        self.memory.most_lines, self.memory.most_bytes = lines, size

    def close(self) -> None: ...


class HttpWorld:
    """An adapter, speaking to the simulator."""

    def __init__(self, kind: str) -> None:
        self.clock = VirtualClock()
        self.simulator = VendorSimulator(seed=7, clock=self.clock.now)
        self.simulator.start()
        self.vendor = "plain" if kind == "plain" else "openai"
        address = self.simulator.plain_url if kind == "plain" else self.simulator.openai_url
        spec = VendorSpec(name=self.vendor, kind=self.vendor, base_url=address)
        self.adapter: OpenAiBatch | PlainBatch = (
            PlainBatch(spec, token=lambda fresh: TOKEN)
            if kind == "plain"
            else OpenAiBatch(spec, token=lambda fresh: TOKEN, adapter_kind=kind)
        )
        self.provider: BatchProvider = self.adapter

    def behave(self, **how: Any) -> None:
        lines = how.pop("lines", {})
        self.simulator.configure(self.vendor, batches={**how, "line_faults": lines})

    def lose(self, when: str) -> None:
        self._script(f"drop_{when}_accept")

    def refuse(self, status: int) -> None:
        # A 401 is asked again with a fresh token.
        self._script(f"status:{status}", times=2 if status == 401 else 1)

    def forward(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def vanish(self, provider_id: str) -> None:
        where = {"path_contains": provider_id, "method": "GET"}
        self.simulator.configure(self.vendor, script=[{"match": where, "do": "status:404"}])

    def tagged(self, tag: str) -> int:
        return len(self.simulator.batches(self.vendor, tag)["batches"])

    def paid(self) -> Mapping[str, int]:
        found: dict[str, int] = self.simulator.batches(self.vendor)["paid"]
        return found

    def limit(self, *, lines: int, size: int) -> None:
        self.adapter.most_lines, self.adapter.most_bytes = lines, size

    def close(self) -> None:
        self.adapter.close()
        self.simulator.close()

    def _script(self, do: str, times: int = 1) -> None:
        where = {"path_contains": "/jobs" if self.vendor == "plain" else "/batches", "method": "POST"}
        self.simulator.configure(self.vendor, script=[{"match": where, "do": do, "times": times}])


def _rewritten(request: Request) -> str:
    return f"[rewritten] {request.prompt.text.reveal()}"
