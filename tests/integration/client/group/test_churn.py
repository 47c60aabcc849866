"""Members come, go, freeze and die while the broker restarts: one owner a generation, no offset goes back, all is read.

The order of events comes from a seed, which is printed; `BARNABAS_SEED` repeats it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from client_churn import ChurnMember, CommittedWatch, Ledger
from confluent import make_topic
from confluent_kafka.admin import AdminClient
from eventually import eventually
from server_process import free_port

from barnabas import Producer
from barnabas.testing import Broker

TOPIC, GROUP, PARTITIONS = "orders", "readers", 8
MAX_POLL_MS = 1200
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "offsets.topic.num.partitions": "1",
}
CLASSIC = {"session_timeout_ms": 4000, "heartbeat_interval_ms": 100}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "cooperative": CLASSIC | {"partition_assignment_strategy": ["cooperative-sticky"]},
    "range": CLASSIC | {"partition_assignment_strategy": ["range"]},
    "kip848": {"group_protocol": "consumer"},
}
every_protocol = pytest.mark.parametrize("options", PROTOCOLS.values(), ids=PROTOCOLS.keys())


class Scene:
    def __init__(self, directory: Path, options: dict[str, Any], chance: random.Random) -> None:
        listeners = f"PLAINTEXT://127.0.0.1:{free_port()}"
        self.broker = Broker(SETTINGS | {"listeners": listeners}, data_dir=directory).start()
        self.bootstrap = self.broker.bootstrap
        make_topic(AdminClient({"bootstrap.servers": self.bootstrap}), TOPIC, partitions=PARTITIONS)
        self.producer = Producer(self.bootstrap, linger_ms=0)
        self.sent = [0] * PARTITIONS
        self.ledger = Ledger()
        self.watch = CommittedWatch(self.bootstrap, GROUP, TOPIC, PARTITIONS, self.ledger)
        self.present: list[ChurnMember] = []
        self.everyone: list[ChurnMember] = []
        self._options = options
        self._chance = chance

    def join(self) -> None:
        chance = random.Random(self._chance.random())
        name = f"member-{len(self.everyone)}"
        options = self._options | {"max_poll_interval_ms": MAX_POLL_MS}
        member = ChurnMember(self.bootstrap, GROUP, TOPIC, name, self.ledger, chance, **options)
        self.present.append(member)
        self.everyone.append(member)

    def write(self, count: int) -> None:
        for _ in range(count):
            partition = self._chance.randrange(PARTITIONS)
            self.producer.send(TOPIC, b"%d" % self.sent[partition], partition=partition)
            self.sent[partition] += 1

    def one_of_them(self) -> ChurnMember:
        return self.present.pop(self._chance.randrange(len(self.present)))

    def restart_broker(self) -> None:
        self.broker.stop()
        time.sleep(self._chance.uniform(0, 0.3))
        self.broker.start()

    def wait_until_all_is_read(self) -> None:
        self.producer.flush()
        eventually(
            lambda: ([self.watch.latest.get(number) for number in range(PARTITIONS)], self.ledger.faults),
            lambda seen: seen == (self.sent, []) or seen[1],
            timeout=60,
        )

    def close(self) -> None:
        for member in self.everyone:
            member.leave()
        for member in self.everyone:
            member.join()
        self.watch.stop()
        self.producer.close()
        self.broker.stop()


@contextmanager
def scene(directory: Path, options: dict[str, Any]) -> Iterator[tuple[Scene, random.Random]]:
    seed = int(os.environ.get("BARNABAS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    chance = random.Random(seed)
    made = Scene(directory, options, chance)
    try:
        yield made, chance
    finally:
        made.close()
    made.ledger.check()
    assert {number: len(made.ledger.read[number]) for number in range(PARTITIONS)} == dict(enumerate(made.sent))


def churn(made: Scene, chance: random.Random, rounds: int, happenings: list[str]) -> None:
    for number in range(rounds):
        made.write(chance.randrange(200))
        if number == rounds // 2:
            made.restart_broker()
        happens = chance.choice(happenings)
        if happens == "join" and len(made.present) < 6:
            made.join()
        elif happens == "leave" and len(made.present) > 2:
            made.one_of_them().leave()
        elif happens == "freeze":
            chance.choice(made.present).freeze(MAX_POLL_MS / 1000 * 1.3)
        elif happens == "die" and len(made.present) > 2:
            made.one_of_them().die()
        elif happens == "restart":
            made.restart_broker()
        time.sleep(chance.uniform(0, 0.4))


@every_protocol
def test_members_come_go_and_freeze(tmp_path: Path, options: dict[str, Any]) -> None:
    with scene(tmp_path, options) as (made, chance):
        for _ in range(6):
            made.join()
        churn(made, chance, 7, ["join", "leave", "freeze"])
        made.wait_until_all_is_read()


@pytest.mark.soak
@pytest.mark.timeout(1800)
@every_protocol
def test_members_come_go_freeze_and_die_for_long(tmp_path: Path, options: dict[str, Any]) -> None:
    with scene(tmp_path, options) as (made, chance):
        for _ in range(6):
            made.join()
        for _ in range(20):
            churn(made, chance, 20, ["join", "join", "leave", "freeze", "die", "restart"])
            made.wait_until_all_is_read()
