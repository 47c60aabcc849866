"""How a link gets to a connection that is ready, and shows who it is: TLS before the first byte, SASL before the first
request of the link.

Called by `link` for a new connection, and again before a session ends (KIP-368). What one end does not accept of the
other is a LinkError with `denied`, in words that name no secret.
"""

import asyncio
import math
import ssl
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.machines.sasl.login import HANDSHAKE_VERSION, ClientLogin, LoginRefusedError
from barnabas.machines.sasl.mechanism import ClientMechanism, SaslError
from barnabas.net.deferred import Deferred
from barnabas.net.link_connection import LinkConnection, LinkError, Outgoing
from barnabas.net.security import LinkSecurity
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeResponse
from barnabas.transport.channel import Channel, Network, SocketOptions

AUTHENTICATE_VERSION = 1
"""The first one with the session's lifetime."""


async def open_channel(
    network: Network, host: str, port: int, options: SocketOptions, security: LinkSecurity | None
) -> Channel:
    """Every address of the host is tried. Raises OSError, LinkError."""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    failure: OSError | None = None
    for resolved in await network.look_up(host, port):
        try:
            channel = await network.connect(resolved, options)
            context = None if security is None else security.tls_context()
            return channel if context is None else await _encrypt(network, channel, context, host, address)
        except OSError as error:
            # "Refused" says that the process is gone, so all of its addresses must have refused.
            if failure is None or isinstance(failure, ConnectionRefusedError):
                failure = error
    raise failure or OSError("its name stands for no address")


async def _encrypt(network: Network, channel: Channel, context: ssl.SSLContext, host: str, address: str) -> Channel:
    """Raises OSError, LinkError. The channel given is used up."""
    try:
        return await network.start_tls(channel, context, host)
    except ssl.SSLCertVerificationError as error:
        channel.close()
        raise LinkError(f"{address}: its certificate is not accepted: {error.verify_message}", denied=True) from error
    except (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError) as error:
        channel.close()
        raise OSError("it closed the connection in the TLS handshake") from error
    except ssl.SSLError as error:
        channel.close()
        raise LinkError(f"{address}: the TLS handshake failed: {error.reason}", denied=True) from error
    except BaseException:
        channel.close()
        raise


async def ask_versions(connection: LinkConnection, *, is_encrypted: bool) -> None:
    """The first request. A peer that does not accept this broker's certificate closes the connection now: its alert may
    be lost on the way. Raises LinkError.
    """
    try:
        listed = await _ask(connection, ApiVersionsRequest(), 0, ApiVersionsResponse)
    except LinkError as error:
        if error.denied or not is_encrypted:
            raise
        why = f"{error} after the TLS handshake: does it accept this broker's certificate?"
        raise LinkError(why, denied=True) from error
    connection.on_versions({api.api_key: (api.min_version, api.max_version) for api in listed.api_keys})


async def log_in(connection: LinkConnection, security: LinkSecurity) -> int:
    """The session's lifetime in milliseconds, 0 for as long as the connection. Raises LinkError."""
    try:
        mechanism = await security.mechanism()
        return 0 if mechanism is None else await _exchange(connection, mechanism)
    except SaslError as error:
        raise LinkError(f"{connection.address}: {error}", denied=True) from None


async def _exchange(connection: LinkConnection, mechanism: ClientMechanism) -> int:
    login = ClientLogin(mechanism)
    try:
        request: SaslAuthenticateRequest | None = login.on_handshake(
            await _ask(connection, login.begin(), HANDSHAKE_VERSION, SaslHandshakeResponse)
        )
        while request is not None:
            response = await _ask(connection, request, AUTHENTICATE_VERSION, SaslAuthenticateResponse)
            request = await asyncio.get_running_loop().run_in_executor(None, login.on_authenticate, response)
    except LoginRefusedError as refused:
        raise LinkError(f"{connection.address}: {_why(mechanism, refused)}", denied=True) from None
    return login.lifetime_ms


def _why(mechanism: ClientMechanism, refused: LoginRefusedError) -> str:
    if refused.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(refused.offered) or "none"
        return f"it does not offer {mechanism.name} (sasl.mechanism.inter.broker.protocol), but {offered}"
    if refused.text:
        return f"it refused the login by {mechanism.name}: {refused.text}"
    return f"it refused the login by {mechanism.name}: error {refused.code}"


async def _ask(connection: LinkConnection, request: Any, version: int, response: type[Any]) -> Any:
    if connection.closed:
        raise LinkError(f"{connection.address}: it closed the connection")
    reply: Deferred[memoryview] = Deferred()
    body = encode(request, version)
    api_key: ApiKey = request.__schema__.api_key
    # The time limit is that of the whole attempt.
    connection.send(Outgoing(api_key, lambda _: (version, (body,)), reply, math.inf, 0))
    return decode(response, version, await reply)[0]
