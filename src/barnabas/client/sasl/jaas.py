"""User name and password out of `sasl.jaas.config`, as Java's clients are given them."""

from barnabas.config.jaas import parse_entry

MODULES = ("PlainLoginModule", "ScramLoginModule")


def parse_jaas(text: str) -> tuple[str, str]:
    """(user name, password). Raises ValueError, without any of the text: it holds a password."""
    module, options = parse_entry(text)
    if module not in MODULES:
        raise ValueError(f"must name one of: {', '.join(MODULES)}")
    if not options.get("username") or "password" not in options:
        raise ValueError("must have a username and a password")
    return options["username"], options["password"]
