"""User name and password out of `sasl.jaas.config`, the one line of a JAAS file that Java's clients are given.

org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";
"""

import re

ENTRY = re.compile(r"\s*([\w.]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);\s*", re.IGNORECASE | re.DOTALL)
OPTION = re.compile(r"""\s*(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")
MODULES = ("PlainLoginModule", "ScramLoginModule")


def parse_jaas(text: str) -> tuple[str, str]:
    """(user name, password). Raises ValueError, without any of the text: it holds a password."""
    entry = ENTRY.fullmatch(text)
    if entry is None:
        raise ValueError('must read: LoginModule required username="..." password="...";')
    if entry[1].rpartition(".")[2] not in MODULES:
        raise ValueError(f"must name one of: {', '.join(MODULES)}")
    options: dict[str, str] = {}
    position = 0
    while entry[2][position:].strip():
        option = OPTION.match(entry[2], position)
        if option is None:
            raise ValueError('must have options of the form name="value"')
        raw = next(value for value in option.groups()[1:] if value is not None)
        options[option[1]] = re.sub(r"\\(.)", r"\1", raw)
        position = option.end()
    if not options.get("username") or "password" not in options:
        raise ValueError("must have a username and a password")
    return options["username"], options["password"]
