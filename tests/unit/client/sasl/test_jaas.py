"""User name and password out of a JAAS entry as people write it."""

from __future__ import annotations

import pytest

from barnabas.client.sasl.jaas import Credentials, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f'{PLAIN} required username="alice" password="secret";', ("alice", "secret")),
        (f"{SCRAM} required username='a' password='b c';", ("a", "b c")),
        (f'  {SCRAM}\n  required\n  username=alice\n  password="x;y" ;\n', ("alice", "x;y")),
        (f'{PLAIN} REQUIRED password="a\\"b\\\\" serviceName="kafka" username = "u";', ("u", 'a"b\\')),
        (f'{PLAIN} required username="u" password="";', ("u", "")),
    ],
)
def test_what_is_understood(text: str, found: tuple[str, str]) -> None:
    assert parse_jaas(text) == Credentials(*found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hunter2",
        f'{PLAIN} required username="u" password="hunter2"',
        f'{PLAIN} username="u" password="hunter2";',
        f'{PLAIN} required password="hunter2";',
        f'{PLAIN} required username="u";',
        f'{PLAIN} required username="u" hunter2;',
        'com.sun.security.auth.module.Krb5LoginModule required username="u" password="hunter2";',
    ],
)
def test_what_is_not(text: str) -> None:
    with pytest.raises(ValueError, match="must") as raised:
        parse_jaas(text)
    assert "hunter2" not in str(raised.value)


def test_a_delegation_token() -> None:
    entry = f'{SCRAM} required username="id" password="hunter2" tokenauth="%s";'
    found = parse_jaas(entry % "true")
    assert (found, parse_jaas(entry % "false").is_token) == (Credentials("id", "hunter2", True), False)
    assert "hunter2" not in repr(found)
    with pytest.raises(ValueError, match="tokenauth"):
        parse_jaas(f'{PLAIN} required username="id" password="hunter2" tokenauth="true";')
