"""`barnabas up`: brokers of one machine, started together and kept running until Ctrl-C.

    barnabas up                    one broker on 127.0.0.1:9092
    barnabas up --brokers 3        a replicated cluster on 9092, 9093, 9094

Each broker is a process of its own, so a cluster uses more than one core. They share one SQLite file of metadata. A
broker that ends is started again; one that cannot start at all ends the command, with its last output. The console runs
beside them as one more process; without it (not installed, port taken) there is one line and the brokers serve.
"""

import argparse
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, UsageError, command_main
from barnabas.cli.exit_status import FAILED, OK
from barnabas.cli.server_config import DEFAULT_ADDRESS, DEFAULT_DIRECTORY
from barnabas.cli.up_console import NoConsoleError, UpConsole

if TYPE_CHECKING:
    from barnabas.stop_signals import StopRequest

PROGRAM = "barnabas up"
METADATA_FILE = "barnabas-metadata.sqlite"
LARGEST_CLUSTER = 32
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
READY = re.compile(r" ready on (\S+) \(")
CONSOLE_ADDRESS = "127.0.0.1:9080"
START_SECONDS = 120.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.1
RESTART_SECONDS = (1.0, 2.0, 5.0, 10.0)
"""Before each further attempt to restart a broker; the last one from then on."""
EXAMPLES = """\
examples:
  barnabas up                             one broker on 127.0.0.1:9092, until Ctrl-C
  barnabas up --brokers 3                 three brokers, every topic with three replicas
  barnabas up --brokers 3 --protocol SASL_SSL --config secure.properties     see docs/cluster.md
  barnabas up --brokers 2 --listen 127.0.0.1:19092 --data-dir /var/lib/barnabas
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--brokers", metavar="N", type=int, default=1, help="how many processes (default 1)")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=DEFAULT_ADDRESS,
        help=f"address of the first broker; the others take the next ports (default {DEFAULT_ADDRESS})",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        default=DEFAULT_DIRECTORY,
        help=f"where everything is kept (default {DEFAULT_DIRECTORY})",
    )
    parser.add_argument(
        "--console",
        metavar="HOST:PORT",
        default=CONSOLE_ADDRESS,
        help=f"address of the web console; '' is none (default {CONSOLE_ADDRESS})",
    )
    parser.add_argument("--config", metavar="FILE", help="settings of every broker, Kafka's keys and format")
    parser.add_argument(
        "--protocol",
        choices=PROTOCOLS,
        default=PROTOCOLS[0],
        help="how clients and brokers reach a broker; certificates and users are in --config (default PLAINTEXT)",
    )
    parser.add_argument(
        "--console-users",
        metavar="FILE",
        help="the console's password file (barnabas console user add), needed beyond loopback and with client"
        " certificates; with SASL the users of the cluster log in without it",
    )
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a setting of every broker")


def up(options: argparse.Namespace) -> int:
    host, _, port = options.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_536 - options.brokers:
        raise UsageError(f"--listen {options.listen}: expected HOST:PORT, such as {DEFAULT_ADDRESS}")
    if not 1 <= options.brokers <= LARGEST_CLUSTER:
        raise UsageError(f"--brokers {options.brokers}: expected 1 to {LARGEST_CLUSTER}")
    return _run(options, host, int(port))


def _run(options: argparse.Namespace, host: str, port: int) -> int:
    from barnabas.child_process import ProcessError
    from barnabas.stop_signals import StopRequest

    folder = Path(options.data_dir).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    console: UpConsole | None = None
    with StopRequest() as stop:
        brokers = [
            _Broker(number, _arguments(options, folder, number, host, port), folder, _listener(options))
            for number in range(options.brokers)
        ]
        try:
            if not _wait_until_ready(brokers, stop):
                return OK
            addresses = ",".join(broker.address for broker in brokers)
            what = "broker" if len(brokers) == 1 else f"cluster of {len(brokers)} brokers"
            print(f"{what} ready on {addresses} (data {options.data_dir}); Ctrl-C stops it", flush=True)
            if options.console:
                console = _start_console(options, addresses, folder)
            while not stop.requested:
                for broker in brokers:
                    broker.keep_running()
                if console is not None:
                    console.watch()
                time.sleep(POLL_SECONDS)
        except ProcessError as error:
            print(f"{PROGRAM}: {error}", file=sys.stderr)
            return FAILED
        finally:
            if console is not None:
                console.stop(STOP_SECONDS)
            _stop(brokers)
    print("stopped", flush=True)
    return OK


def _start_console(options: argparse.Namespace, bootstrap: str, folder: Path) -> UpConsole | None:
    try:
        return UpConsole(options, bootstrap, folder)
    except NoConsoleError as error:
        print(f"no console: {error}", flush=True)
        return None


def _arguments(options: argparse.Namespace, folder: Path, number: int, host: str, port: int) -> list[str]:
    count: int = options.brokers
    address = f"{host}:{port + number if port else 0}"
    alone = count == 1
    words = ["server", "--node-id", str(number)]
    if options.config:
        words += ["--config", str(Path(options.config).absolute())]
    words += ["--data-dir", str(folder if alone else folder / f"broker-{number}")]
    if not alone:
        words += ["--metadata", f"sqlite:{folder / METADATA_FILE}"]
        # Replicated as far as it goes, and writable while one broker is away.
        pairs = [f"default.replication.factor={min(count, 3)}", f"min.insync.replicas={2 if count > 2 else 1}"]
    else:
        pairs = []
    for pair in [*pairs, *options.set]:
        words += ["--set", pair]
    if options.protocol == PROTOCOLS[0]:
        return [*words, "--listen", address]
    return [*words, "--set", f"{_listener(options)}{address}"]


def _listener(options: argparse.Namespace) -> str:
    """What stands in front of the address, which is a broker's last argument."""
    return "" if options.protocol == PROTOCOLS[0] else f"listeners={options.protocol}://"


