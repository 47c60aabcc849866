"""Headless Chromium for tests, where no change of this machine's network can disturb it.

Chromium drops every connection with ERR_NETWORK_CHANGED when an interface comes or goes, and other tests make and
remove some. So it gets a network namespace with nothing but a loopback interface, and the listening socket of the
console is made in there. Without root or iproute2 both are where everything else is.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PROGRAM = shutil.which("chromium-headless-shell")
CLONE_NEWNET = 0x40000000


def why_no_chromium() -> str | None:
    """Why there are no browser tests here, or None when there can be."""
    if PROGRAM is None:
        return "apt-get install chromium-headless-shell fonts-dejavu-core"
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "pip install playwright"
    return None


class QuietNetwork:
    """A network namespace, if one can be made."""

    def __init__(self) -> None:
        self.name: str | None = f"chromium-{os.getpid()}"

    def __enter__(self) -> QuietNetwork:
        try:
            subprocess.run(["ip", "netns", "add", str(self.name)], check=True, capture_output=True)
            subprocess.run(["ip", "-n", str(self.name), "link", "set", "lo", "up"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.name = None
        return self

    def __exit__(self, *_: object) -> None:
        if self.name is not None:
            subprocess.run(["ip", "netns", "delete", self.name], check=False, capture_output=True)

    def listen(self) -> socket.socket:
        """A listening socket on a free port of the loopback interface in there."""
        made: list[socket.socket] = []

        def make() -> None:
            # In a thread of its own: the namespace is that of the thread, and of the sockets that it makes.
            if self.name is not None:
                with open(f"/run/netns/{self.name}", "rb") as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
            made.append(socket.create_server(("127.0.0.1", 0)))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        return made[0]

    @contextmanager
    def chromium(self) -> Iterator[Browser]:
        from playwright.sync_api import sync_playwright

        assert PROGRAM is not None
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
            program = Path(folder, "chromium")
            inside = f"ip netns exec {self.name} " if self.name else ""
            program.write_text(f'#!/bin/sh\nexec {inside}{PROGRAM} "$@"\n')
            program.chmod(0o755)
            browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
            yield browser
            browser.close()
