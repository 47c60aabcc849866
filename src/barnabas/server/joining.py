"""Whether a broker may join the cluster whose image it has read: it must be able to log in to the others.

Called by the broker before it registers. Brokers that reach each other in plain text are not asked.
"""

import asyncio

from barnabas.config.broker import BrokerConfig
from barnabas.config.inter_broker import broker_login
from barnabas.config.oauth import OAUTHBEARER
from barnabas.metadata.image import ClusterImage
from barnabas.server.broker_links import BrokerLinks
from barnabas.server.link_check import login_fault, peers_fault


async def why_not_to_join(links: BrokerLinks, config: BrokerConfig, image: ClusterImage) -> str:
    """Empty if it may."""
    security = links.security
    if security is None or security.is_plain or security.unusable:
        return ""
    login = broker_login(config)
    if login is not None and login.mechanism != OAUTHBEARER and security.is_chosen:
        loop = asyncio.get_running_loop()
        fault = await loop.run_in_executor(None, login_fault, config, security.listener, login, image)
        if fault:
            return fault
    probes = links.probes(image.brokers.values())
    try:
        return await peers_fault(probes)
    finally:
        for each in probes:
            each.close()
