"""Faults at random between clients and a broker, and the judgement of what the clients have seen of each other.

    with Faults(broker, proxy, seed=7):
        ...                                # clients at work through the proxy
    judge(sent, seen, log)

The same seed gives the same faults in the same order; when they strike depends on the machine.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

from faulty_proxy import FaultyProxy

from barnabas.testing import Broker

SELDOM = {"restart": 1, "refuse": 2, "swallow": 2}
OFTEN = {"drop_answer": 6, "drop_request": 6, "cut_answer": 4, "delay": 4, "cut_all": 4, "slice": 3, "error": 4}
APIS = (
    *("Produce", "Produce", "Fetch", "EndTxn", "EndTxn", "AddPartitionsToTxn", "InitProducerId", "FindCoordinator"),
    *("Metadata", "AddOffsetsToTxn", "TxnOffsetCommit", "TxnOffsetCommit", "OffsetFetch", "Heartbeat", "JoinGroup"),
)
PASSING_ERRORS = ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR")


class Faults:
    def __init__(self, broker: Broker, proxy: FaultyProxy, *, seed: int) -> None:
        self._broker = broker
        self._proxy = proxy
        self._random = random.Random(seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="faults")
        self.history: list[str] = []
        self.broken: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._proxy.heal()
        self._proxy.accept()
        if self.broken is not None:
            raise self.broken

    def _run(self) -> None:
        kinds = {**OFTEN, **SELDOM}
        try:
            while not self._stop.wait(self._random.uniform(0.01, 0.12)):
                (kind,) = self._random.choices(list(kinds), list(kinds.values()))
                self.history.append(kind)
                getattr(self, f"_{kind}")(self._random.choice(APIS))
        except Exception as error:
            self.broken = error

    def _drop_answer(self, api: str) -> None:
        self._proxy.drop_answer(api)

    def _drop_request(self, api: str) -> None:
        self._proxy.drop_request(api)

    def _cut_answer(self, api: str) -> None:
        self._proxy.cut_answer(api, after_bytes=self._random.randrange(60))

    def _delay(self, api: str) -> None:
        self._proxy.delay_answer(api, seconds=self._random.uniform(0.01, 0.3))

    def _swallow(self, api: str) -> None:
        """The client hears nothing until its time-out."""
        self._proxy.swallow_answers(api)

    def _cut_all(self, _: str) -> None:
        self._proxy.cut_connections()

    def _slice(self, _: str) -> None:
        self._proxy.slice_answers(self._random.choice((1, 7, 100)))
        self._stop.wait(0.05)
        self._proxy.slice_answers(0)

    def _error(self, _: str) -> None:
        """Some of these come after the batch was refused, as the broker sees it; the client must ask again."""
        self._broker.fault("Produce", error=self._random.choice(PASSING_ERRORS))

    def _refuse(self, _: str) -> None:
        self._proxy.refuse()
        self._stop.wait(self._random.uniform(0.02, 0.3))
        self._proxy.accept()

    def _restart(self, _: str) -> None:
        self._broker.stop()
        while True:
            time.sleep(0.05)
            try:
                self._broker.start()
                return
            except OSError:
                continue  # somebody's outgoing connection got its port meanwhile


class Seen(NamedTuple):
    offset: int
    value: bytes


def judge(
    expected: Mapping[int, Sequence[bytes]],
    offsets: Mapping[bytes, int],
    seen: Mapping[int, Sequence[Seen]],
    forbidden: frozenset[bytes] = frozenset(),
) -> list[str]:
    """What is wrong, in words; nothing, if all is well.

    `expected`: the values of each partition that were acknowledged and committed, in the order of sending, each unique.
    `offsets`: where the producer was told that they are. `seen`: what a consumer got. `forbidden`: never to be seen.
    """
    faults = []
    for partition, values in expected.items():
        got = seen.get(partition, ())
        faults += [f"{partition}: aborted and read: {each}" for each in got if each.value in forbidden]
        faults += [f"{partition}: {one} before {other}" for one, other in pairwise(got) if other.offset <= one.offset]
        counts: dict[bytes, int] = {}
        for each in got:
            counts[each.value] = counts.get(each.value, 0) + 1
        faults += [f"{partition}: {value!r} came {count} times" for value, count in counts.items() if count > 1]
        faults += [f"{partition}: {value!r} is lost" for value in values if value not in counts]
        wanted = set(values)
        order = [each.value for each in got if each.value in wanted]
        if not faults and order != list(values):
            at = next(place for place, (one, other) in enumerate(zip(order, values)) if one != other)
            faults.append(f"{partition}: out of order from {values[at]!r} on, where {order[at]!r} came")
        known = wanted | forbidden
        faults += [f"{partition}: nobody sent {each}" for each in got if each.value not in known]
        faults += [
            f"{partition}: {each} was acknowledged at {offsets[each.value]}"
            for each in got
            if offsets.get(each.value, each.offset) not in (each.offset, -1)
        ]
    return faults
