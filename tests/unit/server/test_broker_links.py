"""Links to other brokers: made from the image, ended with their broker."""

import random

import pytest
from memory_network import HOST, MemoryNetwork, run_in_memory

from barnabas.metadata.image import BrokerEndpoint, BrokerImage, ClusterImage, Delta
from barnabas.net.link import LinkError
from barnabas.server.broker_links import BrokerLinks, LinkUse
from barnabas.types import NodeId


def image_with(*brokers: BrokerImage) -> ClusterImage:
    return ClusterImage(brokers={broker.node_id: broker for broker in brokers})


def broker(node_id: int, port: int = 9000, epoch: int = 1, other_port: int = 1) -> BrokerImage:
    endpoints = (BrokerEndpoint("CLIENTS", "elsewhere", other_port), BrokerEndpoint("BETWEEN", HOST, port))
    return BrokerImage(node_id, endpoints, epoch=epoch)


class Links:
    def __init__(self, network: MemoryNetwork, *brokers: BrokerImage) -> None:
        self.image = image_with(*brokers)
        self.links = BrokerLinks(network, random.Random(1), NodeId(1), lambda: self.image, listener="BETWEEN")

    def change(self, *brokers: BrokerImage) -> None:
        previous, self.image = self.image, image_with(*brokers)
        self.links.on_delta(Delta.between(previous, self.image))


def test_one_link_per_broker_and_use_on_the_brokers_listener() -> None:
    async def scenario(network: MemoryNetwork) -> None:
        world = Links(network, broker(2), broker(3, port=9001))
        link = world.links.to(2)
        assert link.address == f"{HOST}:9000" == world.links.address_of(2)
        assert world.links.to(2) is link
        assert world.links.to(2, LinkUse.REPLICATION) is not link
        assert world.links.to(3).address == f"{HOST}:9001"
        world.links.close()

    run_in_memory(scenario)


@pytest.mark.parametrize("known", [BrokerImage(2, ()), None])
def test_a_broker_that_cannot_be_reached(known: BrokerImage | None) -> None:
    async def scenario(network: MemoryNetwork) -> None:
        world = Links(network, *([known] if known is not None else []))
        with pytest.raises(LinkError, match="broker 2 is not in the cluster"):
            await world.links.to(2).ping()
        assert world.links.address_of(2) is None
        world.change(broker(2))
        with pytest.raises(LinkError, match="nothing listens there"):  # from now on it is tried
            await world.links.to(2).ping()
        world.links.close()

    run_in_memory(scenario)


def test_links_end_with_the_broker_and_begin_anew_after_its_restart() -> None:
    async def scenario(network: MemoryNetwork) -> None:
        world = Links(network, broker(2), broker(3))
        link, other = world.links.to(2), world.links.to(3)
        waiting = link.ping()
        world.change(broker(2, other_port=7), broker(3))  # nothing that concerns brokers among themselves
        assert world.links.to(2) is link
        world.change(broker(3))
        with pytest.raises(LinkError, match="broker 2 left the cluster"):
            await waiting
        world.change(broker(2, epoch=5), broker(3))
        assert world.links.to(2) is not link and world.links.to(3) is other
        restarted = world.links.to(2)
        world.change(broker(2, epoch=6), broker(3))  # so quickly that nobody saw it leave
        with pytest.raises(LinkError, match="broker 2 was started again"):
            await restarted.ping()
        moved = world.links.to(2)
        world.change(broker(2, epoch=6, port=9005), broker(3))
        assert world.links.to(2) is not moved and world.links.to(2).address == f"{HOST}:9005"
        world.links.close()

    run_in_memory(scenario)


def test_after_the_end() -> None:
    async def scenario(network: MemoryNetwork) -> None:
        world = Links(network, broker(2))
        before = world.links.to(2)
        world.links.close()
        for link in (before, world.links.to(2)):
            with pytest.raises(LinkError, match="this broker stops"):
                await link.ping()

    run_in_memory(scenario)
