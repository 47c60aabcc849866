"""Plays the transcripts of consumer groups (`tests/transcripts/consumer_group`): all of transcript_group.py, and

    topics t:4 u:2                             topics with their partitions; those not named are gone
    config session=50000 heartbeat=6000        settings of the group g
    beat a epoch=0 [topics=t,u] [regex=t.*] [instance=i] [owned=t:0,1;u:2|none] [assignor=range] [rebalance=60000]
    reconcile a epoch=1                        the same, saying that it owns what it was last told
    consumer-describe
    policy upgrade_enabled=0 downgrade_enabled=0 max_size=2   (reloads)

`beat` with epoch 0 says what a joining member must. The member id of a member of the consumer protocol is the client's
name unless `member=` is given. A member id that the broker makes up is written m#1.
"""

import re
from typing import Any

from transcript_group import Options
from transcript_group import Player as GroupPlayer

from barnabas.machines.controller.image import (
    ClusterImage,
    ConfigResource,
    PartitionImage,
    ResourceType,
    TopicImage,
)
from barnabas.machines.coordinator import CoordinatorRecord
from barnabas.machines.group import commands
from barnabas.machines.group.consumer.settings import ConsumerGroupSettings
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.shard import GroupShard
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

PLAIN_UUID = re.compile(r"(?<![-\w])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TOPIC_ID = re.compile(r"b'(\w+)\.+'")
RECORD_NAME = re.compile(r"\bConsumerGroup(\w+?)(Key|Value)\(")


def topic_id_of(name: str) -> bytes:
    return name.encode().ljust(16, b".")


class Player(GroupPlayer):
    def __init__(self) -> None:
        self._policy: dict[str, int] = {}
        self._made_up: dict[str, str] = {}
        self._owned: dict[str, list[TopicPartitions]] = {}
        super().__init__()

    def _make_shard(self) -> GroupShard:
        consumer = ConsumerGroupSettings(**self._policy)  # type: ignore[arg-type]
        return GroupShard(GroupSettings(consumer=consumer, **self._settings), self._random)  # type: ignore[arg-type]

    def _policy_(self, plain: list[str], options: Options) -> list[str]:
        self._policy = {name: int(value) for name, value in options.items()}
        return self._reload([], {})

    def play(self, line: str) -> list[str]:
        return super().play(line.replace("policy", "policy_", 1) if line.startswith("policy ") else line)

    def _topics(self, plain: list[str], options: Options) -> list[str]:
        topics = {}
        for word in plain:
            name, _, count = word.partition(":")
            partitions = tuple(PartitionImage(number, (1,), (1,), 1) for number in range(int(count)))
            topics[name] = TopicImage(name, topic_id_of(name), partitions)
        names = {topic.topic_id: topic.name for topic in topics.values()}
        configs = self._driver.image.configs
        return self._show(self._driver.show_image(ClusterImage(topics=topics, topic_names=names, configs=configs)))

    def _config(self, plain: list[str], options: Options) -> list[str]:
        names = {"session": "consumer.session.timeout.ms", "heartbeat": "consumer.heartbeat.interval.ms"}
        settings = {names[name]: value for name, value in options.items()}
        image = self._driver.image
        configs = {ConfigResource(ResourceType.GROUP, "g"): settings}
        changed = ClusterImage(topics=image.topics, topic_names=image.topic_names, configs=configs)
        return self._show(self._driver.show_image(changed))

    def _beat(self, plain: list[str], options: Options) -> list[str]:
        epoch = int(options["epoch"])
        joins = epoch == 0
        owned = options.get("owned")
        subscribed = options.get("topics", "t" if joins and "regex" not in options else None)
        request = ConsumerGroupHeartbeatRequest(
            group_id=options.get("group", "g"),
            member_id=self._member(plain[0], options),
            member_epoch=epoch,
            instance_id=options.get("instance"),
            rack_id=options.get("rack"),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000 if joins else -1)),
            subscribed_topic_names=None if subscribed is None else [each for each in subscribed.split(",") if each],
            subscribed_topic_regex=options.get("regex"),
            server_assignor=options.get("assignor"),
            topic_partitions=[] if owned is None and joins else _partitions(owned),
        )
        command = commands.ConsumerGroupHeartbeat(request, int(options.get("version", 1)), plain[0], "/127.0.0.1")
        return self._submit(command, plain[0])

    def _reconcile(self, plain: list[str], options: Options) -> list[str]:
        told = ";".join(
            f"{each.topic_id.rstrip(b'.').decode()}:{','.join(map(str, each.partitions))}"
            for each in self._owned.get(plain[0], [])
        )
        return self._beat(plain, {**options, "owned": told or "none"})

    def _consumer_describe(self, plain: list[str], options: Options) -> list[str]:
        return self._submit(commands.ConsumerGroupDescribe((options.get("group", "g"),)), "describe")

    def _member(self, client: str, options: Options) -> str:
        return super()._member(client, options) or ("" if "session" in options or "member" in options else client)

    def _join(self, plain: list[str], options: Options) -> list[str]:
        known = self._told.get(plain[0])
        return super()._join(plain, {"member": "." if known is None else known, **options})

    def _learn(self, token: Any, response: Any) -> None:
        super()._learn(token, response)
        assignment = getattr(response, "assignment", None)
        if assignment is not None and hasattr(assignment, "topic_partitions"):
            self._owned[token[1]] = assignment.topic_partitions

    def _id_of(self, name: str) -> str:
        made_up = next((member_id for member_id, known in self._made_up.items() if known == name), None)
        return made_up or super()._id_of(name)

    def _show_record(self, record: CoordinatorRecord) -> str:
        return RECORD_NAME.sub(r"\1(", super()._show_record(record).replace(" v0 ", " ")).replace("group_id='g'", "g")

    def _readable(self, line: str) -> str:
        line = PLAIN_UUID.sub(lambda match: self._made_up.setdefault(match[0], f"m#{len(self._made_up) + 1}"), line)
        line = re.sub(r"metadata_hash=-?\d+", "metadata_hash=...", line)
        return TOPIC_ID.sub(r"\1", super()._readable(line))


def _partitions(text: str | None) -> list[TopicPartitions] | None:
    if text is None:
        return None
    found = []
    for word in text.split(";"):
        if word != "none":
            name, _, numbers = word.partition(":")
            found.append(
                TopicPartitions(topic_id=topic_id_of(name), partitions=[int(each) for each in numbers.split(",")])
            )
    return found
