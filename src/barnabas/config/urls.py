"""Addresses of an identity provider, as settings and options give them."""

import urllib.parse
from pathlib import Path

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def url_fault(url: str) -> str | None:
    """What is wrong with an address of keys or tokens: it is https, a file, or http to this machine.

    Over plain http keys and secrets would travel in the clear.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        host, path = parts.hostname, parts.path
    except ValueError:
        return "must be a URL"
    if parts.scheme == "file":
        return None if path.startswith("/") and host in (None, "", "localhost") else "must be file:///absolute/path"
    if parts.scheme not in ("http", "https") or not host:
        return "must begin with https:// or file://"
    if parts.username is not None or parts.password is not None:
        return "must not hold a user name or password"
    if parts.scheme == "http" and host not in LOOPBACK:
        return "must be https:// (http:// is for this machine alone)"
    return None


def file_of(url: str) -> Path | None:
    """The path, if it is the address of a file."""
    parts = urllib.parse.urlsplit(url)
    return Path(urllib.parse.unquote(parts.path)) if parts.scheme == "file" else None
