"""Hands leadership over before a broker stops, while it still serves: clients find the new leaders without an error.

The first step of `Broker.stop`. The controller marks this broker as shutting down, so that nobody elects it again, and
elects other in-sync replicas. Partitions that have none yet, but a replica that is alive, are asked for again until the
time is up; a partition with no other replica goes down with its broker.
"""

import asyncio
import logging

from barnabas.errors import KafkaError
from barnabas.metadata.image import ClusterImage
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)

TIMEOUT_MS = 15_000
PAUSE_S = 0.1
IMAGE_TIMEOUT_MS = 2_000


async def hand_over_leaders(cluster: ClusterMembership, controller: ControllerClient) -> None:
    """Returns when this broker leads nothing that another one could lead, or when the time is up."""
    cluster.leave()
    if len(cluster.image.brokers) < 2:
        return
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TIMEOUT_MS / 1000
    remaining: tuple[TopicPartition, ...] = ()
    while (left_s := deadline - loop.time()) > 0:
        try:
            remaining = await controller.controlled_shutdown(int(left_s * 1000))
        except KafkaError as error:
            logger.warning("leadership could not be handed over: %s", error)
            return
        if not any(_has_other_replica(cluster.image, each, cluster.broker_id) for each in remaining):
            break
        await asyncio.sleep(PAUSE_S)
    if remaining:
        logger.info("%d partition(s) have no other replica in sync and are without a leader now", len(remaining))
    try:
        await cluster.wait_until(lambda image: _leads_only(image, cluster.broker_id, remaining), IMAGE_TIMEOUT_MS)
    except TimeoutError:
        logger.info("the controller's decision has not arrived yet")


def _has_other_replica(image: ClusterImage, where: TopicPartition, broker_id: int) -> bool:
    partition = image.partition(where.topic, where.partition)
    return partition is not None and any(each != broker_id and each in image.brokers for each in partition.replicas)


def _leads_only(image: ClusterImage, broker_id: int, remaining: tuple[TopicPartition, ...]) -> bool:
    led = sum(partition.leader == broker_id for _, partition in image.all_partitions())
    return led <= len(remaining)
