"""Every setting of Kafka 4.1 is known with its type and default.

The facts were printed by Kafka 4.1.0's own KafkaConfig, LogConfig and GroupConfig.
"""

import json
from pathlib import Path

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.config.group import GroupConfig
from barnabas.config.table import SettingsTable
from barnabas.config.topic import TopicConfig

FACTS = json.loads((Path(__file__).parent / "kafka-4.1-settings.json").read_text(encoding="utf-8"))
TABLES: dict[str, type[SettingsTable]] = {"topic": TopicConfig, "broker": BrokerConfig, "group": GroupConfig}
# Kafka insists on these two; a broker here starts without them.
REQUIRED = {"node.id": "0", "process.roles": "broker,controller"}

# Delayed messages, which Kafka does not have.
OWN = {"delay.max.ms", "delay.target.topic"}


@pytest.mark.parametrize("table", TABLES)
def test_names_types_and_defaults_are_kafkas(table: str) -> None:
    ours = [
        [setting.name, setting.kind.name.lower(), setting.text(setting.default)]
        for setting in TABLES[table].settings.values()
        if setting.name not in OWN
    ]
    kafkas = [
        [name, kind, REQUIRED[name] if default == "<required>" else default] for name, kind, default in FACTS[table]
    ]
    assert ours == kafkas


@pytest.mark.parametrize("table", TABLES)
def test_default_passes_its_own_check_and_survives_text(table: str) -> None:
    for setting in TABLES[table].settings.values():
        text = setting.text(setting.default)
        if text is not None and setting.name != "internal.segment.bytes":
            assert setting.parse(text) == setting.default, setting.name


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_is_documented(table: str) -> None:
    for setting in TABLES[table].settings.values():
        assert setting.doc.endswith("."), setting.name
        assert len(setting.doc) > 10, setting.name
