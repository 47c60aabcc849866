"""kafka-server-stop.sh: asks the brokers of this machine that kafka-server-start.sh has started to stop.

As Kafka's it finds them by their command lines, sends SIGTERM (or $SIGNAL) and does not wait; `--node-id N` and
`--process-role ROLE` choose by what stands in their server.properties. `barnabas server stop` waits, and is for one
broker however it was started.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from barnabas.cli.exit_status import FAILED, OK
from barnabas.cli.kafka.flags import Flag, Options, Tool, WrongUse
from barnabas.cli.kafka.server_start import parsed

TOOL = Tool(
    "kafka-server-stop.sh",
    "Stops the brokers of this machine that kafka-server-start.sh has started.",
    (
        Flag("node-id", "only the broker with this node.id", "N"),
        Flag("process-role", "only brokers whose process.roles are these", "ROLE"),
    ),
)
MODULE = "barnabas.cli.kafka.server_start"
SCRIPTS = ("kafka-server-start.sh", "kafka-server-start")


class Server(NamedTuple):
    pid: int
    words: list[str]
    """What followed the command's name."""


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    # A tool without words prints its help; this one stops all brokers then.
    return TOOL.run(words or ["--process-role="], lambda options: None, _stop)


def _stop(options: Options) -> int:
    found = [server for server in servers() if _is_meant(server, options)]
    if not found:
        print("No kafka server to stop")
        return FAILED
    name = os.environ.get("SIGNAL") or "TERM"
    if f"SIG{name}" not in signal.Signals.__members__:
        raise WrongUse(f"SIGNAL={name}: there is no such signal")
    number = signal.Signals[f"SIG{name}"]
    status = OK
    for server in found:
        try:
            os.kill(server.pid, number)
        except ProcessLookupError:
            pass  # it has just ended
        except PermissionError:
            print(f"{TOOL.program}: pid {server.pid} belongs to another user", file=sys.stderr)
            status = FAILED
    return status


def servers() -> Iterator[Server]:
    for pid, line in _command_lines():
        interpreter = os.path.basename(line[0]) if line else ""
        if pid == os.getpid() or not interpreter.startswith("python"):
            continue
        if len(line) > 1 and os.path.basename(line[1]) in SCRIPTS:
            yield Server(pid, line[2:])
        elif line[1:3] == ["-m", MODULE]:
            yield Server(pid, line[3:])


def _is_meant(server: Server, options: Options) -> bool:
    wanted = {"node.id": options.value("node-id"), "process.roles": options.value("process-role")}
    if not any(wanted.values()):
        return True
    settings = _settings(server)
    settings.setdefault("node.id", settings.get("broker.id", "0"))
    return all(value is None or settings.get(name) == value for name, value in wanted.items())


def _settings(server: Server) -> dict[str, str]:
    """As far as they can be read from here."""
    from barnabas.config.properties import parse_properties

    try:
        options = parsed(server.words)
        file = Path(f"/proc/{server.pid}/cwd", options.config)
        settings = parse_properties(file.read_text(encoding="utf-8"))
    except (WrongUse, OSError, ValueError):
        return {}
    return settings | dict(pair.split("=", 1) for pair in options.set if "=" in pair)


def _command_lines() -> Iterator[tuple[int, list[str]]]:
    if not Path("/proc/self/cmdline").exists():
        yield from _from_ps()
        return
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                line = Path("/proc", entry, "cmdline").read_bytes()
            except OSError:
                continue  # it has just ended
            yield int(entry), [os.fsdecode(word) for word in line.split(b"\0")[:-1]]


def _from_ps() -> Iterator[tuple[int, list[str]]]:
    listed = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, text=True, check=False).stdout
    for row in listed.splitlines():
        pid, *line = row.split()
        yield int(pid), line


if __name__ == "__main__":
    raise SystemExit(main())
