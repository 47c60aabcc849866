"""Delegation tokens on three brokers in virtual time: known to all, expired everywhere at once, removed by the timer;
also when the controller dies and while the metadata engine is away.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from simulation.cluster import BROKERS, SimulatedCluster
from simulation.cluster_scenario import SETTINGS
from simulation.world import World

from barnabas.errors import KafkaError
from barnabas.machines.controller.delegation_tokens import CreateToken, DelegationToken, ExpireToken, RenewToken
from barnabas.machines.sasl.mechanism import SaslError
from barnabas.machines.sasl.scram import HASHES, ScramClient
from barnabas.machines.sasl.scram_server import ScramServer
from barnabas.server.broker import Broker

LIFE_MS, LONGEST_MS, CHECK_MS = 60_000, 200_000, 10_000
ALICE = "User:alice"


class Tokens:
    def __init__(self, world: World) -> None:
        self.world = world
        settings = SETTINGS | {
            "delegation.token.secret.key": "key",
            "delegation.token.expiry.check.interval.ms": str(CHECK_MS),
        }
        self.cluster = SimulatedCluster(world, settings, random.Random(1))

    async def start(self) -> None:
        await self.cluster.start()
        await self.cluster.wait_until_whole()

    async def decide(self, command: Any) -> Any:
        controller = self.cluster.brokers[await self.cluster.wait_for_controller()]
        client = controller.broker.controller
        made: Coroutine[Any, Any, Any] = (
            client.create_token(command) if isinstance(command, CreateToken) else client.change_token(command)
        )
        return await self.world.start(controller.node, made)

    async def create(self) -> DelegationToken:
        token: DelegationToken = await self.decide(CreateToken(ALICE, ALICE, (), LONGEST_MS, LIFE_MS))
        await self.until_known(token.token_id, True)
        return token

    async def until_known(self, token_id: str, known: bool) -> None:
        def is_so() -> bool:
            images = [each.broker.cluster.image for each in self.cluster.brokers.values() if each.alive]
            return all((token_id in image.tokens) is known for image in images)

        await self.cluster._until(is_so)

    async def who_lets_in(self, token: DelegationToken, mechanism: str = "SCRAM-SHA-256") -> list[int]:
        """Numbers of the brokers at which one can log in with it."""
        return [
            number
            for number, each in self.cluster.brokers.items()
            if each.alive and await self.world.start(each.node, _lets_in(each.broker, token.token_id, mechanism))
        ]


async def _lets_in(broker: Broker, token_id: str, mechanism: str) -> bool:
    tokens = broker.tokens
    password = base64.b64encode(tokens.hmac_of(token_id)).decode()
    client = ScramClient(mechanism, token_id, password, "nonce", is_token=True)
    wait = tokens.prepare_login(mechanism, client.begin())
    if wait is not None:
        await wait
    server = ScramServer(mechanism, lambda _: None, lambda name: tokens.login(mechanism, name), "more", b"fake")
    try:
        server.respond(client.respond(server.respond(client.begin())) or b"")
    except SaslError:
        return False
    assert server.username == "alice" and server.is_token
    return True


def run(scenario: Any) -> None:
    with World(1) as world:
        tokens = Tokens(world)

        async def main() -> None:
            await tokens.start()
            await scenario(tokens)

        world.run(main())


@pytest.mark.parametrize("mechanism", HASHES)
def test_every_broker_lets_the_holder_in_until_the_token_expires(mechanism: str) -> None:
    async def scenario(tokens: Tokens) -> None:
        token = await tokens.create()
        assert await tokens.who_lets_in(token, mechanism) == list(BROKERS)
        await asyncio.sleep(LIFE_MS / 2000)
        await tokens.decide(RenewToken(token.token_id, ALICE, LIFE_MS))
        await asyncio.sleep(LIFE_MS * 0.75 / 1000)
        assert await tokens.who_lets_in(token, mechanism) == list(BROKERS)
        await asyncio.sleep(LIFE_MS / 2000)
        assert await tokens.who_lets_in(token, mechanism) == []
        began = tokens.world.loop.time()
        await tokens.until_known(token.token_id, False)
        assert tokens.world.loop.time() - began <= CHECK_MS / 1000 + 1
        assert tokens.cluster.image().tokens == {}

    run(scenario)


def test_it_is_ended_everywhere() -> None:
    async def scenario(tokens: Tokens) -> None:
        token, other = await tokens.create(), await tokens.create()
        await tokens.decide(ExpireToken(token.token_id, ALICE, -1))
        await tokens.until_known(token.token_id, False)
        assert await tokens.who_lets_in(token) == []
        assert await tokens.who_lets_in(other) == list(BROKERS)

    run(scenario)


def test_it_expires_while_the_metadata_engine_is_away() -> None:
    async def scenario(tokens: Tokens) -> None:
        token = await tokens.create()
        tokens.world.engine.stop()
        await asyncio.sleep(LIFE_MS / 2000)
        assert await tokens.who_lets_in(token) == list(BROKERS)
        with pytest.raises(KafkaError):
            await asyncio.wait_for(tokens.decide(ExpireToken(token.token_id, ALICE, -1)), 3600)
        await asyncio.sleep(LIFE_MS / 1000)
        known = [each.broker.cluster.image.tokens for each in tokens.cluster.brokers.values()]
        assert all(token.token_id in each for each in known), "nobody could remove it yet"
        assert await tokens.who_lets_in(token) == []
        tokens.world.engine.restart()
        await tokens.until_known(token.token_id, False)
        assert tokens.cluster.image().tokens == {}

    run(scenario)


def test_the_next_controller_removes_it() -> None:
    async def scenario(tokens: Tokens) -> None:
        token = await tokens.create()
        controller = tokens.cluster.image().controller_id
        tokens.cluster.brokers[controller].kill()
        await tokens.cluster.wait_for_controller(other_than=controller)
        others = [number for number in BROKERS if number != controller]
        assert await tokens.who_lets_in(token) == others
        await asyncio.sleep(LIFE_MS / 1000)
        assert await tokens.who_lets_in(token) == []
        await tokens.until_known(token.token_id, False)
        await tokens.cluster.start_broker(controller)
        later = await tokens.create()
        assert await tokens.who_lets_in(later) == list(BROKERS)

    run(scenario)
