"""The one table of metrics: name, kind, labels, help, and where the values come from.

Names are those that existing dashboards ask for: kafka_exporter's, Strimzi's, those of Confluent and Grafana's mixin.
Counters exist in both spellings of JMX, `x_total` and `xpersec`, with the same value. A series of the cluster comes
from one broker only, else sums would double: that of a partition from its leader, that of a group from its
coordinator, the rest from the controller.
"""

from enum import Enum
from typing import Final, NamedTuple


class Kind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    SUMMARY = "summary"


class Source(Enum):
    """Which broker has it, and of what."""

    BROKER = "every broker, of itself"
    TOPIC = "every broker, of what it serves; without a topic: of all"
    LOG = "every broker, of the logs that it has"
    LEADER = "the leader of the partition"
    COORDINATOR = "the coordinator of the group"
    CONTROLLER = "the controller"
    CLUSTER = "every broker, of the cluster"
    CLIENT = "the broker that the client pushes to"


class Metric(NamedTuple):
    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    source: Source


COUNTER, GAUGE, SUMMARY = Kind.COUNTER, Kind.GAUGE, Kind.SUMMARY
PARTITION: Final = ("topic", "partition")
GROUP: Final = ("consumergroup", "topic", "partition")
TRAFFIC: Final = {
    "bytesin": ("bytes_in", "Bytes of records that clients have written."),
    "bytesout": ("bytes_out", "Bytes of records that clients have read."),
    "messagesin": ("messages_in", "Records that clients have written."),
    "totalproducerequests": ("produces", "Batches that clients have written."),
    "totalfetchrequests": ("fetches", "Partitions read for fetches."),
    "failedproducerequests": ("failed_produces", "Batches refused for reasons other than Kafka's expected ones."),
    "failedfetchrequests": ("failed_fetches", "Reads of partitions that failed unexpectedly."),
    "replicationbytesin": ("replication_bytes_in", "Bytes copied from leaders."),
    "replicationbytesout": ("replication_bytes_out", "Bytes that followers have copied."),
}
"""Name in Kafka -> field of TopicTraffic, help."""
TIMES: Final = {
    "totaltimems": "Time of requests, from the start of the handler to the response.",
    "localtimems": "Time that handlers have used.",
    "remotetimems": "Time that requests have waited for records, replicas, a flush or a thread.",
    "requestqueuetimems": "0: a request is handled when it is read, there is no queue in between.",
    "responsequeuetimems": "0: responses have no queue to another thread.",
    "responsesendtimems": "0: a response goes to the socket in the turn that made it.",
}


def _partitions() -> list[Metric]:
    prefix, leader = "kafka_topic_partition_", Source.LEADER
    return [
        Metric(prefix + "current_offset", GAUGE, PARTITION, "High watermark.", leader),
        Metric(prefix + "oldest_offset", GAUGE, PARTITION, "Log start offset.", leader),
        Metric(prefix + "leader", GAUGE, PARTITION, "Id of the leader.", leader),
        Metric(prefix + "replicas", GAUGE, PARTITION, "Replicas.", leader),
        Metric(prefix + "in_sync_replica", GAUGE, PARTITION, "Replicas in sync.", leader),
        Metric(prefix + "leader_is_preferred", GAUGE, PARTITION, "Whether the preferred replica leads.", leader),
        Metric(prefix + "under_replicated_partition", GAUGE, PARTITION, "Whether a replica is not in sync.", leader),
        Metric("kafka_cluster_partition_replicascount", GAUGE, PARTITION, "Replicas.", leader),
        Metric(
            "kafka_cluster_partition_underminisr", GAUGE, PARTITION, "Fewer in sync than min.insync.replicas.", leader
        ),
        Metric(
            "kafka_cluster_partition_underreplicated", GAUGE, PARTITION, "Whether a replica is not in sync.", leader
        ),
        Metric("kafka_cluster_partition_atminisr", GAUGE, PARTITION, "Just min.insync.replicas in sync.", leader),
        Metric("kafka_log_log_size", GAUGE, PARTITION, "Bytes of the log.", Source.LOG),
        Metric("kafka_log_log_logstartoffset", GAUGE, PARTITION, "Log start offset.", Source.LOG),
        Metric("kafka_log_log_logendoffset", GAUGE, PARTITION, "Log end offset.", Source.LOG),
        Metric("kafka_log_log_numlogsegments", GAUGE, PARTITION, "Segments of the log.", Source.LOG),
    ]


