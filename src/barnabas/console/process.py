"""Runs the console: a listening socket, uvicorn on it, until Ctrl-C or SIGTERM."""

import logging
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

import uvicorn

from barnabas.console.app import make_app
from barnabas.console.console import Console
from barnabas.console.settings import ConsoleSettings

MOST_CONNECTIONS = 1000
"""Further ones get 503: thousands of tabs must not cost the console its memory."""
OPEN_FILES = 8192


class CertificateError(Exception):
    """The page cannot be served by TLS; the text says why."""


def listen(host: str, port: int) -> socket.socket:
    """Raises OSError if the address is taken or is not one of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host.strip("[]"), port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def make_server(
    config: Mapping[str, str], host: str, port: int, settings: ConsoleSettings | None = None
) -> uvicorn.Server:
    """Raises DatabaseError, PasswordFileError and CertificateError."""
    settings = settings or ConsoleSettings()
    served = uvicorn.Config(
        make_app(Console(config, host, port, settings)),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        lifespan="on",
        ws="none",
        limit_concurrency=MOST_CONNECTIONS,
        # Only a proxy that is named may say where a request comes from.
        proxy_headers=settings.trusted_proxy is not None,
        forwarded_allow_ips=settings.trusted_proxy or "",
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.private_key,
    )
    try:
        served.load()
    except OSError as error:
        raise CertificateError(f"cannot use {settings.certificate}: {error.strerror or error}") from None
    return uvicorn.Server(served)


def serve(
    config: Mapping[str, str],
    host: str,
    port: int,
    on_ready: Callable[[str], None],
    *,
    settings: ConsoleSettings | None = None,
    until_stdin_ends: bool = False,
) -> None:
    """Port 0 is any free port; `on_ready` gets the address of the page."""
    _show_audit_lines()
    _raise_file_limit()
    with listen(host, port) as listener:
        port = listener.getsockname()[1]
        server = make_server(config, host, port, settings)
        if until_stdin_ends:
            threading.Thread(target=_stop_after_stdin, args=[server], daemon=True).start()
        on_ready(f"{'https' if settings and settings.certificate else 'http'}://{host}:{port}")
        # uvicorn stops in order and then raises the signal again; Ctrl-C is how this is meant to end.
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def _stop_after_stdin(server: uvicorn.Server) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    server.should_exit = True


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _show_audit_lines() -> None:
    """On stderr, with the time, unless whoever embeds this has set up logging."""
    if not logging.getLogger().handlers:
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger("barnabas.console.audit").setLevel(logging.INFO)
