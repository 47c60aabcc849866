"""`barnabas plan`: from a rate, a record size, replicas and retention to machines, partitions, disk, memory, network.

The arithmetic is `console/capacity`. What one broker takes is typed, measured now (`--measure`), or that of the
project's own benchmarks, and the output says which.
"""

import argparse
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.command import Command, UsageError, command_main
from barnabas.cli.numbers import NumberError
from barnabas.cli.output import Output, Table

if TYPE_CHECKING:
    from barnabas.cli.plan.measurement import Figures
    from barnabas.console.capacity import Load, Size

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_HOURS = {"h": 1.0, "d": 24.0, "w": 168.0, "min": 1 / 60}
_NUMBER = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)(?:/s)?\s*")
MOST = 1e15
MOST_PROCESSES = 64
NOTES = """\
examples:
  barnabas plan --rate 20000 --record-size 1kB                        three replicas, kept for three days
  barnabas plan --rate 200000 --record-size 500 --retention 7d --groups 4 --disk 4TB
  barnabas plan --rate 20000 --record-size 1kB --measure              with what this cluster takes: it is busy meanwhile
"""


def amount(text: str) -> float:
    """Bytes: `800`, `1kB`, `2TB`."""
    return _number(text, _UNITS, "bytes, like 800, 1kB or 2TB")


def count(text: str) -> float:
    return _number(text, {"": 1, "k": 10**3, "m": 10**6}, "a number above 0, like 20000 or 20k")


def hours(text: str) -> float:
    return _number(text, _HOURS, "a time, like 12h, 3d or 2w")


def share(text: str) -> float:
    value = _number(text.removesuffix("%") if text != "0" else "0.0", {"": 1}, "percent from 0 to 95", least=0.0)
    if value > 95:
        raise NumberError(f"{text!r}: expected percent from 0 to 95")
    return value / 100


def _number(text: str, units: dict[str, float] | dict[str, int], expected: str, least: float = 1e-9) -> float:
    found = _NUMBER.fullmatch(text)
    unit = found[2].lower() if found else "?"
    value = float(found[1]) * units[unit] if found and unit in units else -1.0
    if not least <= value <= MOST:
        raise NumberError(f"{text!r}: expected {expected}")
    return value


