"""A broker with a trap: at a given request of the pipeline it kills, with SIGKILL, a part of the pipeline or itself.

Run as a script: `warehouse_broker.py TRAP_DIR server ...` is `barnabas server ...`. A test puts `trap.json` into that
folder: which API, which of its requests that come from the pipeline's processes (the first, the second), before or
after it is carried out, and who is killed. The broker takes the file away, writes `sprung.json` (what it does to whom)
and does it. Only processes below `roots` count, so that what others send springs nothing.

Before: the request is not carried out, as if it had been lost with its sender. After: it is carried out, and nobody
receives the response.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from barnabas_process import BarnabasProcess
from warehouse_pipeline import process_tree

VICTIMS = ("driver", "executor", "broker")
EXECUTOR_JVM = "CoarseGrainedExecutorBackend"


@dataclass
class Trap:
    api: str
    """As in barnabas.protocol.api.ApiKey."""
    number: int
    after: bool
    victim: str
    """driver: the first of `roots` and all below it; executor: the Python process that sent the request;
    executor-jvm: the JVM that it belongs to, on a cluster; broker: the broker itself."""
    roots: list[int]
    """Process ids of the pipeline's launcher and, on a cluster, of Spark's workers."""

    def __str__(self) -> str:
        return f"{self.victim} {'after' if self.after else 'before'} {self.api} number {self.number}"

    def put(self, directory: Path) -> None:
        (directory / "sprung.json").unlink(missing_ok=True)
        new = directory / "trap.json.new"
        new.write_text(json.dumps(asdict(self)))
        new.rename(directory / "trap.json")


def sprung(directory: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads((directory / "sprung.json").read_text())
    except FileNotFoundError:
        return None
    return found


class TrapBroker(BarnabasProcess):
    def __init__(self, directory: Path, settings: dict[str, str] | None = None) -> None:
        super().__init__(directory, settings=settings)
        self.trap_directory = directory / "trap"
        self.trap_directory.mkdir(parents=True, exist_ok=True)
        python, rest = self.command[0], self.command[3:]
        self.command = [python, str(Path(__file__).resolve()), str(self.trap_directory), *rest]
        assert self.env is not None
        self.env["PYTHONPATH"] += os.pathsep + str(Path(__file__).resolve().parent)


def sender_of(port: int, pids: list[int]) -> int | None:
    """Which of the processes holds the other end of a connection that comes from this port."""
    wanted = None
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].rpartition(":")[2], 16) == port and fields[9] != "0":
            wanted = f"socket:[{fields[9]}]"
    for pid in pids if wanted is not None else []:
        try:
            if any(os.readlink(each.path) == wanted for each in os.scandir(f"/proc/{pid}/fd")):
                return pid
        except OSError:
            continue  # it has just ended
    return None


def victims(trap: Trap, sender: int) -> list[int]:
    if trap.victim == "driver":
        return process_tree(trap.roots[0])
    if trap.victim == "executor-jvm":
        jvm = next((pid for pid in _parents(sender) if EXECUTOR_JVM in command_of(pid)), sender)
        return process_tree(jvm)
    return [sender] if trap.victim == "executor" else [os.getpid()]


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _parents(pid: int) -> list[int]:
    found = [pid]
    while found[-1] > 1:
        found.append(int(Path(f"/proc/{found[-1]}/stat").read_text().rpartition(")")[2].split()[1]))
    return found


def serve(directory: Path, arguments: list[str]) -> int:
    """Never returns if the trap is for the broker."""
    import barnabas.server.broker_parts as parts
    from barnabas.cli.main import main
    from barnabas.errors import ProtocolError
    from barnabas.net.deferred import Deferred
    from barnabas.net.reply import Parts
    from barnabas.server.request_faults import RequestFault, RequestFaults

    class TrapFaults(RequestFaults):
        """In place of the faults of `barnabas.testing`: asked for each request as those are."""

        trap: Trap | None = None
        seen = 0

        @property
        def armed(self) -> bool:
            if (directory / "trap.json").exists():
                self.trap = Trap(**json.loads((directory / "trap.json").read_text()))
                (directory / "trap.json").unlink()
                self.seen = 0
            return self.trap is not None

        @armed.setter
        def armed(self, value: bool) -> None:
            pass

        def take(self, api_key: Any) -> RequestFault | None:
            return RequestFault(api_key) if self.trap is not None and self.trap.api == api_key.name else None

        def carry_out(self, fault: Any, context: Any, row: Any, frame: memoryview, process: Any) -> Any:
            trap = self.trap
            assert trap is not None
            pids = [pid for root in trap.roots for pid in process_tree(root)]
            sender = sender_of(context.connection.peer_port, pids)
            self.seen += sender is not None
            if sender is None or self.seen < trap.number:
                return process(context, row, frame)
            self.trap = None
            killed = victims(trap, sender)
            if not trap.after:
                spring(trap, killed)
                raise ProtocolError(f"a trap kills the sender of {trap.api}")
            reply = process(context, row, frame)
            if isinstance(reply, Deferred) and not reply.done:
                return OnceDone(reply, trap, killed).reply
            spring(trap, killed)
            return reply

    class OnceDone:
        """Springs the trap when a request that takes longer is carried out."""

        def __init__(self, waited: Deferred[Parts], trap: Trap, killed: list[int]) -> None:
            self.reply: Deferred[Parts] = Deferred()
            self._trap, self._killed = trap, killed
            waited.when_done(self.on_reply_done)

        def on_reply_done(self, reply: Deferred[Parts]) -> None:
            spring(self._trap, self._killed)
            self.reply.fail()

    def spring(trap: Trap, killed: list[int]) -> None:
        said = {"trap": str(trap), "killed": {pid: command_of(pid)[-120:] for pid in killed}}
        new = directory / "sprung.json.new"
        new.write_text(json.dumps(said))
        new.rename(directory / "sprung.json")
        for pid in killed:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    vars(parts)["RequestFaults"] = TrapFaults
    return main(arguments)


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2:]))
