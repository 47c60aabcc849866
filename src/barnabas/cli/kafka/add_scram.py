"""`kafka-storage.sh format --add-scram`: users that are there before the first start.

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=bob,iterations=8192,salt="MWx2NHBkbnc0ZndxN25vdGN4bTB5eTFrN3E=",saltedpassword="mT0y..."]

Faults are in Kafka's words, except that no part of a text that may hold a password is repeated.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.cli.command import Refused
from barnabas.cli.first_users import credential_text, salted_credential_text
from barnabas.machines.sasl.scram import HASHES, LEAST_ITERATIONS

MOST_ITERATIONS = 16_384
KNOWN = ("name", "salt", "iterations", "password", "saltedpassword")
_COMPONENT = re.compile(r'\s*(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|[^,"]*)\s*(?:,|$)')


class ScramUser(NamedTuple):
    name: str
    mechanism: str
    credential: str

    def __repr__(self) -> str:
        return f"ScramUser({self.name}, {self.mechanism})"


def parse_users(words: Sequence[str]) -> list[ScramUser]:
    """Raises Refused."""
    return [_parse(word) for word in words]


def _parse(word: str) -> ScramUser:
    mechanism, equals, text = word.partition("=")
    if not equals:
        raise Refused("Failed to find equals sign in SCRAM argument")
    if mechanism not in HASHES:
        raise Refused(f"The add-scram mechanism {mechanism} is not supported.")
    text = text.strip()
    if not text.startswith("["):
        raise Refused("Expected configuration string to start with [")
    if not text.endswith("]"):
        raise Refused("Expected configuration string to end with ]")
    given = _components(text[1:-1])
    unknown = [name for name in given if name not in KNOWN]
    if unknown:
        raise Refused(f"Unknown SCRAM configurations: {', '.join(unknown)}")
    if not given.get("name"):
        raise Refused("You must supply 'name' to add-scram")
    return ScramUser(given["name"], mechanism, _credential(mechanism, given))


def _components(text: str) -> dict[str, str]:
    given: dict[str, str] = {}
    position = 0
    while position < len(text):
        match = _COMPONENT.match(text, position)
        if match is None:
            raise Refused("No equals sign found in SCRAM component")
        name, value = match.groups()
        given[name] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value.strip()
        position = match.end()
    return given


def _credential(mechanism: str, given: Mapping[str, str]) -> str:
    iterations = _iterations(mechanism, given.get("iterations"))
    salt = _decoded(given["salt"], "salt") if given.get("salt") else None
    if bool(given.get("password")) == bool(given.get("saltedpassword")):
        raise Refused("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if given.get("password"):
        return credential_text(mechanism, given["password"], iterations, salt)
    if salt is None:
        raise Refused("You must supply 'salt' with 'saltedpassword' to add-scram")
    return salted_credential_text(mechanism, _decoded(given["saltedpassword"], "saltedPassword"), iterations, salt)


def _iterations(mechanism: str, text: str | None) -> int:
    if text is None:
        return LEAST_ITERATIONS
    if not text.isdecimal():
        raise Refused(f"Failed to parse iterations count: {text}")
    iterations = int(text)
    if iterations < LEAST_ITERATIONS:
        raise Refused(f"The 'iterations' value must be >= {LEAST_ITERATIONS} for add-scram using {mechanism}")
    if iterations > MOST_ITERATIONS:
        raise Refused(f"The 'iterations' value must be <= {MOST_ITERATIONS} for add-scram using {mechanism}")
    return iterations


def _decoded(text: str, what: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(f"Failed to decode given {what}") from None