def replicas(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 100:
        raise NumberError(f"{text!r}: expected 1 to 100")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    load = parser.add_argument_group("the load")
    load.add_argument("--rate", metavar="N", type=count, required=True, help="records per second at the peak")
    load.add_argument("--record-size", metavar="SIZE", type=amount, required=True, help="as stored, after compression")
    load.add_argument("--average-rate", metavar="N", type=count, help="for the disk (default: the peak, which is safe)")
    load.add_argument("--replicas", metavar="N", type=replicas, default=3, help="default 3")
    load.add_argument("--retention", metavar="TIME", type=hours, default=72.0, help="default 3d")
    load.add_argument("--groups", metavar="N", type=count, default=1.0, help="that read every record (default 1)")
    load.add_argument("--cached-seconds", metavar="N", type=count, default=600.0, help="held in memory (default 600)")
    load.add_argument("--headroom", metavar="PERCENT", type=share, default=0.3, help="that stays free (default 30)")
    load.add_argument("--disk", metavar="SIZE", type=amount, help="of one broker (default: as much as is needed)")
    one = parser.add_argument_group("what was measured (default: the project's benchmarks)")
    one.add_argument("--broker-in", metavar="BYTES", type=amount, help="that one broker takes per second")
    one.add_argument("--broker-out", metavar="BYTES", type=amount, help="that one broker sends per second")
    one.add_argument("--partition-in", metavar="BYTES", type=amount, help="that one partition takes per second")
    one.add_argument("--consumer", metavar="BYTES", type=amount, help="that one of your consumers works through")
    one.add_argument("--measure", action="store_true", help="measure it first, on the cluster of -b")
    one.add_argument("--records", metavar="N", type=count, default=200_000.0, help="for that (default 200000)")
    one.add_argument("--processes", metavar="N", type=count, help="clients at once (default: cores, up to 4)")


class Plan(NamedTuple):
    load: "Load"
    size: "Size"
    source: str
    """Where the figures of a broker come from."""


def plan(options: argparse.Namespace) -> Plan:
    from barnabas.console.capacity import Load, size_of

    figures, source = _figures(options)
    given = (options.broker_in, options.broker_out, options.partition_in, options.consumer)
    broker_in, broker_out, partition, consumer = (
        typed if typed is not None else found for typed, found in zip(given, figures)
    )
    if any(each is not None for each in given):
        source = "given" if all(each is not None for each in given) else f"given, the others {source}"
    load = Load(
        peak_records=options.rate,
        average_records=options.average_rate or options.rate,
        record_bytes=options.record_size,
        replicas=options.replicas,
        retention_hours=options.retention,
        headroom=options.headroom,
        broker_bytes=broker_in,
        broker_read_bytes=broker_out,
        partition_bytes=partition,
        consumer_bytes=consumer,
        cached_seconds=options.cached_seconds,
        broker_disk_bytes=options.disk or 0.0,
        groups=options.groups,
    )
    if load.average_records > load.peak_records:
        raise UsageError("--average-rate is above --rate, which is the peak")
    return Plan(load, size_of(load), source)


def _figures(options: argparse.Namespace) -> "tuple[Figures, str]":
    if not options.measure:
        return reference(options.record_size), "of docs/benchmarks.md: --measure takes those of your cluster"
    from barnabas.cli.connection import admin_client
    from barnabas.cli.exit_status import complain
    from barnabas.cli.plan.measurement import Trial, measure

    processes = int(options.processes or min(4, os.cpu_count() or 1))
    if not 1 <= processes <= MOST_PROCESSES:
        raise UsageError(f"--processes {processes}: expected 1 to {MOST_PROCESSES}")
    trial = Trial(max(1, int(options.records)), max(1, int(options.record_size)), processes, _connection(options))
    with admin_client(options) as admin:
        figures = measure(admin, trial, lambda line: None if options.json else complain(line))
    return figures, f"measured with {processes} producers and consumers at once"


def _connection(options: argparse.Namespace) -> list[str]:
    words = ["-b", options.bootstrap_server] if options.bootstrap_server else []
    words += ["--command-config", options.command_config] if options.command_config else []
    return words + [word for pair in options.client_options for word in ("-X", pair)]


def reference(record_bytes: float) -> "Figures":
    """Of this project's benchmarks, two cores shared with the clients: a cost per record and one per byte."""
    from barnabas.cli.plan.measurement import Figures

    produced = record_bytes / (1.3e-6 + 8.0e-9 * record_bytes)
    consumed = record_bytes / (1.05e-6 + 0.85e-9 * record_bytes)
    return Figures(produced, consumed, produced, consumed)


def render(options: argparse.Namespace, found: Plan) -> Output:
    load, size = found.load, found.size
    document = {"load": _fields(load), "size": _fields(size), "figures": found.source}
    return Output(document, [Table(["NEED", "VALUE", "BECAUSE"], _rows(load, size)), "", f"figures: {found.source}"])


def _rows(load: "Load", size: "Size") -> list[tuple[str, str, str]]:
    free = f"{load.headroom:.0%} free"
    cached = f"{load.cached_seconds:,.0f} s of writes, beside the broker's own"
    return [
        ("brokers", f"{size.brokers}", _why_brokers(load, size)),
        (
            "partitions",
            f"{size.partitions_spread}",
            f"at least {size.partitions}: one takes {_rate(load.partition_bytes)},"
            f" one consumer {_rate(load.consumer_bytes)}, {free}",
        ),
        (
            "disk",
            _bytes(size.disk_bytes),
            f"{_bytes(size.disk_bytes_per_broker)} per broker, {load.retention_hours:g} h of"
            f" {load.average_records:,.0f} records/s, {load.replicas} replicas, {free}",
        ),
        ("page cache", f"{_bytes(size.cache_bytes_per_broker)} per broker", cached),
        ("network in", f"{_rate(size.network_in_per_broker)} per broker", f"{_rate(size.written_bytes)} in all"),
        (
            "network out",
            f"{_rate(size.network_out_per_broker)} per broker",
            f"{_rate(size.sent_bytes)} in all, to {load.groups:g} groups and {load.replicas - 1} more replicas",
        ),
    ]


def _why_brokers(load: "Load", size: "Size") -> str:
    words = [f"{size.brokers_for_rate} to write {_rate(size.written_bytes)} ({_rate(load.broker_bytes)} each)"]
    words.append(f"{size.brokers_for_reads} to send {_rate(size.sent_bytes)} ({_rate(load.broker_read_bytes)} each)")
    if load.broker_disk_bytes:
        words.append(f"{size.brokers_for_disk} for the disk ({_bytes(load.broker_disk_bytes)} each)")
    if size.is_fewer_than_replicas:
        words.append(f"{load.replicas} for the replicas")
    return ", ".join(words)


def _bytes(value: float) -> str:
    from barnabas.cli.monitor.picture import size

    return size(value)


def _rate(value: float) -> str:
    return f"{_bytes(value)}/s"


def _fields(each: "Load | Size") -> dict[str, float]:
    from dataclasses import asdict

    return {name: round(value, 3) for name, value in asdict(each).items()}


COMMAND = Command(
    "plan", "how many machines, partitions, disk and memory a load needs", add_arguments, plan, render, notes=NOTES
)
main = command_main(COMMAND)