def _wait_until_ready(brokers: "Sequence[_Broker]", stop: "StopRequest") -> bool:
    """False if a stop was requested meanwhile. Raises ProcessError if a broker cannot start."""
    from barnabas.child_process import ProcessError

    until = time.monotonic() + START_SECONDS
    for broker in brokers:
        while not broker.is_ready():
            if stop.requested:
                return False
            if time.monotonic() > until:
                raise ProcessError(f"broker {broker.number} is not ready after {START_SECONDS:.0f} s: see {broker.log}")
            time.sleep(POLL_SECONDS)
        print(f"broker {broker.number} ready on {broker.address}, output in {broker.log}", flush=True)
    return True


def _stop(brokers: "Sequence[_Broker]") -> None:
    for broker in brokers:
        broker.process.signal()
    for broker in brokers:
        broker.process.stop(STOP_SECONDS)


class _Broker:
    """One broker process and its successors."""

    def __init__(self, number: int, arguments: list[str], folder: Path, listener: str) -> None:
        from barnabas.child_process import ChildProcess

        self.number = number
        self.address = ""
        self._arguments = arguments
        self._listener = listener
        self._folder = folder
        self._restarts = 0
        self._restart_at: float | None = None
        self.process = ChildProcess(self._name, arguments, folder, signal.SIGTERM)

    @property
    def _name(self) -> str:
        return f"broker-{self.number}"

    @property
    def log(self) -> Path:
        return self._folder / f"{self._name}.out"

    def is_ready(self) -> bool:
        """Raises ProcessError if it has exited."""
        if not self.process.has_printed(READY):
            return False
        found = READY.search(self.process.printed)
        assert found is not None
        self.address = found.group(1)
        # A port that the system chose stays the broker's: its clients come back to it.
        self._arguments[-1] = f"{self._listener}{self.address}"
        return True

    def keep_running(self) -> None:
        from barnabas.child_process import ChildProcess

        if not self.process.has_ended:
            return
        now = time.monotonic()
        if self._restart_at is None:
            wait = RESTART_SECONDS[min(self._restarts, len(RESTART_SECONDS) - 1)]
            self._restart_at = now + wait
            print(f"broker {self.number} has ended (see {self.log}); it starts again in {wait:.0f} s", flush=True)
        elif now >= self._restart_at:
            self._restart_at = None
            self._restarts += 1
            self.process = ChildProcess(self._name, self._arguments, self._folder, signal.SIGTERM)


COMMAND = Command(
    "up", "run the brokers of one machine until Ctrl-C", add_arguments, up, connects=False, notes=EXAMPLES
)
main = command_main(COMMAND)
