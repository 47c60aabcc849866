"""The door of the console: which requests are answered at all. Deny by default, checked before any route is looked for.

- Path: plain segments only, so that no two parts of the console can read one path in two ways.
- Host: only names under which this console is known, so that a foreign name pointed at 127.0.0.1 gets nothing.
- Origin and Sec-Fetch-Site: requests that another site causes are refused.
- Changes need the token of the session in a header, which no other site can read.
- Where users log in, everything but `PUBLIC` and the files of the page needs a session (`app`).
- Every response has a policy that allows scripts and styles of this console only.
"""

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Collection, Mapping

TOKEN_HEADER = "x-csrf-token"
SAFE_METHODS = ("GET", "HEAD")
LOGIN_PAGE = "/login"
PUBLIC = (("GET", LOGIN_PAGE), ("HEAD", LOGIN_PAGE), ("GET", "/api/session"), ("POST", "/api/login"))
"""What is served before a login, besides the files of the page."""
LONGEST_PATH = 1024
MOST_SEGMENTS = 6
_PATH = re.compile(r"/|(?:/(?!\.{1,2}(?:/|$))[A-Za-z0-9._~-]+)+")
_HOST = re.compile(r"(\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?")
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
    """Decides by path and headers alone. `names` are further host names, such as that of a proxy in front."""

    def __init__(self, host: str, port: int, names: Collection[str] = ()) -> None:
        self._port = port
        self._hosts = {host.lower()}
        self._names = {name.lower() for name in names}
        # Nobody can point the name of another site at a page that is asked for by a number.
        self._any_number = is_wildcard(host)
        if is_loopback(host) or self._any_number:
            self._hosts |= {"127.0.0.1", "localhost", "[::1]"}
        if self._any_number:
            self._hosts |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        self.cookie = f"barnabas-session-{port}"
        """Browsers share cookies between ports: two consoles on one machine need two names."""
        self._secret = secrets.token_bytes(32)

    def new_session(self) -> str:
        return secrets.token_urlsafe(24)

    def token(self, session: str) -> str:
        """What a page of this session sends along with every change."""
        return hmac.new(self._secret, session.encode(), "sha256").hexdigest()

    def knows_host(self, text: str) -> bool:
        found = _HOST.fullmatch(text)
        if found is None:
            return False
        name, port = found[1].lower(), int(found[2] or 0)
        if name in self._names:
            return True
        return (port == self._port or (not port and self._port in (80, 443))) and (
            name in self._hosts or (self._any_number and _is_number(name))
        )

    def refusal(self, method: str, headers: Mapping[str, str], session: str | None) -> str | None:
        """Why the request is refused; None if it may pass."""
        host = headers.get("host", "")
        if not self.knows_host(host):
            return "this console is not known by that host name"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
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


def is_plain_path(path: str, raw: bytes | None) -> bool:
    """Without anything that could be read in two ways: empty or dotted segments, escapes, too many segments.

    Names of topics need no escapes; what may hold anything travels as a parameter.
    """
    if len(path) > LONGEST_PATH or path.count("/") > MOST_SEGMENTS or not _PATH.fullmatch(path):
        return False
    return raw is None or raw.partition(b"?")[0] == path.encode()


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
