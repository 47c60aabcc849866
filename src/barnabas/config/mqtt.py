"""Settings of MQTT listeners. Kafka has none of them, so DescribeConfigs does not list them.

`BrokerConfig.parse` reads them from the same file as all others; they are used only if there is an MQTT listener.
"""

from collections.abc import Mapping

from barnabas.config.checks import between, one_of
from barnabas.config.faults import read_values
from barnabas.config.setting import HIGH, boolean, int32, int64, string
from barnabas.config.table import SettingsTable, settings_table

MAX_PACKET_BYTES = 268_435_460
ALLOW_ANONYMOUS = "mqtt.allow.anonymous"
ON_LOOPBACK = "loopback"


@settings_table
class MqttConfig(SettingsTable):
    mqtt_allow_anonymous: str = string(
        ON_LOOPBACK,
        "Whether clients may connect without user name and certificate: false, true, or only where the listener is"
        " bound to a loopback address. `listener.name.NAME.mqtt.allow.anonymous` sets it for one listener.",
        one_of(ON_LOOPBACK, "true", "false"),
        importance=HIGH,
    )
    mqtt_auto_create_topics_enable: bool = boolean(True, "Whether a topic is created when it is first published to.")
    mqtt_keep_alive_max_seconds: int = int32(
        3600, "Longest keep-alive of a client; one that wants a longer one, or none, gets this.", between(1, 65535)
    )
    mqtt_key: str = string(
        "topic",
        "The key of the records: the MQTT topic, which keeps its order, or the client's id.",
        one_of("topic", "client-id"),
        importance=HIGH,
    )
    mqtt_max_packet_bytes: int = int32(
        1_048_576, "Largest packet that a client may send.", between(1024, MAX_PACKET_BYTES), importance=HIGH
    )
    mqtt_receive_maximum: int = int32(
        1000, "Messages with QoS 1 or 2 of one client that may be unacknowledged, in each direction.", between(1, 65535)
    )
    mqtt_session_expiry_max_seconds: int = int64(
        0xFFFF_FFFF,
        "Longest time that a session is kept after its connection has ended; 4294967295 means forever.",
        between(0, 0xFFFF_FFFF),
    )
    mqtt_session_topic_num_partitions: int = int32(
        4, "Partitions of the topic __mqtt_sessions, when it is created.", between(1, 1000)
    )
    mqtt_topic_alias_maximum: int = int32(100, "Topic aliases that a client of MQTT 5 may use.", between(0, 65535))
    mqtt_topic_rules: str = string(
        "", "Rules filter -> topic, separated by semicolons; the first that matches decides.", importance=HIGH
    )


def read_mqtt_config(given: Mapping[str, str]) -> tuple[MqttConfig, list[str]]:
    """What is given of these settings, and their faults."""
    values, faults = read_values(MqttConfig.settings, given)
    return MqttConfig(**values), faults
