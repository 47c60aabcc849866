"""`barnabas server`: one broker in the foreground.

Settings come from, later ones winning: the defaults, --config (Kafka's server.properties), the options, --set. Every
fault in them is listed and nothing is started (exit status 2). A broker that cannot start (port taken, data directory
in use or of another cluster) says why and exits with status 1. SIGTERM and Ctrl-C stop it cleanly (0).

Options are parsed before anything else is imported: --help and a typo cost a tenth of a start.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.command_parser import CommandParser

if TYPE_CHECKING:
    import asyncio

    from barnabas.config.broker import BrokerConfig

OK, FAILED, USAGE_ERROR = 0, 1, 2


def main(arguments: Sequence[str]) -> int:
    options = _parser().parse(arguments)
    import asyncio
    import logging

    from barnabas.config.faults import ConfigFaults

    logging.basicConfig(level=options.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        config, given = _config(options)
    except ConfigFaults as faults:
        print("barnabas server: nothing was started, because of the settings:", file=sys.stderr)
        for fault in faults.faults:
            print(f"  {fault}", file=sys.stderr)
        return USAGE_ERROR
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        print(f"barnabas server: cannot read {options.config}: {reason}", file=sys.stderr)
        return USAGE_ERROR
    _name_settings_without_effect(given)
    _raise_file_limit()
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        return runner.run(_serve(config, options.metadata))


def _parser() -> CommandParser:
    parser = CommandParser(prog="barnabas server", description="Run one broker until Ctrl-C or SIGTERM.")
    parser.add_argument("--listen", metavar="HOST:PORT", help="where to listen (default 127.0.0.1:9092)")
    parser.add_argument("--data-dir", metavar="DIR", help="where the logs are kept (default ./barnabas-data)")
    parser.add_argument("--node-id", metavar="N", help="this broker's id (default 0)")
    parser.add_argument("--config", metavar="FILE", help="Kafka's server.properties, Kafka's keys")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="one setting (repeatable)")
    parser.add_argument("--metadata", metavar="FILE", help="metadata file shared by the brokers of one host")
    parser.add_argument("--log-level", default="INFO", choices=["DEBUG", "INFO", "WARNING", "ERROR"])
    return parser


def _config(options: argparse.Namespace) -> "tuple[BrokerConfig, dict[str, str]]":
    from pathlib import Path

    from barnabas.config.broker import BrokerConfig
    from barnabas.config.faults import ConfigFaults
    from barnabas.config.properties import parse_properties

    given: dict[str, str] = {}
    if options.config:
        given.update(parse_properties(Path(options.config).read_text(encoding="utf-8")))
    if options.listen:
        given["listeners"] = f"PLAINTEXT://{options.listen}"
        given.pop("advertised.listeners", None)
    elif "listeners" not in given:
        given["listeners"] = "PLAINTEXT://127.0.0.1:9092"
    if options.data_dir:
        given.pop("log.dir", None)
        given["log.dirs"] = options.data_dir
    elif not given.keys() & {"log.dir", "log.dirs"}:
        given["log.dirs"] = "./barnabas-data"
    if options.node_id is not None:
        given["node.id"] = options.node_id
    elif not given.keys() & {"node.id", "broker.id"}:
        given["node.id"] = "0"
    wrong = [f"--set {pair}: expected KEY=VALUE" for pair in options.set if "=" not in pair]
    given.update(pair.split("=", 1) for pair in options.set if "=" in pair)
    try:
        config = BrokerConfig.parse(given)
    except ConfigFaults as faults:
        raise ConfigFaults([*wrong, *faults.faults]) from None
    if wrong:
        raise ConfigFaults(wrong)
    return config, given


def _name_settings_without_effect(given: dict[str, str]) -> None:
    import logging

    from barnabas.config.broker import no_effect

    names = no_effect(given)
    if names:
        logging.getLogger("barnabas").warning("settings without effect here: %s", ", ".join(sorted(names)))


def _raise_file_limit() -> None:
    """A partition in use holds a few files open, a connection one: take all that the system allows."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _new_loop() -> "asyncio.AbstractEventLoop":
    import asyncio

    if sys.platform != "linux":
        return asyncio.new_event_loop()
    from barnabas.net.polling import EagerSelector

    return asyncio.SelectorEventLoop(EagerSelector())


def _settle_memory() -> None:
    """What lives as long as the broker is set aside, so that looking for garbage costs by what comes and goes.

    Requests leave no cycles behind: with the usual threshold of 700 objects a collection would run every few dozen of
    them, over everything young, and find nothing.
    """
    import gc

    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


async def _serve(config: "BrokerConfig", metadata: str | None) -> int:
    import asyncio
    import signal

    from barnabas import __version__
    from barnabas.server.broker import Broker, StartError

    broker = Broker(config, metadata_file=metadata)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await broker.start()
    except StartError as error:
        print(f"barnabas server: {error}", file=sys.stderr)
        return FAILED
    _settle_memory()
    directories = ",".join(str(each) for each in broker.data_directories)
    print(f"barnabas {__version__} ready on {broker.address} (node {config.node_id}, data {directories})", flush=True)
    await stop.wait()
    await broker.stop()
    return OK
