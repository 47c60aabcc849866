import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults
from barnabas.config.topic import TopicConfig

HOUR_MS = 3_600_000


def resolve(overrides: dict[str, str], broker: dict[str, str] | None = None) -> TopicConfig:
    return TopicConfig.resolve(overrides, BrokerConfig.parse(broker or {}))


def test_without_any_setting_the_defaults_count() -> None:
    assert resolve({}) == TopicConfig()


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 2 * HOUR_MS),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({"log.retention.minutes": "-5"}, -1),
    ],
)
def test_precedence_of_the_brokers_synonyms(broker: dict[str, str], retention_ms: int) -> None:
    assert resolve({}, broker).retention_ms == retention_ms
    assert resolve({"retention.ms": "77"}, broker).retention_ms == 77


def test_each_synonym_reaches_its_topic_setting() -> None:
    config = resolve(
        {},
        {
            "log.roll.hours": "1",
            "log.roll.jitter.hours": "2",
            "log.flush.scheduler.interval.ms": "30",
            "message.max.bytes": "40",
            "log.cleaner.min.cleanable.ratio": "0.1",
            "log.cleanup.policy": "compact,delete",
            "min.insync.replicas": "2",
        },
    )
    assert (config.segment_ms, config.segment_jitter_ms, config.flush_ms) == (HOUR_MS, 2 * HOUR_MS, 30)
    assert (config.max_message_bytes, config.min_cleanable_dirty_ratio) == (40, 0.1)
    assert (config.cleanup_policy, config.min_insync_replicas) == (("compact", "delete"), 2)
    assert resolve({}, {"log.flush.scheduler.interval.ms": "30", "log.flush.interval.ms": "20"}).flush_ms == 20


def test_all_faults_at_once() -> None:
    with pytest.raises(ConfigFaults) as raised:
        resolve(
            {
                "retention.msec": "1",
                "segment.bytes": "1000",
                "cleanup.policy": "shred",
                "min.compaction.lag.ms": "5",
                "max.compaction.lag.ms": "4",
                "remote.storage.enable": "true",
            }
        )
    faults = raised.value.faults
    assert len(faults) == 5
    assert "retention.msec: unknown topic setting, did you mean retention.ms?" in faults
    assert "segment.bytes: '1000' is not allowed, it must be at least 1048576" in faults


def test_segments_may_be_small_for_tests() -> None:
    assert resolve({"internal.segment.bytes": "1000"}).segment_bytes == 1000


@pytest.mark.parametrize("text", ["*", "", "0:1,1:2"])
def test_throttled_replicas(text: str) -> None:
    resolve({"leader.replication.throttled.replicas": text})


@pytest.mark.parametrize("text", ["0", "a:b", "*,0:1"])
def test_malformed_throttled_replicas(text: str) -> None:
    with pytest.raises(ConfigFaults):
        resolve({"follower.replication.throttled.replicas": text})
