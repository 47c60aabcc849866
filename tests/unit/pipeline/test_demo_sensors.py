"""The sensors of the demo publish events that the pipeline can split."""

from eventually import eventually

from barnabas.pipeline.demo_sensors import RULES, Sensors
from barnabas.pipeline.events import PAGE, EventSplitter
from barnabas.pipeline.split import LOG_TOPIC
from barnabas.testing import Broker


def test_readings_are_events_of_the_page_log() -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0", "mqtt.topic.rules": RULES}
    with Broker(settings) as broker:
        broker.create_topic(LOG_TOPIC, partitions=3)
        sensors = Sensors("127.0.0.1", broker.mqtt_port, fleet=3, interval_s=0.01)
        sensors.start()
        eventually(lambda: sensors.acknowledged >= 30)
        sensors.stop()
        assert sensors.error is None
        records = broker.records(LOG_TOPIC)
    assert len(records) == sensors.acknowledged
    splitter = EventSplitter(lambda mid, ts, is_new: is_new)
    for record in records:
        (row,) = splitter.split(record.value)
        assert row.topic == PAGE and row.key is not None and row.key.startswith(b"sensor-")
    assert {record.key for record in records} == {b"sensors/%d/reading" % number for number in range(3)}
