"""The door of the console: which requests are answered at all. Deny by default, checked before any route is looked for.

- Host: only names under which this console was started, so that a foreign name pointed at 127.0.0.1 gets nothing.
- Origin and Sec-Fetch-Site: requests that another site causes are refused.
- Changes need the token of the session in a header, which no other site can read.
- Every response has a policy that allows scripts and styles of this console only.
"""

import hmac
import ipaddress
import secrets
from collections.abc import Mapping

COOKIE = "barnabas-session"
TOKEN_HEADER = "x-csrf-token"
SAFE_METHODS = ("GET", "HEAD")
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Decides by headers alone. `hosts` are the values of Host that are served."""

    def __init__(self, host: str, port: int) -> None:
        names = {host}
        if is_loopback(host):
            names |= {"127.0.0.1", "localhost", "[::1]"}
        self.hosts = {f"{name}:{port}" for name in names} | (names if port == 80 else set())
        self._secret = secrets.token_bytes(32)

    def new_session(self) -> str:
        return secrets.token_urlsafe(24)

    def token(self, session: str) -> str:
        """What a page of this session sends along with every change."""
        return hmac.new(self._secret, session.encode(), "sha256").hexdigest()

    def refusal(self, method: str, headers: Mapping[str, str], session: str | None) -> str | None:
        """Why the request is refused; None if it may pass."""
        host = headers.get("host", "")
        if host not in self.hosts:
            return "this console is not known by that host name"
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return "requests of other sites are refused"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "requests of other sites are refused"
        if method in SAFE_METHODS:
            return None
        if method != "POST":
            return f"{method} is not allowed"
        given = headers.get(TOKEN_HEADER, "")
        if session is None or not hmac.compare_digest(given.encode(), self.token(session).encode()):
            return "the token of the session is missing or wrong: reload the page"
        return None


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
