"""From an address to a connection that is ready: look up the name, connect, TLS, versions, SASL.

Every address that a name stands for is tried in turn. What is raised names the address and the reason, so that the user
can distinguish a typo from a firewall from a wrong password.
"""

import asyncio
import logging
import ssl

from barnabas.client.api_versions import ask_versions
from barnabas.client.connection import Connection, reason
from barnabas.client.environment import environment
from barnabas.client.errors import AuthenticationError, ClientTimeoutError, UnreachableError
from barnabas.client.metadata import Node
from barnabas.client.metrics.meters import NetworkMeters
from barnabas.client.options.common import CommonOptions
from barnabas.client.sasl.authentication import authenticate
from barnabas.client.sasl.tokens import TokenSource
from barnabas.client.security import tls_context
from barnabas.machines.sasl.login import RENEWED_SHARE
from barnabas.transport.channel import Channel, Network, ResolvedAddress, SocketOptions

logger = logging.getLogger(__name__)

CLOSED_IN_HANDSHAKE = (
    "it closed the connection when TLS was sent to it: does this port speak TLS, or plain text"
    " (security_protocol=PLAINTEXT or SASL_PLAINTEXT)?"
)


class Connector:
    """Opens connections: address, TLS, versions, SASL."""

    def __init__(self, options: CommonOptions, network: Network | None = None) -> None:
        self._options = options
        self._network: Network = network or environment().network
        self._socket_options = SocketOptions(
            send_buffer_bytes=options.send_buffer_bytes, receive_buffer_bytes=options.receive_buffer_bytes
        )
        self._tls: ssl.SSLContext | None = None
        self._tokens = TokenSource(options)
        self.meters = NetworkMeters()

    async def connect(self, node: Node, failures: int = 0) -> Connection:
        """Raises UnreachableError, AuthenticationError. More `failures` so far mean a longer time-out."""
        options = self._options
        timeout_ms = min(
            options.socket_connection_setup_timeout_ms << min(failures, 20),
            max(options.socket_connection_setup_timeout_ms, options.socket_connection_setup_timeout_max_ms),
        )
        channel = await self._open(node, timeout_ms / 1000)
        connection = Connection(
            channel,
            node.address,
            client_id=options.client_id,
            request_timeout_ms=options.request_timeout_ms,
            max_idle_ms=options.connections_max_idle_ms,
            meter=self.meters.node(node.id),
        )
        try:
            versions = await ask_versions(connection)
            connection.on_handshake_done(versions)
            if options.uses_sasl:
                _begin_session(connection, await authenticate(connection, options, self._tokens))
        except ClientTimeoutError as error:
            connection.close(error.message)
            raise UnreachableError(node.address, "it takes connections, but does not respond") from error
        except BaseException:
            connection.close("the first requests on it failed")
            raise
        logger.debug("%s: connected", node.address)
        return connection

    def begin_reauthentication(self, connection: Connection) -> None:
        """The session nears its end: close the gate for other requests, and open it when a new session has begun."""
        gate = connection.gate = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._reauthenticate(connection))

        def on_done(done: "asyncio.Task[None]") -> None:
            connection.gate = None
            if not gate.done():
                gate.set_result(None)
            if not done.cancelled() and done.exception() is not None:
                logger.warning("%s", done.exception())

        task.add_done_callback(on_done)

    async def _reauthenticate(self, connection: Connection) -> None:
        try:
            lifetime_ms = await authenticate(connection, self._options, self._tokens)
        except BaseException as error:
            connection.close(f"authenticating again failed ({error})")
            raise
        _begin_session(connection, lifetime_ms)
        logger.debug("%s: authenticated again", connection.address)

    async def _open(self, node: Node, timeout_s: float) -> Channel:
        try:
            async with asyncio.timeout(timeout_s):
                addresses = await self._network.look_up(node.host, node.port)
        except TimeoutError as error:
            raise UnreachableError(node.address, f"the name {node.host} could not be looked up in time") from error
        except OSError as error:
            raise UnreachableError(node.address, f"the name {node.host} is not known ({reason(error)})") from error
        faults = []
        for address in addresses:
            try:
                return await self._open_one(node, address, timeout_s)
            except TimeoutError:
                faults.append((address, f"no connection within {timeout_s * 1000:.0f} ms"))
            except OSError as error:
                faults.append((address, reason(error)))
        if len(faults) == 1:
            raise UnreachableError(node.address, faults[0][1])
        raise UnreachableError(node.address, "; ".join(f"{address}: {why}" for address, why in faults))

    async def _open_one(self, node: Node, address: ResolvedAddress, timeout_s: float) -> Channel:
        try:
            async with asyncio.timeout(timeout_s):
                channel = await self._network.connect(address, self._socket_options)
                if not self._options.uses_tls:
                    return channel
                try:
                    if self._tls is None:
                        self._tls = tls_context(self._options)
                    return await self._network.start_tls(channel, self._tls, node.host)
                except BaseException:
                    channel.close()
                    raise
        except ssl.SSLCertVerificationError as error:
            raise AuthenticationError(
                f"{node.address}: its certificate is not accepted ({error.verify_message}): check"
                " ssl_truststore_location, and that the address is a name in the certificate"
            ) from error
        except (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError) as error:
            raise OSError(CLOSED_IN_HANDSHAKE) from error
        except ConnectionResetError as error:
            if self._tls is None:
                raise
            raise OSError(CLOSED_IN_HANDSHAKE) from error
        except ssl.SSLError as error:
            raise AuthenticationError(
                f"{node.address}: the TLS handshake failed ({error.reason}): does this port speak TLS, and does it"
                " accept ssl_keystore_location and ssl_enabled_protocols?"
            ) from error


def _begin_session(connection: Connection, lifetime_ms: int) -> None:
    connection.reauthenticate_at = None
    if lifetime_ms > 0:
        share = environment().new_random().uniform(*RENEWED_SHARE)
        connection.reauthenticate_at = asyncio.get_running_loop().time() + share * lifetime_ms / 1000
