"""Drives a coordinator machine as the runtime would, in memory and by hand: the log is a list, time moves on command.

Every record goes through its bytes and back, every step is followed by `check`, and a token with two responses, or
one that was never sent, fails at once.
"""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.coordinator import ApplyContext, CoordinatorDecision, CoordinatorMachine, CoordinatorRecord, Now
from barnabas.protocol.versioned import decode_record_key, decode_versioned, encode_record_key, encode_versioned

WALL_MS = 1_000_000_000


class Entry(NamedTuple):
    """A record of the log."""

    key: Any
    value: Any | None
    context: ApplyContext


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    committed: bool


class MachineDriver:
    def __init__(self, make_machine: Callable[[], CoordinatorMachine], image: ClusterImage | None = None) -> None:
        self._make_machine = make_machine
        self.image = image or ClusterImage()
        self.now_ms = 0
        self.wall_ahead_ms = WALL_MS
        self.log: list[Entry | Marker] = []
        self.timers: dict[str, int] = {}
        self.asked: dict[Hashable, Any] = {}
        """Tokens without a response -> their commands."""
        self.answers: list[tuple[Hashable, Any]] = []
        self.requests: list[Any] = []
        self.machine = make_machine()
        self.load()

    @property
    def now(self) -> Now:
        return Now(self.now_ms, self.now_ms + self.wall_ahead_ms)

    def submit(self, command: Any, token: Hashable) -> CoordinatorDecision:
        assert token not in self.asked, f"{token} is taken"
        self.asked[token] = command
        return self._carry_out(self.machine.decide(command, token, self.now))

    def answer_at_once(self, token: Hashable, response: Any) -> None:
        """The machine has responded without a decision."""
        self.machine.check()
        self.answers.append((token, response))

    def ask(self, command: Any) -> Any:
        """The response to a command that is not held."""
        token = object()
        self.submit(command, token)
        assert self.answers and self.answers[-1][0] is token, "no answer yet"
        return self.answers.pop()[1]

    def mark(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        marker = Marker(producer_id, producer_epoch, committed)
        self.log.append(marker)
        self.machine.apply_marker(*marker)
        self.machine.check()

    def next_deadline(self) -> int | None:
        return min(self.timers.values(), default=None)

    def fire_next(self) -> tuple[str, CoordinatorDecision]:
        """Go to the earliest deadline and let that timer fire."""
        key = min(self.timers, key=lambda key: (self.timers[key], key))
        self.now_ms = max(self.now_ms, self.timers.pop(key))
        return key, self._carry_out(self.machine.expire(key, self.now))

    def advance_to(self, now_ms: int) -> list[tuple[str, CoordinatorDecision]]:
        fired = []
        while self.timers and min(self.timers.values()) <= now_ms:
            fired.append(self.fire_next())
        self.now_ms = max(self.now_ms, now_ms)
        return fired

    def show_image(self, image: ClusterImage) -> CoordinatorDecision:
        self.image = image
        return self._carry_out(self.machine.on_image(image, self.now))

    def load(self) -> list[Hashable]:
        """A new machine from the log alone, as after a failover; the tokens whose responses are lost with it."""
        lost, self.asked = list(self.asked), {}
        self.timers.clear()
        self.machine = self._make_machine()
        for entry in self.log:
            if isinstance(entry, Marker):
                self.machine.apply_marker(*entry)
            else:
                self.machine.apply(entry.key, entry.value, entry.context)
        self._carry_out(self.machine.on_loaded(self.now))
        self._carry_out(self.machine.on_image(self.image, self.now))
        return lost

    def _carry_out(self, decision: CoordinatorDecision) -> CoordinatorDecision:
        for record in decision.records:
            self._append(record, decision)
        for key, deadline_ms in decision.timers:
            if deadline_ms is None:
                self.timers.pop(key, None)
            else:
                self.timers[key] = deadline_ms
        self.machine.check()
        for token, response in decision.replies:
            assert token in self.asked, f"{token} was answered twice, or never asked"
            del self.asked[token]
            self.answers.append((token, response))
        self.requests += decision.requests
        return decision

    def _append(self, record: CoordinatorRecord, decision: CoordinatorDecision) -> None:
        key = decode_record_key(type(record.key), encode_record_key(record.key))
        value = record.value
        if value is not None:
            value, _ = decode_versioned(type(value), encode_versioned(value, record.value_version))
        context = ApplyContext(len(self.log), self.now.wall_ms)
        if decision.transaction is not None:
            producer_id, producer_epoch = decision.transaction
            context = ApplyContext(len(self.log), self.now.wall_ms, producer_id, producer_epoch, True)
        self.log.append(Entry(key, value, context))
        self.machine.apply(key, value, context)
