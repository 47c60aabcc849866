"""Credentials out of `sasl.jaas.config`, as Java's clients are given them."""

from typing import NamedTuple

from barnabas.config.jaas import parse_entry

MODULES = ("PlainLoginModule", "ScramLoginModule")


class Credentials(NamedTuple):
    """What SASL needs to log in with."""

    username: str
    password: str
    is_token: bool = False
    """Whether they are the id and the HMAC of a delegation token."""

    def __repr__(self) -> str:
        return f"Credentials({self.username})"


def parse_jaas(text: str) -> Credentials:
    """Raises ValueError, without any of the text: it holds a password."""
    module, options = parse_entry(text)
    if module not in MODULES:
        raise ValueError(f"must name one of: {', '.join(MODULES)}")
    if not options.get("username") or "password" not in options:
        raise ValueError("must have a username and a password")
    is_token = options.get("tokenauth", "").lower() == "true"
    if is_token and module != "ScramLoginModule":
        raise ValueError("tokenauth is for ScramLoginModule")
    return Credentials(options["username"], options["password"], is_token)
