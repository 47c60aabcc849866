"""Network namespaces for the processes of a cluster: each has an address of its own, and packets can be dropped.

Needs root and iproute2; `why_no_namespaces` says what is missing. A cut is one-way: packets from one namespace to the
other vanish, so that a connection between the two stands still without either end being told.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import subprocess
from collections import Counter
from typing import Self

_numbers = itertools.count()


@functools.cache
def why_no_namespaces() -> str | None:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need root and iproute2"
    try:
        with Namespaces(1):
            return None
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made here: {error.stderr.strip()}"


class Namespaces:
    """Numbers 1 to `count`; this process reaches all of them through a bridge."""

    def __init__(self, count: int) -> None:
        # Several test processes may have some at the same time.
        self._tag = f"{os.getpid() % 100_000}{'abcdefghij'[next(_numbers) % 10]}"
        self._subnet = f"10.{200 + os.getpid() % 50}.{(os.getpid() // 50 * 10 + ord(self._tag[-1])) % 256}"
        self._count = count
        self._made: list[str] = []
        self._cuts: Counter[tuple[int, int]] = Counter()

    def __enter__(self) -> Self:
        try:
            self._make()
        except subprocess.CalledProcessError:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def address(self, number: int) -> str:
        return f"{self._subnet}.{number}"

    def command(self, number: int) -> list[str]:
        """What a command line begins with to be run in the namespace, as the same process."""
        return ["ip", "netns", "exec", self._name(number)]

    def cut(self, source: int, target: int) -> None:
        """May be cut several times, by faults that overlap: it is healed with the last of them."""
        self._cuts[source, target] += 1
        _ip("-n", self._name(source), "route", "replace", "blackhole", f"{self.address(target)}/32")

    def heal(self, source: int, target: int) -> None:
        self._cuts[source, target] -= 1
        if not self._cuts[source, target]:
            _ip("-n", self._name(source), "route", "del", "blackhole", f"{self.address(target)}/32")

    def close(self) -> None:
        for name in self._made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self._bridge], capture_output=True, check=False)
        self._made.clear()

    @property
    def _bridge(self) -> str:
        return f"bb{self._tag}"

    def _name(self, number: int) -> str:
        return f"bn{self._tag}-{number}"

    def _make(self) -> None:
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("addr", "add", f"{self._subnet}.254/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        for number in range(1, self._count + 1):
            name, outer = self._name(number), f"bv{self._tag}-{number}"
            _ip("netns", "add", name)
            self._made.append(name)
            _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("link", "set", outer, "master", self._bridge, "up")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], capture_output=True, text=True, check=True)
