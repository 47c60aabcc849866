"""The client's group membership under faults, around the real coordinator machine, one seed a history.

Members of either protocol join, freeze, stall (nobody polls), crash, restart and leave; messages are lost, the
coordinator moves, loads and fails over, topics grow and appear. At every moment no partition is read by two members
that count as such. Then the faults stop, and within a bound every partition is read by exactly one.

More seeds: `SIM_SEEDS=3000 pytest tests/sim/test_memberships.py`; one again: `SIM_FIRST_SEED=1234 SIM_SEEDS=1`.
"""

import os
import re
from random import Random
from typing import Any

import pytest
from membership_world import Member, World

from barnabas.client.consumer.group.subscription import Subscription

SEEDS = int(os.environ.get("SIM_SEEDS", "80"))
FIRST_SEED = int(os.environ.get("SIM_FIRST_SEED", "0"))
FAULTS_MS = 60_000
CALM_MS = 120_000
SETTLED_MS = 10_000
"""So long, once nothing disturbs it, a group stays as it is before it is believed."""
STRATEGIES = (("range",), ("roundrobin",), ("sticky",), ("cooperative-sticky",), ("range", "cooperative-sticky"))


class History:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.world = World(random, {"t": 5, "u": 3})
        self.options: dict[str, Any] = {"group_protocol": "consumer"}
        if random.random() < 0.6:
            self.options = {"partition_assignment_strategy": random.choice(STRATEGIES)}
        self.numbers = iter(range(1000))
        for _ in range(random.randint(1, 4)):
            self.start()

    def start(self, instance_id: str | None = None, subscription: Subscription | None = None) -> Member:
        name = f"m{next(self.numbers)}"
        if instance_id is None and self.random.random() < 0.25:
            instance_id = name
        subscription = subscription or self.random.choice(
            (
                Subscription(frozenset({"t"})),
                Subscription(frozenset({"t", "u"})),
                Subscription(pattern=re.compile("[tu].*"), is_resolved=False),
            )
        )
        return self.world.add(name, subscription, group_instance_id=instance_id, **self.options)

    def run(self) -> None:
        world, random = self.world, self.random
        world.loss, world.moved = random.choice((0, 0.02, 0.05)), random.choice((0, 0.03))
        end_ms = world.now_ms + FAULTS_MS
        while world.now_ms < end_ms:
            world.run(random.randrange(200, 4000))
            self.disturb()
        world.loss = world.moved = 0
        for member in world.members:
            member.frozen_until_ms = member.stalled_until_ms = 0
        end_ms = world.now_ms + CALM_MS
        settled_ms = 0
        while world.now_ms < end_ms and settled_ms < SETTLED_MS:
            before_ms = world.now_ms
            world.run(500)
            settled_ms = settled_ms + world.now_ms - before_ms if world.is_settled() else 0
        assert settled_ms >= SETTLED_MS, self.state()

    def disturb(self) -> None:
        world, random = self.world, self.random
        alive = [member for member in world.members if not member.is_dead]
        member = random.choice(alive)
        chance = random.random()
        if chance < 0.15:
            member.frozen_until_ms = world.now_ms + random.randrange(1000, 15_000)
        elif chance < 0.3:
            member.stalled_until_ms = world.now_ms + random.randrange(1000, 20_000)
        elif chance < 0.4 and not self.owes_a_rejoin(member):
            world.kill(member)
            # Static members must come back with the subscription they had: they are let in without a rebalance.
            instance_id = member.machine.options.group_instance_id
            self.start(instance_id, member.machine.subscription if instance_id else None)
        elif chance < 0.45 and len(alive) > 1:
            world.feed(member, lambda now_ms: member.machine.close(now_ms, leave=True))
            world.kill(member)
        elif chance < 0.55 and len(alive) < 5:
            self.start()
        elif chance < 0.65:
            world.fail_over()
        elif chance < 0.75:
            topic = random.choice(("t", "u", "tt"))
            world.topics[topic] = world.topics.get(topic, 0) + 1
            world.show_topics()
        elif chance < 0.85:
            topics = random.choice(({"t"}, {"t", "u"}, {"u"}))
            world.feed(member, member.machine.subscribe, Subscription(frozenset(topics)))

    def owes_a_rejoin(self, member: Member) -> bool:
        """A static member that dies after giving partitions up and before joining again: nobody but it knows that they
        are free, and its successor is let in without a rebalance. That is a gap of Kafka's classic protocol."""
        static = member.machine.options.group_instance_id is not None
        owes = bool(getattr(member.machine, "_rejoin", None))
        return static and (owes or member.busy_with is not None or bool(member.events))

    def state(self) -> str:
        lines = [f"wanted {sorted(self.world.wanted())}"]
        for member in self.world.members:
            if not member.is_dead:
                machine: Any = member.machine
                owned = ", ".join(map(str, sorted(member.owned)))
                lines.append(f"{member.name}: {machine.phase} {machine.identity} {machine.subscription} owns {owned}")
                lines += member.said[-8:]
        return "\n".join(lines)


@pytest.mark.parametrize("first", range(FIRST_SEED, FIRST_SEED + SEEDS, 20))
def test_partitions_have_one_reader_and_all_are_read_in_the_end(first: int) -> None:
    for seed in range(first, min(first + 20, FIRST_SEED + SEEDS)):
        try:
            History(seed).run()
        except AssertionError as failure:
            failure.add_note(f"again: SIM_FIRST_SEED={seed} SIM_SEEDS=1 pytest tests/sim/test_memberships.py")
            raise
