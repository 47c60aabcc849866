"""Tokens for OAUTHBEARER: from the user's callback, from a file, or from an identity provider (client credentials).

A token is kept for all connections of a client (`transport/token_source`). Sessions are renewed later in their life
than tokens (`RENEWED_SHARE` in `machines/sasl/login`), so a renewed one has a new token.
"""

from barnabas.client.errors import AuthenticationError
from barnabas.client.options.security import SecurityOptions
from barnabas.transport.https import HttpError
from barnabas.transport.token_source import KeptToken, request_token


class TokenSource:
    """One per client."""

    def __init__(self, options: SecurityOptions) -> None:
        self._options = options
        self._kept = KeptToken(self._fetch)

    async def get(self) -> str:
        """Raises AuthenticationError."""
        try:
            return await self._kept.get()
        except AuthenticationError:
            raise
        except Exception as error:
            # Of the user's callback, among others. Its text may hold the token.
            raise AuthenticationError(f"no token for OAUTHBEARER: {type(error).__name__}") from error

    def _fetch(self) -> str:
        options = self._options
        if options.sasl_oauthbearer_token_callback is not None:
            token = options.sasl_oauthbearer_token_callback()
            if not isinstance(token, str) or not token:
                raise AuthenticationError("sasl_oauthbearer_token_callback must return a token (text)")
            return token
        try:
            return request_token(options.sasl_oauthbearer_token_endpoint_url or "", options.oauth_client())
        except (HttpError, OSError, ValueError) as error:
            raise AuthenticationError(f"no token for OAUTHBEARER: {error}") from error