def _groups() -> list[Metric]:
    prefix, one, topic = "kafka_consumergroup_", Source.COORDINATOR, ("consumergroup", "topic")
    states = "kafka_coordinator_group_groupmetadatamanager_numgroups"
    return [
        Metric(prefix + "current_offset", GAUGE, GROUP, "Committed offset.", one),
        Metric(prefix + "current_offset_sum", GAUGE, topic, "Committed offsets of all partitions.", one),
        Metric(prefix + "lag", GAUGE, GROUP, "Records that are not committed yet.", one),
        Metric(prefix + "lag_sum", GAUGE, topic, "Lag of all partitions.", one),
        Metric(prefix + "uncommitted_offsets", GAUGE, GROUP, "The same as lag.", one),
        Metric(
            "kafka_consumer_lag_millis",
            GAUGE,
            GROUP,
            "Age of the first record that is not committed yet, by its timestamp; 0 without lag.",
            one,
        ),
        Metric(prefix + "members", GAUGE, ("consumergroup",), "Members.", one),
        Metric(states, GAUGE, (), "Groups of this coordinator.", Source.BROKER),
        Metric(
            "kafka_coordinator_group_groupmetadatamanager_numoffsets",
            GAUGE,
            (),
            "Committed offsets of this coordinator.",
            Source.BROKER,
        ),
        Metric(states + "stable", GAUGE, (), "Groups in the state Stable.", Source.BROKER),
        Metric(states + "empty", GAUGE, (), "Groups in the state Empty.", Source.BROKER),
        Metric(states + "dead", GAUGE, (), "Groups in the state Dead.", Source.BROKER),
        Metric(states + "preparingrebalance", GAUGE, (), "Groups in the state PreparingRebalance.", Source.BROKER),
        Metric(states + "completingrebalance", GAUGE, (), "Groups in the state CompletingRebalance.", Source.BROKER),
    ]


def _traffic() -> list[Metric]:
    prefix = "kafka_server_brokertopicmetrics_"
    rows = []
    for name, (_, text) in TRAFFIC.items():
        rows.append(Metric(f"{prefix}{name}_total", COUNTER, ("topic",), text, Source.TOPIC))
        rows.append(Metric(f"{prefix}{name}persec", COUNTER, ("topic",), text, Source.TOPIC))
    return rows


def _requests() -> list[Metric]:
    prefix, broker = "kafka_network_requestmetrics_", Source.BROKER
    times = [Metric(prefix + name, SUMMARY, ("request",), text, broker) for name, text in TIMES.items()]
    errors = "Error codes in responses; NONE: requests without one."
    return [
        Metric(prefix + "requests_total", COUNTER, ("request",), "Requests.", broker),
        Metric(prefix + "requestspersec", COUNTER, ("request",), "Requests.", broker),
        Metric(prefix + "errors_total", COUNTER, ("request", "error"), errors, broker),
        Metric(prefix + "errorspersec", COUNTER, ("request", "error"), errors, broker),
        *times,
    ]


