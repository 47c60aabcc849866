"""host:port as people write it, and what a host name stands for. Nothing here connects."""

import asyncio
import ipaddress
import re
import socket
from typing import Any, NamedTuple

ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?(?:\[([0-9a-zA-Z%._:\-]+)\]|([0-9a-zA-Z%._\-]+)):([0-9]{1,5})", re.ASCII)


class ResolvedAddress(NamedTuple):
    family: socket.AddressFamily
    sockaddr: Any
    """As socket.connect wants it."""

    def __str__(self) -> str:
        host, port = self.sockaddr[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """(host, port); an IPv6 address stands in brackets. Raises ValueError that goes after the address."""
    match = ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match[3]) < 65536:
        raise ValueError("is not host:port")
    return match[1] or match[2], int(match[3])


async def resolve(host: str, port: int) -> list[ResolvedAddress]:
    """Every address of the host, in the system's order. Raises OSError where the name is not known."""
    loop = asyncio.get_running_loop()
    if _is_literal(host):
        # No thread is needed to read digits, and as bytes they do not load what international names need.
        found = socket.getaddrinfo(host.encode(), port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    else:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ResolvedAddress(socket.AddressFamily(family), sockaddr) for family, _, _, _, sockaddr in found]


async def canonical_names(host: str, port: int) -> list[str]:
    """The names that the addresses of a host go by, for resolve_canonical_bootstrap_servers_only."""
    loop = asyncio.get_running_loop()
    names = []
    for address in await resolve(host, port):
        name, _ = await loop.getnameinfo(address.sockaddr)
        if name not in names:
            names.append(name)
    return names


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True
