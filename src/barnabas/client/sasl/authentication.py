"""The SASL exchange on a connection, as `barnabas.machines.sasl.login` decides it.

Called by `connecting` on a new connection, and again before a session ends (KIP-368). The mechanisms themselves are
state machines in `barnabas.machines.sasl` that see bytes only.
"""

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from barnabas.client.errors import AuthenticationError, UnsupportedVersionError, error_for
from barnabas.client.options.security import SecurityOptions
from barnabas.client.sasl.tokens import TokenSource
from barnabas.errors import ErrorCode
from barnabas.machines.sasl.login import HANDSHAKE_VERSION, ClientLogin, LoginRefusedError
from barnabas.machines.sasl.mechanism import ClientMechanism, SaslError
from barnabas.machines.sasl.oauth import OauthClient
from barnabas.machines.sasl.plain import PlainClient
from barnabas.machines.sasl.scram import ScramClient
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeResponse

if TYPE_CHECKING:
    from barnabas.client.connection import Connection


async def authenticate(connection: "Connection", options: SecurityOptions, tokens: TokenSource) -> int:
    """Gives the session's lifetime in milliseconds, 0 for as long as the connection. Raises AuthenticationError."""
    mechanism = await client_mechanism(options, tokens)
    login = ClientLogin(mechanism)
    handshake = await _ask(connection, login.begin(), SaslHandshakeResponse)
    try:
        request: SaslAuthenticateRequest | None = login.on_handshake(handshake)
    except LoginRefusedError as refused:
        raise _handshake_refused(connection, mechanism.name, refused) from None
    while request is not None:
        response = await _ask(connection, request, SaslAuthenticateResponse)
        try:
            # The work of a SCRAM proof is the broker's to choose, and heartbeats must not wait for it.
            request = await asyncio.to_thread(login.on_authenticate, response)
        except LoginRefusedError as refused:
            raise AuthenticationError(
                f"{connection.address}: {refused.text} {_advice(options)}", refused.code
            ) from None
        except SaslError as error:
            raise AuthenticationError(f"{connection.address}: {error}") from error
    return login.lifetime_ms


def _advice(options: SecurityOptions) -> str:
    if options.sasl_mechanism == "OAUTHBEARER":
        return "(mechanism OAUTHBEARER): check that the broker accepts the token's issuer, audience and expiry"
    return (
        f"(user {options.credentials().username}, mechanism {options.sasl_mechanism}): check sasl_username,"
        " sasl_password and sasl_mechanism"
    )


async def client_mechanism(options: SecurityOptions, tokens: TokenSource) -> ClientMechanism:
    """Raises AuthenticationError."""
    if options.sasl_mechanism == "OAUTHBEARER":
        try:
            return OauthClient(await tokens.get())
        except SaslError as error:
            raise AuthenticationError(f"no token for OAUTHBEARER: {error}") from None
    username, password, is_token = options.credentials()
    if options.sasl_mechanism == "PLAIN":
        return PlainClient(username, password)
    nonce = secrets.token_urlsafe(24)
    return ScramClient(options.sasl_mechanism or "", username, password, nonce, is_token=is_token)


def _handshake_refused(connection: "Connection", mechanism: str, refused: LoginRefusedError) -> Exception:
    if refused.code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(refused.offered) or "none"
        return AuthenticationError(
            f"{connection.address}: it does not offer {mechanism}: set sasl_mechanism to one of its own: {offered}",
            ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        )
    if refused.code == ErrorCode.ILLEGAL_SASL_STATE:
        return AuthenticationError(
            f"{connection.address}: this listener does not use SASL: set security_protocol to PLAINTEXT or SSL, or use"
            " the port of a SASL listener",
            ErrorCode.ILLEGAL_SASL_STATE,
        )
    return error_for(refused.code)


async def _ask(connection: "Connection", request: Any, response: type[Any]) -> Any:
    api_key: ApiKey = request.__schema__.api_key
    try:
        version = connection.versions.pick(
            api_key, min_version=HANDSHAKE_VERSION if api_key == ApiKey.SASL_HANDSHAKE else 0
        )
    except UnsupportedVersionError as error:
        raise AuthenticationError(
            f"{connection.address}: it does not offer SASL ({error.message}): set security_protocol to PLAINTEXT or SSL"
        ) from error
    body = await connection.request(api_key, version, encode(request, version))
    return decode(response, version, body)[0]
