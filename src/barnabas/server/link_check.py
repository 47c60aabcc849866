"""Before a broker joins the cluster: would the others accept it, and would it accept them?

One that cannot log in would still be given replicas, which it could never copy. So it does not join at all: what is
checked with its own settings needs nobody else (the certificate against the authorities, as in Kafka, and the
credentials against its own listener), and brokers that run are asked. Whoever cannot be reached decides nothing.
"""

import asyncio
import hmac
import ssl
from collections.abc import Sequence

from barnabas.config.broker import BrokerConfig
from barnabas.config.inter_broker import BrokerLogin
from barnabas.config.security_rules import plain_users
from barnabas.machines.sasl.scram import HASHES, salted_password
from barnabas.machines.sasl.scram_server import ScramCredential
from barnabas.metadata.image import ClusterImage
from barnabas.net.link import Link, LinkError
from barnabas.server.scram_users import credentials_of

ATTEMPTS = 3
"""A broker may need a moment to notice a change (a new user, another certificate)."""
PATIENCE_S = 10.0


def certificate_fault(server: ssl.SSLContext, client: ssl.SSLContext) -> str:
    """Why a broker with these settings could not connect to one with the same; empty if it could.

    `client` must not check the host name: there is none.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="broker"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(10):  # flights of a handshake: four at most
        done = 0
        for end in ends:
            try:
                end.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError as error:
                return f"the certificate is not accepted by its own listener's authorities: {error.verify_message}"
            except ssl.SSLError as error:
                return f"a TLS handshake with itself fails: {error.reason}"
        if done == len(ends):
            return ""
    return "a TLS handshake with itself does not end"


def login_fault(config: BrokerConfig, listener: str, login: BrokerLogin, image: ClusterImage) -> str:
    """Why the broker's own listener would refuse it. Takes as long as a SCRAM proof."""
    who = f"brokers log in to each other as {login.username}"
    if login.mechanism == "PLAIN":
        known = plain_users(config, listener).get(login.username)
        is_right = known is not None and hmac.compare_digest(known.encode(), login.password.encode())
    else:
        credential = credentials_of(image, login.username).get(login.mechanism)
        if credential is None:
            return f"{who}, who has no password for {login.mechanism} in the metadata yet"
        salt, iterations = credential.salt, credential.iterations
        salted = salted_password(HASHES[login.mechanism], login.password.encode(), salt, iterations)
        computed = ScramCredential.of(login.mechanism, salt, salted, iterations)
        is_right = hmac.compare_digest(computed.stored_key, credential.stored_key)
    if is_right:
        return ""
    return f"{who}, but the password in sasl.jaas.config is not the one that the listener {listener} takes"


async def peers_fault(links: Sequence[Link]) -> str:
    """Why brokers that run and this one do not accept each other; empty if one of them does, or none responds."""
    asking = [asyncio.ensure_future(_fault_of(link)) for link in links]
    faults: list[str] = []
    try:
        for each in asyncio.as_completed(asking, timeout=PATIENCE_S):
            fault = await each
            if fault == "":
                return ""
            if fault is not None:
                faults.append(fault)
    except TimeoutError:
        pass
    finally:
        for each in asking:
            each.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return "; ".join(faults)


async def _fault_of(link: Link) -> str | None:
    """None where nobody can say."""
    fault: str | None = None
    for _ in range(ATTEMPTS):
        try:
            await link.ping()
        except LinkError as error:
            fault = str(error) if error.denied else None
        else:
            return ""
    return fault
