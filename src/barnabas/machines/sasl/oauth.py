"""OAUTHBEARER (RFC 7628): a token that somebody else has issued. Both sides; ^A is the byte 1.

client  n,[a=authorization id],^Aauth=Bearer TOKEN^A[name=value^A...]^A
server  (nothing)      or  {"status":"invalid_token"}
client                     ^A
server                     the login has failed
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from barnabas.machines.sasl.mechanism import SaslError

OAUTHBEARER = "OAUTHBEARER"
FIRST = re.compile(
    r"n,(?:a=((?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+))?,\x01((?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
AUTH = re.compile(r"(\w+) +([-_.a-zA-Z0-9]+)", re.ASCII)
SEPARATOR = b"\x01"
REFUSED = '{"status":"invalid_token"}'
TOKEN = re.compile(r"[-_.a-zA-Z0-9]+")


class Bearer(NamedTuple):
    """Who a valid token speaks for, and until when (on the wall clock)."""

    username: str
    expires_at_ms: int


class InvalidTokenError(Exception):
    """The token is not accepted. The text is for the broker's log: it holds nothing of the token but claim names."""


class OauthClient:
    name = OAUTHBEARER

    def __init__(self, token: str, extensions: tuple[tuple[str, str], ...] = ()) -> None:
        """Raises SaslError for a token that is none."""
        if TOKEN.fullmatch(token) is None:
            raise SaslError("the token holds characters that no token has")
        more = "".join(f"{name}={value}\x01" for name, value in extensions)
        self._message = f"n,,\x01auth=Bearer {token}\x01{more}\x01".encode()

    def begin(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        """After an error the server waits for one byte, and then says that the login has failed."""
        return SEPARATOR if challenge else None


class OauthServer:
    is_token = False

    def __init__(self, validate: Callable[[str], Bearer], on_refused: Callable[[str], None]) -> None:
        """`validate` raises InvalidTokenError, whose text goes to `on_refused`; the client learns no more than that."""
        self._validate = validate
        self._on_refused = on_refused
        self._is_refused = False
        self.expires_at_ms: int | None = None
        self.username = ""
        self.is_done = False

    def respond(self, message: bytes) -> bytes:
        if self._is_refused:
            raise SaslError(REFUSED)
        authorization_id, token = read_first(message)
        try:
            bearer = self._validate(token)
        except InvalidTokenError as fault:
            self._on_refused(str(fault))
            self._is_refused = True
            return REFUSED.encode()
        if authorization_id not in ("", bearer.username):
            raise SaslError("Authentication failed: the authorization id is not the principal of the token")
        self.username, self.expires_at_ms = bearer
        self.is_done = True
        return b""


def read_first(message: bytes) -> tuple[str, str]:
    """(authorization id, token) of a client's first message. Raises SaslError."""
    try:
        match = FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        match = None
    pairs = [] if match is None else [pair.partition("=") for pair in match[2].split("\x01")[:-1]]
    found = [value for name, _, value in pairs if name == "auth"]
    auth = AUTH.fullmatch(found[0]) if len(found) == 1 else None
    if match is None or auth is None or auth[1].lower() != "bearer":
        raise SaslError("Invalid OAUTHBEARER client first message")
    return (match[1] or "").replace("=2C", ",").replace("=3D", "="), auth[2]
