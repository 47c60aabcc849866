"""`barnabas mirror --from A --to B --topics REGEX`: copy until Ctrl-C, or with --stop-at-end until all is copied."""

import argparse
import logging
import re
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, UsageError, command_main
from barnabas.cli.exit_status import FAILED, OK
from barnabas.cli.numbers import int16, seconds
from barnabas.cli.output import counted

if TYPE_CHECKING:
    from barnabas.cli.mirror.copying import Copier
    from barnabas.cli.mirror.topics import MirroredTopic, TopicRules
    from barnabas.client.admin import Admin
    from barnabas.stop_signals import StopRequest
    from barnabas.types import TopicPartition

PROGRAM = "barnabas mirror"
POLL_SECONDS = 0.5
RETRY_SECONDS = 1.0
logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", metavar="HOST:PORT", required=True, help="brokers of the source")
    parser.add_argument("--to", dest="target", metavar="HOST:PORT", required=True, help="brokers of the target")
    parser.add_argument("--topics", metavar="REGEX", required=True, help="topics to copy; must match the whole name")
    parser.add_argument("--groups", metavar="REGEX", help="groups whose offsets are translated (default none)")
    parser.add_argument("--name", default="default", help="of this mirror; one process per name (default: default)")
    parser.add_argument("--prefix", default="", help="put before the names of topics in the target")
    parser.add_argument(
        "--replication-factor", metavar="N", type=int16, help="of topics made in the target (default: the target's)"
    )
    parser.add_argument("--from-config", metavar="FILE", help="client options for the source (TLS, SASL, ...)")
    parser.add_argument("--to-config", metavar="FILE", help="client options for the target")
    parser.add_argument(
        "--interval",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="between looks at topics and groups (default 10)",
    )
    parser.add_argument("--stop-at-end", action="store_true", help="stop when all that is there at the start is copied")
    parser.add_argument("-v", "--verbose", action="store_true", help="log on stderr what the clients do")


def mirror(options: argparse.Namespace) -> int:
    from barnabas.cli.log_level import log_level
    from barnabas.cli.mirror.copying import RecreatedTopicError
    from barnabas.cli.mirror.topics import TopicRules
    from barnabas.client.errors import FencedError
    from barnabas.errors import KafkaError
    from barnabas.stop_signals import StopRequest

    rules = TopicRules(_pattern("--topics", options.topics), options.prefix, options.replication_factor)
    groups = None if options.groups is None else _pattern("--groups", options.groups)
    job = _Job(rules, groups, options)
    with log_level(logging.DEBUG if options.verbose else logging.WARNING), StopRequest() as stop:
        while True:
            try:
                _attempt(job, options, stop)
            except FencedError:
                print(f"{PROGRAM}: another mirror named {options.name} has taken over", file=sys.stderr)
                return FAILED
            except RecreatedTopicError as error:
                print(f"{PROGRAM}: {error}", file=sys.stderr)
                return FAILED
            except KafkaError as error:
                if not error.retriable or stop.requested:
                    raise
                logger.warning("beginning again where the last transaction ended: %s", error)
                time.sleep(RETRY_SECONDS)
                continue
            print(f"{counted(job.copied, 'record')} copied, {counted(len(job.topics), 'topic')}", flush=True)
            return OK


def _attempt(job: "_Job", options: argparse.Namespace, stop: "StopRequest") -> None:
    """With clients of its own: `init_transactions` ends what a failure left behind, then positions are read again."""
    from barnabas.cli.mirror.copying import Copier
    from barnabas.cli.mirror.progress import create_runs_topic, group_of, load_translations
    from barnabas.client.admin import Admin
    from barnabas.client.consumer import Consumer
    from barnabas.client.producer import Producer

    source, target = _client(options.source, options.from_config), _client(options.target, options.to_config)
    reading = {"isolation.level": "read_committed", "enable.auto.commit": "false"}
    writing = {"transactional.id": group_of(options.name), "linger.ms": "5"}
    with Admin.from_config(source) as source_admin, Admin.from_config(target) as target_admin:
        create_runs_topic(target_admin, options.name, options.replication_factor)
        with (
            Producer.from_config(target | writing) as producer,
            Consumer.from_config(source | reading | {"auto.offset.reset": "none"}) as consumer,
        ):
            producer.init_transactions()
            with Consumer.from_config(target | reading) as notes:
                translations = load_translations(notes, options.name)
            job.run(Copier(consumer, producer, options.name, translations), source_admin, target_admin, stop)


class _Job:
    """One mirror through all its attempts."""

    def __init__(self, rules: "TopicRules", groups: re.Pattern[str] | None, options: argparse.Namespace) -> None:
        self.copied = 0
        self.topics: list[MirroredTopic] = []
        self._rules = rules
        self._groups = groups
        self._options = options
        self._seen: set[str] = set()
        self._copier: Copier
        self._source: Admin
        self._target: Admin

    def run(self, copier: "Copier", source: "Admin", target: "Admin", stop: "StopRequest") -> None:
        from barnabas.cli.progress import Progress
        from barnabas.errors import KafkaError

        self._copier, self._source, self._target = copier, source, target
        self._look_at_topics()
        ends = copier.end_offsets() if self._options.stop_at_end else None
        next_look = time.monotonic() + self._options.interval
        with Progress("mirroring") as progress:
            while not stop.requested and not (ends is not None and self._is_at(ends)):
                before = copier.copied_bytes
                try:
                    count = copier.copy_some(POLL_SECONDS)
                except KafkaError as error:
                    if not copier.on_out_of_range(error):
                        raise
                    continue
                self.copied += count
                progress.add(copier.copied_bytes - before, count)
                if time.monotonic() >= next_look:
                    self._look_at_topics()
                    self._translate_groups()
                    next_look = time.monotonic() + self._options.interval
        self._translate_groups()

    def _look_at_topics(self) -> None:
        from barnabas.cli.mirror.progress import stored_positions
        from barnabas.cli.mirror.topics import synchronize_topics

        self.topics = synchronize_topics(self._source, self._target, self._rules)
        for topic in self.topics:
            if topic.source not in self._seen:
                self._seen.add(topic.source)
                print(
                    f"mirroring {topic.source} to {topic.target}, {counted(topic.partitions, 'partition')}", flush=True
                )
        self._copier.read(self.topics, stored_positions(self._target, self._options.name))

    def _translate_groups(self) -> None:
        from barnabas.cli.mirror.groups import synchronize_groups

        if self._groups is None:
            return
        topic_of = {topic.source: topic.target for topic in self.topics}
        moved = synchronize_groups(self._source, self._target, self._groups, topic_of, self._copier.translations)
        for group, offsets in moved.items():
            logger.info("group %s: %s committed in the target", group, counted(len(offsets), "offset"))

    def _is_at(self, ends: "Mapping[TopicPartition, int]") -> bool:
        positions = self._copier.positions
        return all(positions.get(key, end) >= end for key, end in ends.items())


def _pattern(option: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(f"{option} {text}: not a regular expression: {error}") from None


def _client(bootstrap: str, file: str | None) -> dict[str, str]:
    from barnabas.cli.connection import file_options

    return (file_options(file) if file else {}) | {"bootstrap.servers": bootstrap}


COMMAND = Command(
    "mirror",
    "copy topics from one cluster to another, exactly once, and translate the offsets of groups",
    add_arguments,
    mirror,
    connects=False,
)
main = command_main(COMMAND)
