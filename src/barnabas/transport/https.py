"""One HTTP request to an identity provider: blocking, for a thread. Bounded in time and size; no redirects.

Used for signing keys by the broker and for tokens by clients; `config/urls` says which addresses they may have.
"""

import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

RESPONSE_MAX_BYTES = 1 << 20


class HttpError(Exception):
    """No usable response. Holds the address without its query, and no part of what was sent."""


def request(
    url: str,
    *,
    timeout_s: float,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    context: ssl.SSLContext | None = None,
) -> bytes:
    """The body of the response to a GET, or with `form` to a POST. Raises HttpError."""
    shown = _without_query(url)
    data = None if form is None else urllib.parse.urlencode(form).encode()
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}),
        urllib.request.HTTPSHandler(context=context or ssl.create_default_context()),
        _NoRedirects(),
    )
    message = urllib.request.Request(url, data, {"Accept": "application/json", **(headers or {})})
    try:
        with opener.open(message, timeout=timeout_s) as response:
            body: bytes = response.read(RESPONSE_MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        with error:
            raise HttpError(f"{shown}: HTTP status {error.code}") from None
    except urllib.error.URLError as error:
        raise HttpError(f"{shown}: {error.reason}") from None
    except (OSError, ValueError) as error:
        raise HttpError(f"{shown}: {error or type(error).__name__}") from None
    if len(body) > RESPONSE_MAX_BYTES:
        raise HttpError(f"{shown}: the response has more than {RESPONSE_MAX_BYTES} bytes")
    return body


def _without_query(url: str) -> str:
    return urllib.parse.urlunsplit(urllib.parse.urlsplit(url)._replace(query="", fragment=""))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect could send a secret elsewhere, or to plain http."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None
