"""The settings of the broker that a command is about: from a file, from options, from --set. Later ones win.

`barnabas server` starts a broker with them; its stop and status find the broker's directories by them. Faults name what
the user typed: `--listen 19100`, not the setting that the option stands for.
"""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig

DEFAULT_ADDRESS = "127.0.0.1:9092"
DEFAULT_METRICS_ADDRESS = "127.0.0.1:9404+"
"""The port of kafka_exporter, so that Prometheus finds it; several brokers of one machine take the next ones."""
DEFAULT_DIRECTORY = "./barnabas-data"
ID_SETTINGS = frozenset({"node.id", "broker.id"})
_ADDRESS = re.compile(r"(\[[^\[\]]*\]|[^:\[\]/]*):[0-9]{1,5}")


def add_config_arguments(parser: argparse.ArgumentParser) -> None:
    """Those by which a broker's directories are found."""
    parser.add_argument("--data-dir", metavar="DIR", help=f"where the logs are kept (default {DEFAULT_DIRECTORY})")
    parser.add_argument("--config", metavar="FILE", help="Kafka's server.properties, Kafka's keys")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="one setting (repeatable)")
    parser.add_argument(
        "--pid-file",
        metavar="FILE",
        help="names the process while it runs (default barnabas.pid in the data directory)",
    )


def config_of(options: argparse.Namespace, what_faults_mean: str) -> "BrokerConfig":
    """The settings. Raises UsageError with all that is wrong with them."""
    from barnabas.cli.command import UsageError
    from barnabas.config.faults import ConfigFaults

    try:
        return read_config(options)
    except ConfigFaults as faults:
        raise UsageError("\n  ".join([f"{what_faults_mean}:", *faults.faults])) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise UsageError(f"cannot read {options.config}: {reason}") from None


def read_config(options: argparse.Namespace) -> "BrokerConfig":
    """Raises ConfigFaults, and OSError or UnicodeDecodeError for the file."""
    from barnabas.config.broker import BrokerConfig
    from barnabas.config.faults import ConfigFaults
    from barnabas.config.properties import parse_properties

    given: dict[str, str] = {}
    if options.config:
        given.update(parse_properties(Path(options.config).read_text(encoding="utf-8")))
    faults = _address_faults(options.listen)
    if options.listen and not faults:
        given["listeners"] = f"PLAINTEXT://{options.listen}"
        given.pop("advertised.listeners", None)
    elif "listeners" not in given:
        given["listeners"] = f"PLAINTEXT://{DEFAULT_ADDRESS}"
    given.setdefault("metrics.listener", DEFAULT_METRICS_ADDRESS)
    if options.data_dir:
        given.pop("log.dir", None)
        given["log.dirs"] = options.data_dir
    elif not given.keys() & {"log.dir", "log.dirs"}:
        given["log.dirs"] = DEFAULT_DIRECTORY
    if options.node_id is not None:
        given["node.id"] = options.node_id
    faults += [f"--set {pair}: expected KEY=VALUE" for pair in options.set if "=" not in pair]
    by_hand = dict(pair.split("=", 1) for pair in options.set if "=" in pair)
    given.update(by_hand)
    is_generated = _id_is_generated(given, getattr(options, "metadata", None))
    if is_generated:
        given = {name: value for name, value in given.items() if name not in ID_SETTINGS}
    elif not given.keys() & ID_SETTINGS:
        given["node.id"] = "0"
    try:
        config = BrokerConfig.parse(given)
    except ConfigFaults as found:
        raise ConfigFaults([*faults, *(_as_typed(fault, options, given, by_hand) for fault in found.faults)]) from None
    if is_generated and not config.metadata_engine.broker_id_generation_enable:
        faults.append("node.id is missing, and broker.id.generation.enable is false")
    if faults:
        raise ConfigFaults(faults)
    return config


def _id_is_generated(given: dict[str, str], metadata: str | None) -> bool:
    """Whether the cluster gives the broker its id: none is given there, or -1 with any store that others may share."""
    ids = [given[name].strip() for name in ID_SETTINGS if name in given]
    location = metadata or given.get("barnabas.metadata") or ""
    is_cluster = location.startswith(("etcd:", "zookeeper:")) or (not metadata and "zookeeper.connect" in given)
    return all(each == "-1" for each in ids) and (is_cluster or bool(ids and location))


def _address_faults(listen: str | None) -> list[str]:
    if not listen or _ADDRESS.fullmatch(listen):
        return []
    example = f", such as 127.0.0.1:{listen}" if listen.isdecimal() else f", such as {DEFAULT_ADDRESS}"
    return [f"--listen {listen}: expected HOST:PORT{example}"]


def _as_typed(fault: str, options: argparse.Namespace, given: dict[str, str], by_hand: dict[str, str]) -> str:
    """A fault names the setting; where an option has set it, that option."""
    from barnabas.config.faults import Fault

    if not isinstance(fault, Fault):
        return fault
    name = fault.setting
    if name == "advertised.listeners" and name not in given and "listeners" not in by_hand and options.listen:
        # What is listened on is what is advertised, unless another setting overrides it.
        return f"--listen {options.listen}: {fault.reason} (--set advertised.listeners=PLAINTEXT://HOST:PORT)"
    typed = {"listeners": ("--listen", options.listen), "node.id": ("--node-id", options.node_id)}
    option, value = typed.get(name, ("", None))
    return f"{option} {value}: {fault.reason}" if value is not None and name not in by_hand else fault
