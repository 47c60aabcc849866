"""Which addresses are of this machine. Who goes by it: net/test_server.py and client/core/test_connection.py."""

import socket
from typing import Any

import pytest

from barnabas.transport.same_host import is_own_address


@pytest.mark.parametrize(
    ("family", "address", "is_own"),
    [
        (socket.AF_INET, ("127.0.0.1", 9092), True),
        (socket.AF_INET, ("127.0.0.1", 0), True),
        (socket.AF_INET, ("192.0.2.1", 9092), False),
        (socket.AF_INET6, ("2001:db8::1", 9092, 0, 0), False),
    ],
)
def test_addresses_of_this_machine(family: socket.AddressFamily, address: Any, is_own: bool) -> None:
    """The others are reserved for documentation; nothing is sent to them."""
    assert is_own_address(family, address) is is_own
