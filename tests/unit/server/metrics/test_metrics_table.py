"""The names that existing dashboards ask for: those of kafka_exporter, of Strimzi, of Confluent and Grafana's mixin."""

from itertools import product

import pytest

from barnabas.server.metrics.table import TABLE


def each(prefix: str, names: str, ending: str = "") -> list[str]:
    return [f"{prefix}{name}{ending}" for name in names.split()]


WANTED = {
    "kafka_exporter": [
        "kafka_brokers",
        "kafka_broker_info",
        "kafka_topic_partitions",
        *each(
            "kafka_topic_partition_",
            "current_offset oldest_offset leader replicas in_sync_replica leader_is_preferred"
            " under_replicated_partition",
        ),
        *each("kafka_consumergroup_", "current_offset lag current_offset_sum lag_sum members"),
    ],
    "Strimzi": [
        *each(
            "kafka_server_brokertopicmetrics_",
            "bytesin bytesout messagesin totalproducerequests totalfetchrequests failedproducerequests"
            " failedfetchrequests",
            "_total",
        ),
        *each(
            "kafka_server_replicamanager_",
            "leadercount partitioncount underreplicatedpartitions underminisrpartitioncount",
        ),
        *each("kafka_controller_kafkacontroller_", "activecontrollercount offlinepartitionscount"),
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        *each("kafka_cluster_partition_", "underminisr atminisr replicascount"),
        "kafka_log_log_size",
        "kafka_log_logmanager_offlinelogdirectorycount",
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
        "kafka_network_socketserver_networkprocessoravgidle_percent",
        "kafka_server_socket_server_metrics_connection_count",
    ],
    "Confluent and the mixin": [
        *each("kafka_server_brokertopicmetrics_", "bytesin bytesout messagesin", "persec"),
        *each(
            "kafka_network_requestmetrics_",
            "totaltimems localtimems remotetimems requestqueuetimems responsequeuetimems responsesendtimems"
            " requestspersec errorspersec",
        ),
        *each("kafka_log_log_", "logstartoffset logendoffset"),
        *each(
            "kafka_coordinator_group_groupmetadatamanager_",
            "numgroups numgroupsstable numgroupsempty numgroupsdead numgroupspreparingrebalance",
        ),
        *each("kafka_server_replicamanager_isr", "shrinks expands", "persec"),
        *each(
            "kafka_controller_kafkacontroller_",
            "globaltopiccount globalpartitioncount preferredreplicaimbalancecount",
        ),
        "kafka_server_kafkaserver_brokerstate",
        "kafka_server_socketservermetrics_connections",
    ],
    "lag in time, processes": [
        "kafka_consumer_lag_millis",
        "kafka_consumergroup_uncommitted_offsets",
        *each("process_", "cpu_seconds_total resident_memory_bytes open_fds start_time_seconds"),
    ],
}


@pytest.mark.parametrize(("of", "name"), [pair for of in WANTED for pair in product([of], WANTED[of])])
def test_a_name_that_dashboards_ask_for(of: str, name: str) -> None:
    assert name in TABLE


def test_labels_of_requests_and_errors() -> None:
    assert TABLE["kafka_network_requestmetrics_errorspersec"].labels == ("request", "error")
    assert TABLE["kafka_network_requestmetrics_totaltimems"].labels == ("request",)
