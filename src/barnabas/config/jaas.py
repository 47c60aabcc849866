"""`sasl.jaas.config`: the one line of a JAAS file that Java's brokers and clients are given.

org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";

Faults never repeat any of the text, because it holds passwords.
"""

import re
from typing import NamedTuple

ENTRY = re.compile(r"\s*([\w.]+)\s+(?:required|requisite|sufficient|optional)\b(.*?);\s*", re.IGNORECASE | re.DOTALL)
OPTION = re.compile(
    r"""\s*(\w[\w.\-]*|"(?:[^"\\]|\\.)*")\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""
)
USER_PREFIX = "user_"


class JaasEntry(NamedTuple):
    module: str
    """The login module's class without its package."""
    options: dict[str, str]

    @property
    def users(self) -> dict[str, str]:
        """Name -> password of the users that a broker knows for PLAIN (`user_NAME="password"`)."""
        return {name[len(USER_PREFIX) :]: value for name, value in self.options.items() if name.startswith(USER_PREFIX)}

    def __repr__(self) -> str:
        return f"JaasEntry({self.module}, {', '.join(self.options)})"


def quoted(text: str) -> str:
    """A name or value as it stands in an entry."""
    return '"' + re.sub(r'(["\\\\])', r"\\\1", text) + '"'


def parse_entry(text: str) -> JaasEntry:
    """Raises ValueError, without any of the text."""
    entry = ENTRY.fullmatch(text)
    if entry is None:
        raise ValueError('must read: LoginModule required username="..." password="...";')
    options: dict[str, str] = {}
    position = 0
    while entry[2][position:].strip():
        option = OPTION.match(entry[2], position)
        if option is None:
            raise ValueError('must have options of the form name="value"')
        raw = next(value for value in option.groups()[1:] if value is not None)
        name = option[1]
        if name.startswith('"'):
            name = re.sub(r"\\(.)", r"\1", name[1:-1])
        options[name] = re.sub(r"\\(.)", r"\1", raw)
        position = option.end()
    return JaasEntry(entry[1].rpartition(".")[2], options)
