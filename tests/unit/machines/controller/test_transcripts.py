"""The controller machine by transcript: lines that begin with `>` are input, the rest is the expected trace.

Rewrite them after a wanted change with `REWRITE_TRANSCRIPTS=1 pytest <this file>`, and review the diff.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller import commands
from barnabas.machines.controller.image import BrokerImage, ConfigResource, PartitionImage, ResourceType
from barnabas.machines.controller.machine import ControllerMachine
from barnabas.machines.controller.records import BrokerChanged
from barnabas.machines.controller.topics import TopicDefaults
from barnabas.types import NO_LEADER, NO_TOPIC_ID, TopicPartition

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


class Rules:
    def check(self, resource: ConfigResource, config: Mapping[str, str]) -> None:
        for name in config:
            if name.startswith("bad"):
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown setting {name}")

    def is_list(self, resource: ConfigResource, name: str) -> bool:
        return name.endswith("list")

    def default(self, resource: ConfigResource, name: str) -> str | None:
        return "base" if name == "default.list" else None


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part)


def partition_of(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


def broker_of(text: str) -> BrokerImage:
    text, _, directories = text.partition(":")
    text, unclean, _ = text.partition("!")
    text, _, previous = text.partition("~")
    text, _, epoch = text.partition("@")
    number, _, rack = text.partition("/")
    return BrokerImage(
        int(number),
        (),
        rack or None,
        int(epoch or 1),
        directory_ids=tuple(directories.split(",")) if directories else (),
        previous_epoch=int(previous or -1),
        unclean_stop=bool(unclean),
    )


def show(topic: str, each: PartitionImage) -> str:
    listed = ",".join(map(str, each.replicas))
    in_sync = ",".join(map(str, each.in_sync_replicas))
    more = " recovering" if each.leader_recovering else ""
    for name, brokers in (
        ("elr", each.eligible_leader_replicas),
        ("adding", each.adding_replicas),
        ("removing", each.removing_replicas),
    ):
        if brokers:
            more += f" {name}={','.join(map(str, brokers))}"
    if each.last_known_leader != NO_LEADER:
        more += f" last={each.last_known_leader}"
    return (
        f"{topic}-{each.partition} leader={each.leader} epoch={each.leader_epoch}/{each.partition_epoch} "
        f"replicas={listed} isr={in_sync}{more}"
    )


class Player:
    def __init__(self) -> None:
        self.machine = ControllerMachine(Rules(), Random(7), TopicDefaults(2, 1))

    def play(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        command = getattr(self, f"_{verb.replace('-', '_')}")(plain, options)
        decision = self.machine.decide(command, 0)
        for record in decision.records:
            self.machine.apply(record)
        self.machine.check()
        trace = self._replies(decision.replies[0][1])
        delta = self.machine.take_delta()
        trace += [f"deleted {topic.name}" for topic in delta.topics_deleted]
        for broker in (each.broker for each in decision.records if isinstance(each, BrokerChanged)):
            state = "fenced" if broker.is_fenced else "leaving" if broker.in_controlled_shutdown else "registered"
            trace.append(f"  broker {broker.node_id} {state} epoch={broker.epoch}")
        trace += [f"  {show(topic.name, each)}" for topic, each in delta.partitions]
        for resource in delta.configs_changed:
            config = dict(sorted(delta.image.config(resource).items()))
            trace.append(f"  config {resource.type.name}:{resource.name} {config}")
        return trace

    def _replies(self, reply: object) -> list[str]:
        if reply is None:
            return []
        if isinstance(reply, KafkaError):
            return [str(reply)]
        if isinstance(reply, int):
            return [f"moved {reply}"]
        if not isinstance(reply, tuple):
            return [f"{reply}"]
        return [self._reply(each) for each in reply]

    def _reply(self, reply: object) -> str:
        if isinstance(reply, TopicPartition):
            return f"still leads {reply}"
        error = reply.error
        name = getattr(reply, "name", None) or getattr(reply, "topic", None) or getattr(reply, "resource", ("", ""))[1]
        message = getattr(reply, "message", None)
        return f"{name}: {error.name}" + (f" ({message})" if message else "")

    def _brokers(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        """brokers ID/RACK@EPOCH~PREVIOUS_EPOCH!:DIRECTORY,DIRECTORY ... (! for an unclean stop)"""
        return commands.BrokersChanged(tuple(broker_of(word) for word in plain))

    def _create(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        assignments = [part.split(":") for part in options.get("assign", "").split(";") if part]
        configs = [part.split(":") for part in options.get("config", "").split(";") if part]
        topics = [
            commands.NewTopic(
                "" if name == "''" else name,
                int(options.get("partitions", -1)),
                int(options.get("factor", -1)),
                tuple((int(index), numbers(replicas)) for index, replicas in assignments),
                tuple((key, None if value == "null" else value) for key, value in configs),
            )
            for name in plain
            if name != "validate"
        ]
        return commands.CreateTopics(tuple(topics), validate_only="validate" in plain)

    def _delete(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        wanted = [commands.TopicToDelete(name) for name in plain]
        for name in filter(None, options.get("id", "").split(",")):
            topic = self.machine.image.topic(name)
            wanted.append(commands.TopicToDelete(None, b"?" * 16 if topic is None else topic.topic_id))
        return commands.DeleteTopics(tuple(wanted))

    def _delete_nothing(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        return commands.DeleteTopics((commands.TopicToDelete(), commands.TopicToDelete("both", b"x" * 16)))

    def _partitions(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        assignments = None
        if "assign" in options:
            assignments = tuple(numbers(part) for part in options["assign"].split(";"))
        topics = tuple(commands.NewPartitions(name, int(options["count"]), assignments) for name in plain)
        return commands.CreatePartitions(topics)

    def _isr(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        name, index = partition_of(plain[0])
        topic = self.machine.image.topic(name)
        leader_epoch, partition_epoch = options["epoch"].split("/")
        change = commands.IsrChange(
            NO_TOPIC_ID if topic is None else topic.topic_id,
            index,
            int(leader_epoch),
            int(partition_epoch),
            numbers(options["isr"]),
            numbers(options.get("broker_epochs", "")),
        )
        return commands.AlterPartition(int(options["by"]), int(options.get("broker_epoch", 1)), (change,))

    def _shutdown(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        broker = self.machine.image.brokers.get(int(plain[0]))
        known = -1 if broker is None else broker.epoch
        return commands.ControlledShutdown(int(plain[0]), int(options.get("epoch", known)))

    def _take_over(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        self.machine.reset(self.machine.image)
        return commands.TakeOver(tuple(broker_of(word) for word in plain))

    def _unregister(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        return commands.UnregisterBroker(int(plain[0]))

    def _balance(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        return commands.BalanceLeaders()

    def _add_missing_replicas(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        factors = tuple((name, int(factor)) for name, factor in options.items())
        self.machine.defaults = replace(self.machine.defaults, internal_replication_factors=factors)
        return commands.AddMissingReplicas()

    def _reassign(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        """reassign TOPIC-PARTITION=REPLICAS ... (`cancel` for replicas) [same-factor]"""
        wanted = []
        for word, replicas in options.items():
            where = partition_of(word)
            moved = None if replicas == "cancel" else numbers(replicas)
            wanted.append(commands.Reassignment(where.topic, where.partition, moved))
        return commands.AlterReassignments(tuple(wanted), "same-factor" not in plain)

    def _elect(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        election = commands.ElectionType[plain[0].upper()]
        return commands.ElectLeaders(election, tuple(partition_of(word) for word in plain[1:]) or None)

    def _alter(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        """alter TYPE:NAME set:key:value delete:key append:key:value"""
        changes = []
        for word in plain[1:]:
            operation, name, *value = word.split(":")
            changes.append(
                commands.ConfigChange(name, commands.ConfigOperation[operation.upper()], value[0] if value else None)
            )
        return commands.IncrementalAlterConfigs(((self._resource(plain[0]), tuple(changes)),))

    def _replace(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        return commands.AlterConfigs(((self._resource(plain[0]), tuple(options.items())),))

    def _resource(self, text: str) -> ConfigResource:
        kind, _, name = text.partition(":")
        return ConfigResource(ResourceType[kind.upper()], name)

    def _producer_ids(self, plain: list[str], options: dict[str, str]) -> commands.Command:
        return commands.AllocateProducerIds(0)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    player = Player()
    expected = path.read_text(encoding="utf-8")
    played: list[str] = []
    for line in expected.splitlines():
        if line.startswith("#") or not line:
            played.append(line)
        elif line.startswith("> "):
            played += [line, *player.play(line[2:])]
    text = "\n".join(played) + "\n"
    if os.environ.get("REWRITE_TRANSCRIPTS"):
        path.write_text(text, encoding="utf-8")
    assert text == expected
