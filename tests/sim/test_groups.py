"""A classic group under faults: clients that freeze, crash and restart, messages lost, the coordinator failing over.

One seed is one history. After each event the machine checks itself, and these must hold over the whole history: a
partition has one owner in each generation; the offsets that the log accepts for a partition never go back; a fetched
offset is not behind one that was acknowledged before; no request is answered twice. Then the faults stop, and within a
bound all clients share one generation that covers every partition, with no request left open.

More seeds: `SIM_SEEDS=3000 pytest tests/sim/test_groups.py`; one seed again: with `SIM_FIRST_SEED=1234 SIM_SEEDS=1`.
"""

import dataclasses
import heapq
import itertools
import os
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from group_clients import GROUP, PARTITIONS, TOPIC, Client
from machine_driver import Entry, MachineDriver

from barnabas.machines.group import commands
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.shard import GroupShard
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey

SEEDS = int(os.environ.get("SIM_SEEDS", "200"))
FIRST_SEED = int(os.environ.get("SIM_FIRST_SEED", "0"))
EVENTS_WITH_FAULTS = 500
CALM_MS = 180_000
"""Longer than a session, a rebalance and a request time-out one after the other, twice."""
REQUEST_TIMEOUT_MS = 5000
SETTINGS = GroupSettings(group_initial_rebalance_delay_ms=1000, offsets_retention_check_interval_ms=10**12)


@dataclass(eq=False, slots=True)
class Request:
    """The token of a request, with what its answer is examined by."""

    client: Client
    number: int
    step: str
    command: Any
    acknowledged: dict[int, int] = field(default_factory=dict)
    """The offsets whose commits had been answered when it arrived."""


