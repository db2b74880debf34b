"""One vendor account: given its configuration, its seed, the time and a request, the verdict.

Nothing here sleeps, opens a socket or reads a clock. A `Verdict` says what took place, what the caller is
to hear and after how long; the HTTP server acts it out, the virtual-clock simulation adds it to its time.

Order of the decisions: outage, token, shape, script, limits, chance, then the work itself (deduplication
included), then what spoils the answer. A request that a script took meets neither limits nor chance.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ops.vendors.allowance import Allowance, retry_after_headers
from ops.vendors.asks import Ask, Bad, Batching, Compute, ListAccepts, LookUp, Send, Shape
from ops.vendors.batches import BatchDesk
from ops.vendors.chance import fault_by_chance
from ops.vendors.config import VendorConfig, changed
from ops.vendors.faults import NO_FAULT, Fault, FaultKind
from ops.vendors.lookup import list_accepts, look_up
from ops.vendors.record import Ending, Entry, Record, VerdictKind
from ops.vendors.request import VendorRequest
from ops.vendors.script import Script
from ops.vendors.verdict import Verdict

_MAX_PATH_KEPT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One request with what is known of it before anything is decided."""

    request: VendorRequest
    ask: Ask
    now: datetime
    fingerprint: str
    nth: int


class Vendor:
    """One account of one vendor. Safe to use from many threads: a request is decided as a whole."""

    def __init__(
        self, *, name: str, shape: Shape, record: Record, seed: int = 0, config: VendorConfig | None = None
    ) -> None:
        self.name = name
        self._shape = shape
        self._record = record
        self._seed = seed
        self._lock = threading.RLock()
        self._start = config or VendorConfig()
        self._config = self._start
        self._script = Script()
        self._allowance = Allowance()
        self._desk = BatchDesk(seed)
        self.reset()

    @property
    def config(self) -> VendorConfig:
        """The configuration in force, with the steps of the script that are still to come."""
        with self._lock:
            return replace(self._config, script=self._script.pending())

    def configure(self, changes: Mapping[str, object]) -> VendorConfig:
        """Change some fields at once. A new script starts counting anew. Raises ConfigError."""
        with self._lock:
            self._config = changed(self._config, changes)
            if "script" in changes:
                self._script = Script(self._config.script)
            self._allowance.adopt(self._config)
            return self.config

    def reset(self, *, keep_config: bool = False) -> None:
        """Back to the starting configuration, with nothing counted against the limits."""
        with self._lock:
            if not keep_config:
                self._config = self._start
                self._script = Script(self._start.script)
            self._allowance = Allowance()
            self._allowance.adopt(self._config)
            self._desk = BatchDesk(self._seed)

    def batches(self, now: datetime, tag: str = "") -> dict[str, object]:
        """The batches it took, under one tag where it is named, and how often each line was paid for."""
        with self._lock:
            return self._desk.report(now, tag)

    def turn_away(self, request: VendorRequest, now: datetime) -> Verdict | None:
        """The verdict on a request of which only the head was read, if the vendor refuses connections."""
        with self._lock:
            if self._config.outage != "refuse":
                return None
            away = Verdict(kind=VerdictKind.DROPPED, reason="outage", ending=Ending.DROPPED)
            nothing = Bad(status=503, sentence="")
            return replace(self._keep(self._call(request, nothing, now), away), wait_s=0.0)

    def handle(self, request: VendorRequest, now: datetime, *, unread: Bad | None = None) -> Verdict:
        """Decide one request, and keep it in the record before the verdict is known to anybody.

        `unread` says why the body could not be read, where it could not.
        """
        with self._lock:
            away = self.turn_away(request, now)
            if away is not None:
                return away
            call = self._call(request, unread or self._shape.read(request, self._config), now)
            return self._keep(call, self._decide(call))

    def _decide(self, call: _Call) -> Verdict:
        config, ask = self._config, call.ask
        if config.outage:
            return self._error(VerdictKind.REFUSED_5XX, 503, "the vendor is down", "outage")
        if config.valid_tokens is not None and call.request.token not in config.valid_tokens:
            return self._error(VerdictKind.UNAUTHORISED, 401, "the bearer token is not known", "token")
        if isinstance(ask, Bad):
            refused = self._error(VerdictKind.REFUSED_4XX, ask.status, ask.sentence, "shape")
            return replace(refused, headers={"allow": ask.allow} if ask.allow else {})
        fault = self._script.take(method=call.request.method, path=call.request.path, key=_key(call.request, ask))
        if fault is None:
            tokens = ask.tokens if isinstance(ask, Compute) else 0
            wait_s = self._allowance.take(tokens=tokens, now=call.now, charge_refused=config.rejected_calls_count)
            if wait_s > 0:
                return self._too_many(call, wait_s, "limit")
            fault = self._chance(call)
        if fault.before_accept:
            return self._fail_before(call, fault)
        return self._spoil(self._serve(call, ask), fault)

    def _chance(self, call: _Call) -> Fault:
        asks = isinstance(call.ask, LookUp | ListAccepts) or getattr(call.ask, "kind", "") is VerdictKind.LOOKED_UP
        if asks and not self._config.faults_on_lookup:
            return NO_FAULT
        return fault_by_chance(self._config, self._draw(call, "fault"))

    def _fail_before(self, call: _Call, fault: Fault) -> Verdict:
        if fault.kind is FaultKind.STATUS and fault.status == 429:
            return self._too_many(call, self._config.retry_after_s, fault.reason)
        if fault.kind is FaultKind.STATUS:
            kind = VerdictKind.REFUSED_5XX if fault.status >= 500 else VerdictKind.REFUSED_4XX
            if fault.status == 401:
                kind = VerdictKind.UNAUTHORISED
            return self._error(kind, fault.status, "nothing was done", fault.reason)
        ending = Ending.HUNG if fault.kind is FaultKind.HANG_BEFORE_ACCEPT else Ending.DROPPED
        return Verdict(kind=VerdictKind.DROPPED, reason=fault.reason, ending=ending, wait_s=fault.wait_s)

    def _serve(self, call: _Call, ask: Ask) -> Verdict:
        match ask:
            case Send():
                return self._accept(call, ask)
            case LookUp() | ListAccepts():
                return self._look(call, ask)
            case Compute():
                return Verdict(kind=VerdictKind.COMPUTED, status=200, body=ask.answer(call.now))
            case Batching():
                return self._batching(call, ask)
            case Bad():
                raise AssertionError("a bad request is refused before it is served")

    def _batching(self, call: _Call, ask: Batching) -> Verdict:
        served = ask.serve(self._desk, call.now, self._digest(call, "id")[:24])
        return Verdict(
            kind=ask.kind if served.status < 300 else VerdictKind.REFUSED_4XX,
            reason=ask.action,
            status=served.status,
            body=served.body,
            content=served.content,
            vendor_id=served.vendor_id,
        )

    def _accept(self, call: _Call, ask: Send) -> Verdict:
        first = self._accepted_before(call, ask)
        if first is None:
            vendor_id = f"{ask.id_prefix}_{self._digest(call, 'id')[:20]}"
            return Verdict(kind=VerdictKind.ACCEPTED, status=201, body={"id": vendor_id}, vendor_id=vendor_id)
        same = (first.conversation, first.text_sha256) == (ask.conversation, ask.text_sha256)
        if not same and self._config.key_reuse == "conflict":
            sentence = "this Idempotency-Key was used for another request"
            return self._error(VerdictKind.REFUSED_4XX, 409, sentence, "key_reuse")
        return Verdict(
            kind=VerdictKind.DEDUPED,
            reason="" if same else "other_content",
            status=200,
            body={"id": first.vendor_id},
            vendor_id=first.vendor_id,
        )

    def _accepted_before(self, call: _Call, ask: Send) -> Entry | None:
        """The accept that a repeat of its key is answered with: the newest, if its window is still open."""
        key = call.request.idempotency_key
        if not key or not self._config.dedupe_by_key:
            return None
        accepts = self._record.accepts_of(vendor=self.name, key=key, action=ask.action)
        if not accepts:
            return None
        window_s = self._config.dedupe_window_s
        if window_s is not None and call.now - accepts[-1].at >= timedelta(seconds=window_s):
            return None
        return accepts[-1]

    def _look(self, call: _Call, ask: LookUp | ListAccepts) -> Verdict:
        config = self._config
        if config.lookup == "none":
            refused = "this vendor cannot be asked what it accepted"
            return self._error(VerdictKind.REFUSED_5XX, 501, refused, "no_lookup")
        lag_s = config.lookup_lag_s if config.lookup == "eventual" else 0.0
        until = call.now - timedelta(seconds=lag_s)
        if isinstance(ask, ListAccepts):
            body = list_accepts(self._record, self.name, ask, until)
            return Verdict(kind=VerdictKind.LOOKED_UP, reason="list", status=200, body=body)
        body = look_up(self._record, self.name, ask, until)
        reason = "found" if body["found"] else "absent"
        return Verdict(kind=VerdictKind.LOOKED_UP, reason=reason, status=200, body=body)

    def _spoil(self, served: Verdict, fault: Fault) -> Verdict:
        """What the caller hears of work that was done, when a fault falls on the way back."""
        match fault.kind:
            case FaultKind.DROP_AFTER_ACCEPT:
                lost = replace(served, status=None, body={}, content=None, headers={}, reason=fault.reason)
                return replace(lost, ending=Ending.DROPPED)
            case FaultKind.ACCEPT_THEN_STATUS:
                body = self._shape.error(fault.status, "something went wrong")
                return replace(served, status=fault.status, body=body, content=None, reason=fault.reason)
            case FaultKind.HANG:
                return replace(served, wait_s=fault.wait_s, ending=Ending.HUNG, reason=fault.reason)
        return served

    def _too_many(self, call: _Call, wait_s: float, reason: str) -> Verdict:
        refused = self._error(VerdictKind.REFUSED_429, 429, "too many requests", reason)
        return replace(refused, headers=retry_after_headers(self._config, wait_s, call.now))

    def _error(self, kind: VerdictKind, status: int, sentence: str, reason: str) -> Verdict:
        return Verdict(kind=kind, status=status, body=self._shape.error(status, sentence), reason=reason)

    def _call(self, request: VendorRequest, ask: Ask, now: datetime) -> _Call:
        fingerprint = request.fingerprint
        nth = self._record.times_seen(fingerprint) + 1
        return _Call(request=request, ask=ask, now=now, fingerprint=fingerprint, nth=nth)

    def _digest(self, call: _Call, purpose: str) -> str:
        drawn = f"{self._seed}|{self.name}|{purpose}|{call.fingerprint}|{call.nth}"
        return hashlib.sha256(drawn.encode()).hexdigest()

    def _draw(self, call: _Call, purpose: str) -> float:
        """A number from 0 up to 1 that depends on the seed, the request and how often it came before.

        Not on the order of arrival: threads that race replay as one thread does.
        """
        return int(self._digest(call, purpose)[:13], 16) / 16**13

    def _keep(self, call: _Call, verdict: Verdict) -> Verdict:
        request, ask = call.request, call.ask
        send = ask if isinstance(ask, Send) else None
        entry = Entry(
            at=call.now,
            vendor=self.name,
            method=request.method[:20],
            path=request.path[:_MAX_PATH_KEPT],
            verdict=verdict.kind,
            ending=verdict.ending,
            reason=verdict.reason,
            status=verdict.status,
            key=_key(request, ask),
            action=ask.action if isinstance(ask, Send | Compute | Batching) else "",
            conversation=send.conversation if send else "",
            vendor_id=verdict.vendor_id,
            text_sha256=send.text_sha256 if send else "",
            text_length=send.text_length if send else 0,
            tokens=ask.tokens if isinstance(ask, Compute) else 0,
            caller=request.caller,
            fingerprint=call.fingerprint,
        )
        return replace(
            verdict,
            seq=self._record.append(entry).seq,
            headers=self._headers(call, verdict),
            wait_s=verdict.wait_s + self._latency_s(call),
        )

    def _headers(self, call: _Call, verdict: Verdict) -> dict[str, str]:
        request_id = f"req_{self._digest(call, 'request')[:24]}"
        return {**self._allowance.headers(call.now), **verdict.headers, "x-request-id": request_id}

    def _latency_s(self, call: _Call) -> float:
        jitter_s = self._config.latency_jitter_s
        return self._config.latency_s + (jitter_s * self._draw(call, "latency") if jitter_s else 0.0)


def _key(request: VendorRequest, ask: Ask) -> str:
    """The key a request is about: its own, or the one it looks up."""
    return ask.key[:300] if isinstance(ask, LookUp | Batching) else request.idempotency_key[:300]
