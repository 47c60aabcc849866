import pytest

from barnabas.config.listeners import Listener, check_ports, parse_listeners, parse_protocol_map

PLAIN = {"PLAINTEXT": "PLAINTEXT", "INSIDE": "PLAINTEXT"}


@pytest.mark.parametrize(
    ("text", "listener"),
    [
        ("PLAINTEXT://localhost:9092", Listener("PLAINTEXT", "localhost", 9092)),
        ("plaintext://:0", Listener("PLAINTEXT", "", 0)),
        ("PLAINTEXT://[::1]:9092", Listener("PLAINTEXT", "::1", 9092)),
        ("INSIDE://[fe80::1%eth0]:1", Listener("INSIDE", "fe80::1%eth0", 1)),
        ("INSIDE://my-host.example_1:65535", Listener("INSIDE", "my-host.example_1", 65535)),
    ],
)
def test_one_listener(text: str, listener: Listener) -> None:
    assert parse_listeners(text, PLAIN) == (listener,)


@pytest.mark.parametrize(
    "text",
    [
        "PLAINTEXT://h",
        "PLAINTEXT://h:-1",
        "PLAINTEXT://h:65536",
        "://h:1",
        "PLAINTEXT:/h:1",
        "h:1",
        "PLAINTEXT://::1:1",
    ],
)
def test_malformed(text: str) -> None:
    with pytest.raises(ValueError, match="NAME://host:port"):
        parse_listeners(text, PLAIN)


def test_a_name_may_appear_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        parse_listeners("INSIDE://a:1,inside://b:2", PLAIN)


def test_text_form_brackets_ipv6() -> None:
    assert str(Listener("INSIDE", "::1", 5)) == "INSIDE://[::1]:5"
    assert str(Listener("INSIDE", "h", 5)) == "INSIDE://h:5"


def test_ports_are_shared_by_ipv4_and_ipv6_only() -> None:
    check_ports((Listener("A", "127.0.0.1", 9), Listener("B", "::1", 9)))
    check_ports((Listener("A", "", 0), Listener("B", "", 0)))
    for other in (Listener("B", "127.0.0.2", 9), Listener("B", "", 9)):
        with pytest.raises(ValueError, match="same port 9"):
            check_ports((Listener("A", "127.0.0.1", 9), other))


def test_protocol_map() -> None:
    assert parse_protocol_map("a:plaintext, B:SASL_SSL ,") == {"A": "PLAINTEXT", "B": "SASL_SSL"}
    with pytest.raises(ValueError, match="NAME:PROTOCOL"):
        parse_protocol_map("A")
