"""An ensemble of the processes of a metadata engine, with the faults that befall it.

On free ports of this host, or each in a network of its own.

`etcd_ensemble.py` and `zookeeper_ensemble.py` say how a node is started and asked; everything else is the same.

    with EtcdEnsemble(directory) as ensemble:
        store = store_at(ensemble.location("/chroot"))
        leader = ensemble.leader()
        leader.kill(); leader.start()          # kill -9, and back with its data
        leader.freeze(); leader.thaw()         # takes connections and responds nothing
        ensemble.kill(); ensemble.start()      # all of them
"""

from __future__ import annotations

import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

START_SECONDS = 120.0


class EngineFailed(Exception):
    """A node ended or never served; the text has the end of its output."""


class Home(NamedTuple):
    """Where a node runs."""

    host: str = "127.0.0.1"
    enter: Sequence[str] = ()
    """What its command line begins with to get there."""


HOME = Home()


class EngineNode(ABC):
    def __init__(self, directory: Path, client_port: int, home: Home = HOME) -> None:
        self.directory = directory
        self.client_port = client_port
        self.home = home
        self._output = directory / "output"
        self._process: subprocess.Popen[bytes] | None = None
        self._frozen = False

    @property
    def address(self) -> str:
        return f"{self.home.host}:{self.client_port}"

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @abstractmethod
    def command(self) -> Sequence[str]: ...

    @abstractmethod
    def serves(self) -> bool:
        """Whether it responds, together with the others."""

    @abstractmethod
    def is_leader(self) -> bool: ...

    def start(self) -> None:
        """Does not wait: the nodes need each other."""
        assert not self.alive
        self.directory.mkdir(parents=True, exist_ok=True)
        with self._output.open("ab") as output:
            self._process = subprocess.Popen(
                [*self.home.enter, *self.command()], stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
            )

    def wait_until_serving(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.serves():
            if not self.alive or time.monotonic() > deadline:
                tail = "\n".join(self._output.read_text(errors="replace").splitlines()[-15:])
                raise EngineFailed(f"{type(self).__name__} at {self.address} does not serve:\n{tail}")
            time.sleep(0.05)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._frozen = False

    def freeze(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        self._frozen = True

    def thaw(self) -> None:
        if self._frozen and self._process is not None:
            self._process.send_signal(signal.SIGCONT)
        self._frozen = False


NodeType = TypeVar("NodeType", bound=EngineNode)


class EngineEnsemble(Generic[NodeType]):
    scheme: str

    def __init__(self, nodes: Sequence[NodeType]) -> None:
        self.nodes = tuple(nodes)

    @property
    def addresses(self) -> str:
        return ",".join(node.address for node in self.nodes)

    def location(self, chroot: str = "", login: str = "") -> str:
        """For `--metadata`."""
        return f"{self.scheme}://{login}{self.addresses}{chroot}"

    def leader(self) -> NodeType:
        """Of those that run; waits for an election."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for node in self.nodes:
                if node.alive and node.is_leader():
                    return node
            time.sleep(0.05)
        raise EngineFailed("no node leads")

    def start(self) -> None:
        """Whatever is not running, and wait until it serves."""
        for node in self.nodes:
            node.thaw()
            if not node.alive:
                node.start()
        for node in self.nodes:
            node.wait_until_serving()

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
