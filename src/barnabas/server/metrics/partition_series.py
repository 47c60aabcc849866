"""Series of partitions and of the cluster: from every broker those of its logs, from leader and controller the rest."""

from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.server.metrics.exposition import Samples, escaped

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

PARTITIONS_AT_ONCE = 50


def add_partitions(samples: Samples, broker: "Broker") -> Generator[None, None, None]:
    sizes, starts = samples.of("kafka_log_log_size"), samples.of("kafka_log_log_logstartoffset")
    ends, segments = samples.of("kafka_log_log_logendoffset"), samples.of("kafka_log_log_numlogsegments")
    leader_lists = [
        samples.of(name)
        for name in (
            "kafka_topic_partition_current_offset",
            "kafka_topic_partition_oldest_offset",
            "kafka_topic_partition_leader",
            "kafka_topic_partition_replicas",
            "kafka_topic_partition_in_sync_replica",
            "kafka_topic_partition_leader_is_preferred",
            "kafka_topic_partition_under_replicated_partition",
            "kafka_cluster_partition_replicascount",
            "kafka_cluster_partition_underreplicated",
            "kafka_cluster_partition_underminisr",
            "kafka_cluster_partition_atminisr",
        )
    ]
    leaders = count = under_replicated = under_min = at_min = offline = waiting_batches = 0
    for hosted in list(broker.replicas):
        log, state = hosted.log, hosted.state
        offline += log.failure is not None
        waiting_batches += hosted.waiting_batch_count
        labels = f'{{topic="{escaped(hosted.topic)}",partition="{hosted.partition}"}}'
        sizes.append(f"{labels} {log.size_in_bytes}")
        starts.append(f"{labels} {log.log_start_offset}")
        ends.append(f"{labels} {log.log_end_offset}")
        segments.append(f"{labels} {len(log.segments)}")
        if state.is_leader:
            leaders += 1
            in_sync, replicas = len(state.in_sync_replicas), len(state.replicas)
            lacks, is_under = in_sync < replicas, state.is_under_min_isr
            is_at_min = in_sync == state.min_in_sync_replicas
            at_min += is_at_min
            under_replicated += lacks
            under_min += is_under
            values = (
                log.high_watermark,
                log.log_start_offset,
                state.leader,
                replicas,
                in_sync,
                int(state.leader == state.replicas[0]),
                int(lacks),
                replicas,
                int(lacks),
                int(is_under),
                int(is_at_min),
            )
            for lines, value in zip(leader_lists, values, strict=True):
                lines.append(f"{labels} {value}")
        count += 1
        if not count % PARTITIONS_AT_ONCE:
            yield
    prefix = "kafka_server_replicamanager_"
    samples.put(prefix + "leadercount", leaders)
    samples.put(prefix + "partitioncount", count)
    samples.put(prefix + "underreplicatedpartitions", under_replicated)
    samples.put(prefix + "underminisrpartitioncount", under_min)
    samples.put(prefix + "atminisrpartitioncount", at_min)
    samples.put(prefix + "offlinereplicacount", offline + broker.replicas.unopened_count)
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    samples.put(purgatory, len(broker.fetch_purgatory), {"delayedoperation": "Fetch"})
    samples.put(purgatory, waiting_batches, {"delayedoperation": "Produce"})


def add_cluster(samples: Samples, broker: "Broker") -> Generator[None, None, None]:
    image = broker.cluster.image
    samples.put("kafka_brokers", len(image.brokers))
    for node in image.brokers.values():
        address = f"{node.endpoints[0].host}:{node.endpoints[0].port}" if node.endpoints else ""
        samples.put("kafka_broker_info", 1, {"id": str(node.node_id), "address": address})
    prefix = "kafka_controller_kafkacontroller_"
    is_controller = broker.cluster.is_controller
    samples.put(prefix + "activecontrollercount", int(is_controller))
    if is_controller:
        _add_controller(samples, broker)
    offline = unbalanced = partitions = reassigning = 0
    counts = samples.of("kafka_topic_partitions")
    for topic in list(image.topics.values()):
        if is_controller:
            counts.append(f'{{topic="{escaped(topic.name)}"}} {len(topic.partitions)}')
        for partition in topic.partitions:
            partitions += 1
            offline += partition.leader < 0
            unbalanced += partition.leader != partition.preferred_leader
            reassigning += partition.is_reassigning and partition.leader == broker.node_id
        yield
    samples.put("kafka_server_replicamanager_reassigningpartitions", reassigning)
    if is_controller:
        samples.put(prefix + "offlinepartitionscount", offline)
        samples.put(prefix + "globaltopiccount", len(image.topics))
        samples.put(prefix + "globalpartitioncount", partitions)
        samples.put(prefix + "preferredreplicaimbalancecount", unbalanced)


def _add_controller(samples: Samples, broker: "Broker") -> None:
    image, prefix = broker.cluster.image, "kafka_controller_kafkacontroller_"
    fenced = sum(node.is_fenced for node in image.brokers.values())
    samples.put(prefix + "activebrokercount", len(image.brokers) - fenced)
    samples.put(prefix + "fencedbrokercount", fenced)
    stats = "kafka_controller_controllerstats_"
    samples.put(stats + "leaderelections_total", broker.elections.elections)
    samples.put(stats + "uncleanleaderelections_total", broker.elections.unclean)
    samples.put(stats + "uncleanleaderelectionspersec", broker.elections.unclean)
