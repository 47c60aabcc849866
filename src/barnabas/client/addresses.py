"""host:port as people write it."""

import re

ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?(?:\[([0-9a-zA-Z%._:\-]+)\]|([0-9a-zA-Z%._\-]+)):([0-9]{1,5})", re.ASCII)


def parse_address(text: str) -> tuple[str, int]:
    """(host, port); an IPv6 address stands in brackets. The ValueError it raises is worded to follow the address."""
    match = ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match[3]) < 65536:
        raise ValueError("is not host:port")
    return match[1] or match[2], int(match[3])
