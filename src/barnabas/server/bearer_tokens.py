"""Whom an OAUTHBEARER token speaks for: signed JWTs, checked against the keys of the identity provider, with issuer,
audience, times and the claim that names the user; or, where the settings say so in so many words, tokens that nobody
signed, for development.

`BearerTokens` is made by `listener_security` for a listener that offers OAUTHBEARER. The text of a refusal goes to the
broker's log and names what is wrong, never the token.
"""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

from barnabas.clock import Clock
from barnabas.config.oauth import OauthConfig
from barnabas.machines.sasl.mechanism import SaslError
from barnabas.machines.sasl.oauth import Bearer, InvalidTokenError, read_first
from barnabas.net.deferred import Deferred
from barnabas.server.jwks import SIGNATURES, Jwks

USER_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,1024}")


class BearerTokens(Protocol):
    def prepare(self, message: bytes) -> Deferred[None] | None:
        """What has to be waited for before the client's message can be looked at."""
        ...

    def validate(self, token: str) -> Bearer:
        """Raises InvalidTokenError."""
        ...


class SignedTokens:
    def __init__(self, config: OauthConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._keys = Jwks(
            config.jwks_url,
            clock,
            refresh_ms=config.refresh_ms,
            backoff_ms=config.backoff_ms,
            backoff_max_ms=config.backoff_max_ms,
            truststore_location=config.truststore_location,
        )

    def prepare(self, message: bytes) -> Deferred[None] | None:
        try:
            header = _part(read_first(message)[1], 0)
        except (SaslError, InvalidTokenError):
            return None
        return self._keys.prepare(_key_id(header))

    def validate(self, token: str) -> Bearer:
        import jwt

        header = _part(token, 0)
        key = self._keys.find(_key_id(header))
        if key is None:
            raise InvalidTokenError("it is signed with a key that the identity provider does not list")
        algorithm = header.get("alg")
        if algorithm not in SIGNATURES[key.key_type]:
            raise InvalidTokenError("its algorithm (alg) is not one for that key")
        stated = key._jwk_data.get("alg")
        if stated is not None and stated != algorithm:
            raise InvalidTokenError("its algorithm (alg) is not the one of that key")
        config = self._config
        try:
            # The times are checked below, by the broker's own clock.
            claims = jwt.decode(
                token,
                key.key,
                algorithms=[str(algorithm)],
                audience=list(config.audiences),
                issuer=config.issuer,
                options={
                    "require": ["exp", "iat", "iss", "aud"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise InvalidTokenError(f"{type(error).__name__}") from None
        return _bearer(claims, config.user_claim, config.skew_ms, self._clock.now_ms())


class UnsecuredTokens:
    """Tokens with alg none, which anybody can make. For development."""

    def __init__(self, config: OauthConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock

    def prepare(self, message: bytes) -> None:
        return None

    def validate(self, token: str) -> Bearer:
        if _part(token, 0).get("alg") != "none" or token.count(".") != 2 or not token.endswith("."):
            raise InvalidTokenError("it is not an unsecured token (alg none, no signature)")
        return _bearer(_part(token, 1), self._config.user_claim, self._config.skew_ms, self._clock.now_ms())


def bearer_tokens(config: OauthConfig, clock: Clock) -> BearerTokens:
    return UnsecuredTokens(config, clock) if config.is_unsecured else SignedTokens(config, clock)


def _bearer(claims: Mapping[str, Any], user_claim: str, skew_ms: int, now_ms: int) -> Bearer:
    expires_at_ms = _time_ms(claims, "exp")
    if expires_at_ms is None:
        raise InvalidTokenError("it has no time of expiry (exp)")
    if now_ms >= expires_at_ms + skew_ms:
        raise InvalidTokenError("it has expired (exp)")
    for name in ("iat", "nbf"):
        since_ms = _time_ms(claims, name)
        if since_ms is not None and since_ms - skew_ms > now_ms:
            raise InvalidTokenError(f"it is not valid yet ({name})")
        if name == "iat" and since_ms is not None and since_ms > expires_at_ms:
            raise InvalidTokenError("it expires before it was issued")
    user = claims.get(user_claim)
    if not isinstance(user, str) or USER_NAME.fullmatch(user.strip()) is None:
        raise InvalidTokenError(f"it has no user ({user_claim})")
    return Bearer(user.strip(), expires_at_ms)


def _time_ms(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
        raise InvalidTokenError(f"{name} is not a time")
    return int(value * 1000)


def _part(token: str, number: int) -> dict[str, Any]:
    """One of the JSON objects that a token consists of, before anything is known about it."""
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidTokenError("it has not three parts")
    text = parts[number]
    try:
        value = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        raise InvalidTokenError("it cannot be decoded") from None
    if not isinstance(value, dict):
        raise InvalidTokenError("it holds no claims")
    return value


def _key_id(header: Mapping[str, Any]) -> str | None:
    key_id = header.get("kid")
    return None if key_id is None else str(key_id)