def _broker() -> list[Metric]:
    manager, broker = "kafka_server_replicamanager_", Source.BROKER
    idle = "Share of the time that the event loop waits for work; one loop serves sockets and requests."
    return [
        Metric(manager + "leadercount", GAUGE, (), "Partitions that this broker leads.", broker),
        Metric(manager + "partitioncount", GAUGE, (), "Partitions that this broker has.", broker),
        Metric(manager + "underreplicatedpartitions", GAUGE, (), "Led here, with a replica out of sync.", broker),
        Metric(manager + "underminisrpartitioncount", GAUGE, (), "Led here, below min.insync.replicas.", broker),
        Metric(manager + "atminisrpartitioncount", GAUGE, (), "Led here, just at min.insync.replicas.", broker),
        Metric(manager + "offlinereplicacount", GAUGE, (), "Replicas here whose log cannot be used.", broker),
        Metric(manager + "reassigningpartitions", GAUGE, (), "Led here, with a reassignment under way.", broker),
        Metric(manager + "isrshrinks_total", COUNTER, (), "Replicas that fell out of sync.", broker),
        Metric(manager + "isrshrinkspersec", COUNTER, (), "Replicas that fell out of sync.", broker),
        Metric(manager + "isrexpands_total", COUNTER, (), "Replicas that came in sync.", broker),
        Metric(manager + "isrexpandspersec", COUNTER, (), "Replicas that came in sync.", broker),
        Metric("kafka_log_logmanager_offlinelogdirectorycount", GAUGE, (), "Log directories that failed.", broker),
        Metric("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", GAUGE, (), idle, broker),
        Metric("kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent", GAUGE, (), idle, broker),
        Metric("kafka_network_socketserver_networkprocessoravgidle_percent", GAUGE, (), idle, broker),
        Metric("kafka_network_socketserver_networkprocessoravgidlepercent", GAUGE, (), idle, broker),
        Metric(
            "kafka_server_delayedoperationpurgatory_purgatorysize",
            GAUGE,
            ("delayedoperation",),
            "Fetches that wait for records, and batches that wait for replicas or a flush (Produce).",
            broker,
        ),
        Metric(
            "kafka_server_fetchsessioncache_numincrementalfetchsessions", GAUGE, (), "Fetch sessions (KIP-227).", broker
        ),
        Metric(
            "kafka_server_socket_server_metrics_connection_count", GAUGE, ("listener",), "Open connections.", broker
        ),
        Metric("kafka_server_socketservermetrics_connection_count", GAUGE, ("listener",), "Open connections.", broker),
        Metric("kafka_server_socketservermetrics_connections", GAUGE, ("listener",), "Open connections.", broker),
        Metric(
            "kafka_server_kafkaserver_brokerstate", GAUGE, (), "1 starting, 3 running, 6 leaving, as in Kafka.", broker
        ),
    ]


def _cluster() -> list[Metric]:
    controller, one = "kafka_controller_kafkacontroller_", Source.CONTROLLER
    stats, unclean = "kafka_controller_controllerstats_", "Leaders elected that may lack committed records."
    return [
        Metric("kafka_brokers", GAUGE, (), "Brokers of the cluster.", Source.CLUSTER),
        Metric("kafka_broker_info", GAUGE, ("id", "address"), "1 for each broker.", Source.CLUSTER),
        Metric("kafka_topic_partitions", GAUGE, ("topic",), "Partitions of the topic.", one),
        Metric(controller + "activecontrollercount", GAUGE, (), "1 on the controller.", Source.BROKER),
        Metric(controller + "activebrokercount", GAUGE, (), "Brokers that serve clients.", one),
        Metric(controller + "fencedbrokercount", GAUGE, (), "Brokers that are registered but fenced.", one),
        Metric(stats + "leaderelections_total", COUNTER, (), "Leaders elected while this broker was controller.", one),
        Metric(stats + "uncleanleaderelections_total", COUNTER, (), unclean, one),
        Metric(stats + "uncleanleaderelectionspersec", COUNTER, (), unclean, one),
        Metric(controller + "offlinepartitionscount", GAUGE, (), "Partitions without a leader.", one),
        Metric(controller + "globaltopiccount", GAUGE, (), "Topics.", one),
        Metric(controller + "globalpartitioncount", GAUGE, (), "Partitions.", one),
        Metric(controller + "preferredreplicaimbalancecount", GAUGE, (), "Not led by their preferred replica.", one),
    ]


