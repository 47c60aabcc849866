"""`barnabas server`: one broker, in the foreground or as a daemon.

    barnabas server [start] [OPTIONS]     until Ctrl-C or SIGTERM
    barnabas server start --daemon        in the background; returns when it is ready
    barnabas server stop | status         see server_control.py

Settings come from, later ones winning: the defaults, --config (Kafka's server.properties), the options, --set. Every
fault in them is listed and nothing is started (exit status 2). A broker that cannot start (port taken, data directory
in use or of another cluster) says why and exits with status 1. SIGTERM and Ctrl-C stop it cleanly (0).

Options are parsed before anything else is imported: --help and a typo cost a tenth of a start.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, UsageError, command_main, noun_main, run_own
from barnabas.cli.exit_status import OK
from barnabas.cli.server_config import add_config_arguments, config_of
from barnabas.cli.server_control import STATUS, STOP

if TYPE_CHECKING:
    from barnabas.cli.pid_file import PidFile
    from barnabas.config.broker import BrokerConfig

PROGRAM = "barnabas server"
LOG_NAME = "barnabas.log"
LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"]
NOTES = """\
start [--daemon], stop and status may follow `server`; each has a --help of its own.

examples:
  barnabas server                                      on 127.0.0.1:9092, until Ctrl-C
  barnabas server --listen :9092 --data-dir /var/lib/barnabas     on all interfaces
  barnabas server --config server.properties --set num.partitions=3
  barnabas server start --daemon && barnabas server status && barnabas server stop
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--listen", metavar="HOST:PORT", help="where to listen (default 127.0.0.1:9092)")
    parser.add_argument("--node-id", metavar="N", help="this broker's id (default 0; etcd or ZooKeeper: generated)")
    add_config_arguments(parser)
    parser.add_argument(
        "--metadata",
        metavar="STORE",
        help="where metadata is kept: etcd://HOST:PORT,.../PREFIX, zookeeper://HOST:PORT,.../CHROOT, or a file that the"
        " brokers of one host share (default: a file of this broker)",
    )
    parser.add_argument("--log-level", default="INFO", choices=LEVELS)
    parser.add_argument("--daemon", action="store_true", help="run in the background; returns when the broker is ready")
    parser.add_argument(
        "--log-file", metavar="FILE", help=f"output of --daemon (default {LOG_NAME} in the data directory)"
    )
    parser.set_defaults(log_name=LOG_NAME)


def start(options: argparse.Namespace, program: str = PROGRAM) -> int:
    """Also behind kafka-server-start.sh, which has its own name and words. Raises UsageError and Refused."""
    import logging

    config = config_of(options, "nothing was started, because of the settings")
    logging.basicConfig(level=options.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")

    def serve(on_ready: Callable[[str], None]) -> int:
        _name_settings_without_effect(config)
        return _run(config, options, on_ready)

    if options.daemon:
        return _start_daemon(options, config, program, serve)
    return serve(lambda line: print(line, flush=True))


def _start_daemon(
    options: argparse.Namespace,
    config: "BrokerConfig",
    program: str,
    serve: Callable[[Callable[[str], None]], int],
) -> int:
    from barnabas.cli.daemon import LogFileError, start_daemon

    log = Path(options.log_file or Path(config.log_directories[0]) / options.log_name)

    def announce(pid: int, ready_line: str) -> None:
        if program == PROGRAM:  # Kafka's says nothing
            print(f"{program}: started as pid {pid}, output in {log}\n{ready_line}", flush=True)

    try:
        # In the child, failures are reported where its output goes.
        return start_daemon(log, lambda on_ready: run_own(program, lambda: serve(on_ready)), announce)
    except LogFileError as error:
        raise Refused(f"nothing was started: {error}") from None


def _run(config: "BrokerConfig", options: argparse.Namespace, on_ready: Callable[[str], None]) -> int:
    """The broker from its start to its end, in this process."""
    import asyncio

    from barnabas.cli.pid_file import PidFileHeldError
    from barnabas.server.process import keep_freed_memory, new_event_loop, raise_file_limit

    try:
        pid_file = _acquire_pid_file(options.pid_file, config)
    except PidFileHeldError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"cannot write {options.pid_file}: {error.strerror}") from None
    raise_file_limit()
    keep_freed_memory()
    failed_start: Refused | UsageError | None = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        try:
            runner.run(_serve(config, options.metadata, on_ready))
        except (Refused, UsageError) as error:
            failed_start = error
    if pid_file is not None:  # after a crash it stays, for `server status`
        pid_file.remove()
    if failed_start is not None:
        raise failed_start
    return OK


def _acquire_pid_file(given: str | None, config: "BrokerConfig") -> "PidFile | None":
    """The given one, or that of the first writable directory: a broker runs without one, if need be."""
    import logging

    from barnabas.cli.pid_file import PidFile, default_paths

    if given:
        pid_file = PidFile(Path(given))
        pid_file.acquire()
        return pid_file
    reason = ""
    for path in default_paths(config):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            pid_file = PidFile(path)
            pid_file.acquire()
            return pid_file
        except OSError as error:
            reason = reason or f"cannot write {path}: {error.strerror}"
    logging.getLogger("barnabas").warning("no pid file, so stop and status will not find this broker: %s", reason)
    return None


def _name_settings_without_effect(config: "BrokerConfig") -> None:
    import logging

    from barnabas.config.broker import no_effect

    names = no_effect(config.given)
    if names:
        logging.getLogger("barnabas").warning("settings without effect here: %s", ", ".join(names))


async def _serve(config: "BrokerConfig", metadata: str | None, on_ready: Callable[[str], None]) -> None:
    import asyncio

    from barnabas import __version__
    from barnabas.cli.server_config import ID_SETTINGS
    from barnabas.server.broker import Broker, StartError, UnknownStoreError, make_parts
    from barnabas.server.broker_ids import NoBrokerIdError, with_broker_id
    from barnabas.server.process import tune_garbage_collection
    from barnabas.stop_signals import call_on_stop

    try:
        if not config.given.keys() & ID_SETTINGS:
            config = await asyncio.to_thread(with_broker_id, config, metadata)
        broker = Broker(make_parts(config, metadata=metadata))
    except UnknownStoreError as error:
        raise UsageError(str(error)) from None
    except NoBrokerIdError as error:
        raise Refused(str(error)) from None
    stop = asyncio.Event()
    call_on_stop(asyncio.get_running_loop(), stop.set)
    try:
        await broker.start()
    except StartError as error:
        raise Refused(str(error)) from None
    tune_garbage_collection()
    directories = ",".join(str(each) for each in broker.data_directories)
    address = broker.address
    on_ready(f"barnabas {__version__} ready on {address} (node {config.node_id}, data {directories})")
    await stop.wait()
    await broker.stop()
    print(f"barnabas {__version__} stopped cleanly (node {config.node_id}, {address})", flush=True)


START = Command(
    "start",
    "run one broker until Ctrl-C or SIGTERM, or in the background",
    add_arguments,
    start,
    connects=False,
    notes=NOTES,
)
COMMAND = START
VERBS = (START, STOP, STATUS)
_start = command_main(START, PROGRAM)
_with_verb = noun_main("server", "One broker of this machine.", VERBS)


def main(arguments: Sequence[str]) -> int:
    is_verb = bool(arguments) and arguments[0] in [verb.name for verb in VERBS]
    return (_with_verb if is_verb else _start)(arguments)
