"""PLAIN (RFC 4616): user name and password in the clear, so to be used over TLS.

message = [authorization id] NUL user name NUL password, in UTF-8
"""

from barnabas.machines.sasl.mechanism import SaslError


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


def read_plain(message: bytes) -> tuple[str, str, str]:
    """(authorization id, user name, password) for the server's side. Raises SaslError."""
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise SaslError("the PLAIN message is not UTF-8") from None
    if len(parts) != 3 or not parts[1] or not parts[2]:
        raise SaslError("the PLAIN message must be: authorization id, user name and password, with NUL between them")
    return parts[0], parts[1], parts[2]
