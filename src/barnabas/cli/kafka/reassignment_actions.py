"""What `kafka-reassign-partitions.sh` does with a cluster: generate, execute, verify, cancel, list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from barnabas.cli.command import Refused
from barnabas.cli.kafka.connection import kafka_text
from barnabas.cli.kafka.flags import Options
from barnabas.cli.kafka.reassignment_log_dirs import failures, log_dirs_of, move_log_dirs, move_state
from barnabas.cli.kafka.reassignment_plan import (
    Assignment,
    Plan,
    check_plan,
    parse_brokers,
    parse_plan,
    parse_topics,
    plan_json,
    plural,
    propose,
    text_of,
)
from barnabas.client.admin import Admin
from barnabas.client.admin.types import ConfigChange, ConfigResource, PartitionReassignment
from barnabas.client.replica_throttles import BROKER_THROTTLES, TOPIC_THROTTLES, Move, set_throttle
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

LOG_DIR_THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


def list_reassignments(admin: Admin, options: Options) -> None:
    current = admin.list_partition_reassignments()
    if not current:
        print("No partition reassignments found.")
        return
    print("Current partition reassignments:")
    for key in sorted(current):
        state = current[key]
        changes = (("adding", state.adding_replicas), ("removing", state.removing_replicas))
        more = "".join(f" {word}: {_ids(brokers)}." for word, brokers in changes if brokers)
        print(f"{text_of(key)}: replicas: {_ids(state.replicas)}.{more}")


def generate(admin: Admin, options: Options) -> None:
    brokers = parse_brokers(options.value("broker-list"))
    topics = parse_topics(_file(options.value("topics-to-move-json-file")))
    current = _replicas_of_topics(admin, topics)
    racks = {each.node.id: each.node.rack for each in admin.describe_cluster().brokers if each.node.id in brokers}
    if options.has("disable-rack-aware"):
        racks = dict.fromkeys(racks)
    elif len({rack is None for rack in racks.values()}) == 2:
        raise ValueError(
            "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica assignment"
            " without rack information."
        )
    print(f"Current partition replica assignment\n{plan_json(current)}\n")
    print(f"Proposed partition reassignment configuration\n{plan_json(propose(current, racks))}")


def execute(admin: Admin, options: Options) -> None:
    plan = parse_plan(_file(options.value("reassignment-json-file")))
    check_plan(plan)
    current = admin.list_partition_reassignments()
    if current and not options.has("additional"):
        raise Refused(
            "Cannot execute because there is an existing partition assignment.  Use --additional to override this and"
            " create a new partition assignment in addition to the existing one. The --additional flag can also be used"
            " to change the throttle by resubmitting the current reassignment."
        )
    proposed = dict(plan.partitions)
    there = {broker.node.id for broker in admin.describe_cluster().brokers}
    for broker in sorted({each for replicas in proposed.values() for each in replicas}):
        if broker not in there:
            raise ValueError(f"Unknown broker id {broker}")
    before = _replicas_of_partitions(admin, proposed)
    print(f"Current partition replica assignment\n\n{plan_json(before)}\n")
    print("Save this to use as the --reassignment-json-file option during rollback")
    _throttle(admin, options, plan, current, before)
    errors = failures(lambda: admin.alter_partition_reassignments(proposed))
    if errors:
        raise Refused("\n".join(["Error reassigning partition(s):", *_told(errors)]))
    print(f"Successfully started partition reassignment{plural(proposed)} for {_listed(proposed)}")
    if plan.log_dirs:
        move_log_dirs(admin, plan.log_dirs, options.value("timeout"))


def verify(admin: Admin, options: Options) -> None:
    plan = parse_plan(_file(options.value("reassignment-json-file")))
    current = admin.list_partition_reassignments()
    print("Status of partition reassignment:")
    for key, target in sorted(dict(plan.partitions).items()):
        if key in current:
            print(f"Reassignment of partition {text_of(key)} is still in progress.")
            continue
        replicas = _current_replicas(admin, key)
        if replicas == target:
            print(f"Reassignment of partition {text_of(key)} is completed.")
        else:
            print(
                f"There is no active reassignment of partition {text_of(key)}, but replica set is {_ids(replicas)}"
                f" rather than {_ids(target)}."
            )
    moving = [move_state(admin, replica, path) for replica, path in sorted(plan.log_dirs.items())]
    print("\n".join(text for text, _ in moving))
    if not current and all(done for _, done in moving) and not options.has("preserve-throttles"):
        _clear_throttles(admin, plan)


def cancel(admin: Admin, options: Options) -> None:
    plan = parse_plan(_file(options.value("reassignment-json-file")))
    wanted = [key for key, _ in plan.partitions]
    active = sorted(admin.list_partition_reassignments(wanted)) if wanted else []
    if active:
        errors = failures(lambda: admin.alter_partition_reassignments(dict.fromkeys(active)))
        if errors:
            raise Refused("\n".join([f"Error cancelling partition reassignment{plural(errors)} for:", *_told(errors)]))
        print(f"Successfully cancelled partition reassignment{plural(active)} for: {_listed(active)}")
    else:
        print("None of the specified partition reassignments are active.")
    places = {replica: log_dirs_of(admin, replica) for replica in plan.log_dirs}
    back = {replica: now for replica, (now, future) in places.items() if now is not None and future is not None}
    if back:
        move_log_dirs(admin, back, options.value("timeout"))
    else:
        print("None of the specified partition moves are active.", end="")
    if not options.has("preserve-throttles"):
        _clear_throttles(admin, plan)


def _throttle(
    admin: Admin,
    options: Options,
    plan: Plan,
    current: Mapping[TopicPartition, PartitionReassignment],
    before: Assignment,
) -> None:
    between_brokers, between_dirs = options.value("throttle"), options.value("replica-alter-log-dirs-throttle")
    if between_brokers < 0 and between_dirs < 0:
        return
    print(
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle is"
        " removed."
    )
    if between_brokers >= 0:
        moves = {
            key: Move(set(each.replicas) - set(each.adding_replicas), set(each.adding_replicas))
            for key, each in current.items()
        }
        for key, replicas in plan.partitions:
            sources = moves[key].sources if key in moves else set(before[key])
            moves[key] = Move(sources, set(replicas) - sources)
        changes = set_throttle(moves, between_brokers)
        if changes:
            admin.alter_configs(changes)
        print(f"The inter-broker throttle limit was set to {between_brokers} B/s")
    if between_dirs >= 0:
        limit = ConfigChange(set={LOG_DIR_THROTTLE: between_dirs})
        brokers = {replica.broker for replica in plan.log_dirs}
        if brokers:
            admin.alter_configs({ConfigResource.broker(broker): limit for broker in brokers})
        print(f"The replica-alter-dir throttle limit was set to {between_dirs} B/s")


def _clear_throttles(admin: Admin, plan: Plan) -> None:
    brokers = {broker.node.id for broker in admin.describe_cluster().brokers}
    brokers |= {broker for _, replicas in plan.partitions for broker in replicas}
    print(f"Clearing broker-level throttles on broker{plural(brokers)} {_ids(sorted(brokers))}")
    of_broker = ConfigChange(delete=(*BROKER_THROTTLES, LOG_DIR_THROTTLE))
    admin.alter_configs({ConfigResource.broker(broker): of_broker for broker in brokers})
    print(f"Clearing topic-level throttles on topic{plural(plan.topics)} {','.join(plan.topics)}")
    of_topic = ConfigChange(delete=TOPIC_THROTTLES)
    if plan.topics:
        admin.alter_configs({ConfigResource.topic(topic): of_topic for topic in plan.topics})


def _replicas_of_topics(admin: Admin, topics: Iterable[str]) -> Assignment:
    found: Assignment = {}
    for topic in topics:
        try:
            described = admin.describe_topic(topic)
        except KafkaError as error:
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                name = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
                raise ValueError(f"{name}: Topic {topic} not found.") from None
            raise
        found |= {TopicPartition(topic, each.partition): list(each.replicas) for each in described.partitions}
    return found


def _replicas_of_partitions(admin: Admin, partitions: Iterable[TopicPartition]) -> Assignment:
    wanted = sorted(partitions)
    found = _replicas_of_topics(admin, sorted({key.topic for key in wanted}))
    missing = [key for key in wanted if key not in found]
    if missing:
        name = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
        raise ValueError(f"{name}: Unable to find partition: {', '.join(map(text_of, missing))}")
    return {key: found[key] for key in wanted}


def _current_replicas(admin: Admin, key: TopicPartition) -> list[int]:
    try:
        described = admin.describe_topic(key.topic)
    except KafkaError as error:
        if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return []
        raise
    return next((list(each.replicas) for each in described.partitions if each.partition == key.partition), [])


def _file(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _told(errors: Mapping[TopicPartition, KafkaError]) -> list[str]:
    return [f"{text_of(key)}: {kafka_text(errors[key])}" for key in sorted(errors)]


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ",".join(map(text_of, sorted(partitions)))