class Simulation:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.driver = MachineDriver(lambda: GroupShard(SETTINGS, random))
        self.committed = 0
        self.held: list[tuple[int, Request, Any]] = []
        """(log end that must be committed first, request, response)"""
        self.numbers = itertools.count()
        self.queue: list[tuple[int, int, str, Any]] = []
        self.open: dict[Client, int] = {}
        """Client -> number of the request that it waits for."""
        self.frozen_until: dict[Client, int] = {}
        self.owners: dict[tuple[int, int], str] = {}
        self.acknowledged: dict[int, int] = {}
        self.with_faults = True
        self.clients = [
            Client(
                f"c{number}",
                random,
                instance_id=f"i{number}" if random.random() < 0.3 else None,
                version=random.choice((3, 5, 8, 9)),
                session_timeout_ms=random.choice((6000, 10_000, 30_000)),
                rebalance_timeout_ms=random.choice((5000, 20_000)),
            )
            for number in range(random.randint(1, 4))
        ]
        for client in list(self.clients):
            if client.instance_id is not None:
                client.version = max(client.version, 5)
                if random.random() < 0.3:  # somebody starts it a second time: one of the two is fenced
                    twin = dataclasses.replace(client, name=f"{client.name}-twin")
                    self.clients.append(twin)
                    self.at(random.randrange(5000, 60_000), "turn", twin)
            self.at(random.randrange(3000), "turn", client)
        self.at(0, "commit", None)
        self.at(random.randrange(60_000), "failover", None)

    def at(self, delay_ms: int, what: str, subject: Any) -> None:
        heapq.heappush(self.queue, (self.driver.now_ms + delay_ms, next(self.numbers), what, subject))

    def run(self) -> None:
        for _ in range(EVENTS_WITH_FAULTS):
            self.step()
        self.with_faults = False
        self.frozen_until.clear()
        end_ms = self.driver.now_ms + CALM_MS
        while self.driver.now_ms < end_ms and not self.is_settled():
            self.step()
        assert self.is_settled(), [(client.name, client.step, client.generation) for client in self.clients]
        self.check_reload()

    def step(self) -> None:
        time_ms, _, what, subject = heapq.heappop(self.queue)
        before = len(self.driver.answers)
        self.driver.advance_to(time_ms)
        getattr(self, f"on_{what}")(subject)
        self.held += [(len(self.driver.log), *answer) for answer in self.driver.answers[before:]]
        self.release()

    def is_settled(self) -> bool:
        alive = [client for client in self.clients if not client.is_dead]
        owned = sorted(partition for client in alive for partition in client.positions)
        return (
            all(client.step == "work" for client in alive)
            and len({client.generation for client in alive}) <= 1
            and (owned == list(range(PARTITIONS)) or not alive)
            and not self.driver.asked
        )

    # Events

    def on_turn(self, client: Client) -> None:
        self.at(self.random.randrange(1000, 3500), "turn", client)
        if client.is_dead or self.frozen_until.get(client, 0) > self.driver.now_ms or client in self.open:
            return
        if self.with_faults and self.inject(client):
            return
        if self.with_faults or client.step != "work":
            self.send(client, client.next_request())
        else:
            self.send(client, client.heartbeat_request())

    def inject(self, client: Client) -> bool:
        chance = self.random.random()
        if chance < 0.03:
            self.frozen_until[client] = self.driver.now_ms + self.random.randrange(5000, 40_000)
        elif chance < 0.06:
            client.restart()
        elif chance < 0.07 and not client.is_dead:
            client.is_dead = True
        else:
            return False
        return True

    def send(self, client: Client, command: Any) -> None:
        number = next(self.numbers)
        self.open[client] = number
        timeout_ms = REQUEST_TIMEOUT_MS
        if isinstance(command, commands.JoinGroup):
            timeout_ms += client.rebalance_timeout_ms
        self.at(timeout_ms, "timeout", (client, number))
        if not (self.with_faults and self.random.random() < 0.03):
            self.at(self.random.randrange(50), "arrival", Request(client, number, client.step, command))

    def on_arrival(self, request: Request) -> None:
        if self.open.get(request.client) == request.number:
            request.acknowledged = dict(self.acknowledged)
            if not self.answers_at_rest(request):
                self.driver.submit(request.command, request)

    def answers_at_rest(self, request: Request) -> bool:
        """As the broker does: a heartbeat that only moves a deadline needs no decision."""
        if not isinstance(request.command, commands.Heartbeat) or self.committed < len(self.driver.log):
            return False
        shard = self.driver.machine
        assert isinstance(shard, GroupShard)
        response = shard.heartbeat_at_rest(request.command.request, self.driver.now_ms)
        if response is not None:
            self.driver.answer_at_once(request, response)
        return response is not None

    def on_timeout(self, subject: tuple[Client, int]) -> None:
        client, number = subject
        if self.open.get(client) == number:
            del self.open[client]  # the client tries the same step again at its next turn

    def on_commit(self, _: None) -> None:
        """The replicas have caught up."""
        self.at(self.random.randrange(1, 1500), "commit", None)
        self.committed = len(self.driver.log)

    def on_failover(self, _: None) -> None:
        self.at(self.random.randrange(10_000, 60_000), "failover", None)
        if not self.with_faults:
            return
        cut = self.random.randint(self.committed, len(self.driver.log))
        del self.driver.log[cut:]
        self.held = [answer for answer in self.held if answer[0] <= self.committed]
        self.driver.load()
        self.committed = len(self.driver.log)

    def release(self) -> None:
        ready = [answer for answer in self.held if answer[0] <= self.committed]
        self.held = [answer for answer in self.held if answer[0] > self.committed]
        for _, request, response in ready:
            client = request.client
            if self.open.get(client) != request.number:
                continue  # the client has given this request up
            if self.with_faults and self.random.random() < 0.03:
                continue  # the answer is lost
            del self.open[client]
            client.on_answer(request.step, response)
            self.examine(request, response)
            if client.step in ("join", "sync", "fetch") and not client.is_dead:
                self.at(self.random.randrange(20), "turn_now", client)

    def on_turn_now(self, client: Client) -> None:
        if client not in self.open and not client.is_dead and self.frozen_until.get(client, 0) <= self.driver.now_ms:
            self.send(client, client.next_request())

    # What must hold

    def examine(self, request: Request, response: Any) -> None:
        client, command = request.client, request.command
        if isinstance(command, commands.SyncGroup) and not response.error_code:
            for partition in response.assignment:
                owner = self.owners.setdefault((client.generation, partition), client.identity)
                assert owner == client.identity, f"two owners of {partition} in generation {client.generation}"
        if isinstance(command, commands.OffsetFetch):
            for partition in response.topics[0].partitions:
                expected = request.acknowledged.get(partition.partition_index, -1)
                assert partition.error_code or partition.committed_offset >= expected, "an acknowledged offset is gone"
        if isinstance(command, commands.OffsetCommit) and not response.topics[0].partitions[0].error_code:
            for partition in command.request.topics[0].partitions:
                index = partition.partition_index
                self.acknowledged[index] = max(self.acknowledged.get(index, -1), partition.committed_offset)

    def check_log(self) -> None:
        last: dict[int, int] = {}
        for entry in self.driver.log:
            if isinstance(entry, Entry) and isinstance(entry.key, OffsetCommitKey):
                partition = entry.key.partition
                assert entry.value.offset >= last.get(partition, -1), f"the offset of {partition} went back"
                last[partition] = entry.value.offset

    def check_reload(self) -> None:
        """A machine made from the log agrees with the one that wrote it."""
        self.check_log()
        shard = self.driver.machine
        assert isinstance(shard, GroupShard)
        before = dict(shard.offsets.of_group(GROUP).get(TOPIC, {}))
        stored = [group.stored for group in shard.registry]
        self.driver.load()
        assert isinstance(self.driver.machine, GroupShard)
        assert dict(self.driver.machine.offsets.of_group(GROUP).get(TOPIC, {})) == before
        assert [group.stored for group in self.driver.machine.registry] == stored


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SEEDS, 50))
def test_group_survives_faults(first: int) -> None:
    for seed in range(first, min(first + 50, FIRST_SEED + SEEDS)):
        try:
            Simulation(seed).run()
        except AssertionError as failure:
            failure.add_note(f"again: SIM_FIRST_SEED={seed} SIM_SEEDS=1 pytest tests/sim/test_groups.py")
            raise
