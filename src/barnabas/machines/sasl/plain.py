"""PLAIN (RFC 4616): user name and password in the clear, so to be used over TLS.

message = [authorization id] NUL user name NUL password, in UTF-8
"""

import hmac
from collections.abc import Mapping

from barnabas.machines.sasl.mechanism import SaslError

WRONG_PASSWORD = "Authentication failed: Invalid username or password"
NOBODY = "\0"
"""Compared with in place of the password of a user that does not exist: no password that was sent has a NUL."""


class PlainClient:
    name = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        self._message = f"\0{username}\0{password}".encode()

    def begin(self) -> bytes:
        return self._message

    def respond(self, challenge: bytes) -> bytes | None:
        if challenge:
            raise SaslError("PLAIN has no second message, but the server sent one")
        return None


class PlainServer:
    expires_at_ms = None
    is_token = False

    def __init__(self, users: Mapping[str, str]) -> None:
        """`users` are names with their passwords."""
        self._users = users
        self.username = ""
        self.is_done = False

    def respond(self, message: bytes) -> bytes:
        """Raises SaslError, the same for whatever is wrong."""
        try:
            authorization_id, username, password = read_plain(message)
        except SaslError:
            raise SaslError(WRONG_PASSWORD) from None
        expected = self._users.get(username)
        known = NOBODY if expected is None else expected
        is_right = hmac.compare_digest(known.encode(), password.encode())
        if not is_right or expected is None or authorization_id not in ("", username):
            raise SaslError(WRONG_PASSWORD)
        self.username = username
        self.is_done = True
        return b""


def read_plain(message: bytes) -> tuple[str, str, str]:
    """(authorization id, user name, password) for the server's side. Raises SaslError."""
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise SaslError("the PLAIN message is not UTF-8") from None
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise SaslError("the PLAIN message must be: authorization id, user name and password, with NUL between them")
    return parts[0], parts[1], parts[2]