def _process() -> list[Metric]:
    broker, disk = Source.BROKER, "kafka_server_kafkaserver_linux_disk_"
    return [
        Metric(disk + "read_bytes", GAUGE, (), "Bytes that the process has read from disks.", broker),
        Metric(disk + "write_bytes", GAUGE, (), "Bytes that the process has written to disks.", broker),
        Metric("process_cpu_seconds_total", COUNTER, (), "CPU time of the process.", broker),
        Metric("process_resident_memory_bytes", GAUGE, (), "Memory of the process.", broker),
        Metric("process_virtual_memory_bytes", GAUGE, (), "Address space of the process.", broker),
        Metric("process_start_time_seconds", GAUGE, (), "When the process started, in seconds since 1970.", broker),
        Metric("process_open_fds", GAUGE, (), "Open file descriptors.", broker),
        Metric("process_max_fds", GAUGE, (), "File descriptors that may be open.", broker),
    ]


def _clients() -> list[Metric]:
    prefix, broker = "kafka_server_clientmetrics_", Source.BROKER
    info = ("client_id", "client_instance_id", "software_name", "software_version", "address", "principal")
    more = ("client_rack", "group_id", "group_instance_id", "group_member_id", "transactional_id")
    return [
        Metric("kafka_client_info", GAUGE, (*info, *more), "1 for each client that pushes metrics.", Source.CLIENT),
        Metric(prefix + "clientmetricsinstancecount", GAUGE, (), "Clients that push metrics or have asked.", broker),
        Metric(
            prefix + "clientmetricsunknownsubscriptionrequest_total", COUNTER, (), "Pushes for an old request.", broker
        ),
        Metric(prefix + "clientmetricsthrottle_total", COUNTER, (), "Clients that came too early.", broker),
        Metric(prefix + "clientmetricspluginexport_total", COUNTER, (), "Pushes that were taken.", broker),
        Metric(prefix + "clientmetricspluginerror_total", COUNTER, (), "Pushes that could not be read.", broker),
        Metric(prefix + "series", GAUGE, (), "Series of clients at the moment; at most 50,000.", broker),
        Metric(
            prefix + "dropped_total", COUNTER, (), "Values of clients that were left out: too many, or no use.", broker
        ),
    ]


def _mqtt() -> list[Metric]:
    broker = Source.BROKER
    return [
        Metric("barnabas_mqtt_connections", GAUGE, (), "MQTT clients that are connected.", broker),
        Metric("barnabas_mqtt_sessions", GAUGE, (), "MQTT sessions that are stored, of the cluster.", broker),
        Metric("barnabas_mqtt_in_flight", GAUGE, (), "MQTT messages that wait for an acknowledgement.", broker),
        Metric("barnabas_mqtt_publishes_total", COUNTER, (), "Messages that MQTT clients have published.", broker),
        Metric("barnabas_mqtt_deliveries_total", COUNTER, (), "Messages sent to MQTT clients.", broker),
    ]


def _delayed() -> list[Metric]:
    prefix, one, topic = "barnabas_delayed_", Source.LEADER, ("topic",)
    return [
        Metric(prefix + "pending", GAUGE, topic, "Delayed messages that wait in the intake, replaced ones too.", one),
        Metric(prefix + "overdue_ms", GAUGE, topic, "By how much the first delayed message is late.", one),
        Metric(prefix + "delivered_total", COUNTER, topic, "Delayed messages delivered from the intake.", one),
        Metric(
            prefix + "undeliverable_total",
            COUNTER,
            topic,
            "Delayed messages dropped: too large for the target, or without a key if it is compacted.",
            one,
        ),
    ]


_PARTS: Final = (_cluster, _partitions, _traffic, _groups, _requests, _broker, _clients, _mqtt, _delayed, _process)
TABLE: Final = {row.name: row for part in _PARTS for row in part()}
