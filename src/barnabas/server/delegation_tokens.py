"""The cluster's delegation tokens as this broker knows them: their HMACs, who may ask about them, and logins with them.

A token's HMAC is made of its id and `delegation.token.secret.key`, which all brokers share, so it is kept nowhere: not
in the metadata, and here only as a hash to find the token by. A login is SCRAM with the token's id as the user and the
HMAC (in base64) as the password. The credential for it takes milliseconds to compute, so that is done in a thread, at
the first login with a token, and remembered as long as the token is there.
"""

import asyncio
import base64
import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Final

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.sasl.scram import HASHES, LEAST_ITERATIONS, SALT_BYTES, salted_password
from barnabas.machines.sasl.scram_server import ScramCredential, TokenLogin, token_id_of
from barnabas.metadata.image import ClusterImage, DelegationToken, Delta
from barnabas.net.deferred import Deferred
from barnabas.server.request import ANONYMOUS, Principal, RequestContext
from barnabas.server.sessions import Session

USER: Final = "User"
"""The only kind of principals that tokens are for."""
NEVER: Final = -1
"""The times in a response that has none."""
_Key = tuple[str, str]


class DelegationTokens:
    def __init__(self, secret_key: str | None, image: Callable[[], ClusterImage], clock: Clock) -> None:
        self._secret_key = None if secret_key is None else secret_key.encode()
        self._image = image
        self._clock = clock
        self._ids: dict[bytes, str] = {}
        self._credentials: dict[_Key, ScramCredential] = {}
        self._computing: dict[_Key, asyncio.Future[ScramCredential]] = {}

    def __repr__(self) -> str:
        return f"DelegationTokens({len(self._ids)} known)"

    @property
    def enabled(self) -> bool:
        return self._secret_key is not None

    def check_enabled(self) -> None:
        """Raises KafkaError."""
        if not self.enabled:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

    def on_delta(self, delta: Delta) -> None:
        if not self.enabled:
            return
        for token_id in delta.tokens_changed:
            key = _hash(self.hmac_of(token_id))
            if token_id in delta.image.tokens:
                self._ids[key] = token_id
                continue
            self._ids.pop(key, None)
            for mechanism in HASHES:
                self._credentials.pop((token_id, mechanism), None)

    def hmac_of(self, token_id: str) -> bytes:
        assert self._secret_key is not None
        return hmac.digest(self._secret_key, token_id.encode(), "sha512")

    def id_of(self, token_hmac: bytes) -> str:
        """Raises KafkaError. Looked up by a hash, so that the time it takes does not lead to an HMAC."""
        self.check_enabled()
        token_id = self._ids.get(_hash(token_hmac))
        if token_id is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return token_id

    def prepare_login(self, mechanism: str, message: bytes) -> Deferred[None] | None:
        """What has to be waited for before the client's message can be looked at."""
        token_id = token_id_of(message)
        if token_id is None or self._valid(token_id) is None or (token_id, mechanism) in self._credentials:
            return None
        key = (token_id, mechanism)
        computing = self._computing.get(key)
        if computing is None:
            loop = asyncio.get_running_loop()
            computing = loop.run_in_executor(None, self._credential, token_id, mechanism)
            self._computing[key] = computing
            computing.add_done_callback(lambda done: self._remember(key, done))
        ready: Deferred[None] = Deferred()
        computing.add_done_callback(lambda _: ready.complete(None))
        return ready

    def login(self, mechanism: str, token_id: str) -> TokenLogin | None:
        """None for a token that is not there, or has expired."""
        token = self._valid(token_id)
        credential = self._credentials.get((token_id, mechanism))
        if token is None or credential is None:
            return None
        return TokenLogin(token.owner.partition(":")[2], credential, min(token.expires_at_ms, token.max_at_ms))

    def _valid(self, token_id: str) -> DelegationToken | None:
        """It expires by this broker's clock, whether or not the controller could remove it."""
        token = self._image().tokens.get(token_id) if self.enabled else None
        return None if token is None or token.has_expired(self._clock.now_ms()) else token

    def _credential(self, token_id: str, mechanism: str) -> ScramCredential:
        password = base64.b64encode(self.hmac_of(token_id))
        salt = os.urandom(SALT_BYTES)
        salted = salted_password(HASHES[mechanism], password, salt, LEAST_ITERATIONS)
        return ScramCredential.of(mechanism, salt, salted, LEAST_ITERATIONS)

    def _remember(self, key: _Key, computing: "asyncio.Future[ScramCredential]") -> None:
        del self._computing[key]
        if not computing.cancelled() and computing.exception() is None and key[0] in self._image().tokens:
            self._credentials[key] = computing.result()


def check_connection(context: RequestContext) -> None:
    """Only who has authenticated may ask about tokens, and not with a token. Raises KafkaError.

    Of a request that another broker has passed on, that broker has seen the connection.
    """
    if context.origin is not None:
        return
    session = context.connection.session
    if not isinstance(session, Session) or session.is_token:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    if session.mechanism is None and session.principal == ANONYMOUS:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def split_principal(principal: str) -> Principal:
    kind, _, name = principal.partition(":")
    return Principal(kind, name)


def _hash(token_hmac: bytes) -> bytes:
    return hashlib.sha256(token_hmac).digest()
