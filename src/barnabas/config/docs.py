"""Writes the pages of settings: `python -m barnabas.config.docs docs/`.

A test compares the committed pages with these.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from barnabas.config.broker import BrokerConfig
from barnabas.config.setting import Setting
from barnabas.config.topic import TopicConfig

TOPIC_HEAD = """# Topic settings

Every topic setting of Apache Kafka 4.1. Where a topic does not set one, the broker's setting counts.
This page is written by `python -m barnabas.config.docs docs/`.
"""
BROKER_HEAD = """# Broker settings

Every broker setting of Apache Kafka 4.1. A setting without effect here is accepted and named at start.
This page is written by `python -m barnabas.config.docs docs/`.
"""


def topic_page() -> str:
    rows = [
        "| name | type | default | allowed | broker's setting | effect | what it is |",
        "|---|---|---|---|---|---|---|",
    ]
    for setting in _documented(TopicConfig.settings):
        synonyms = ", ".join(f"`{synonym.name}`" for synonym in setting.synonyms)
        rows.append(_row(*_facts(setting), synonyms, _effect(setting), setting.doc))
    return TOPIC_HEAD + "\n" + "\n".join(rows) + "\n"


def broker_page() -> str:
    rows = ["| name | type | default | allowed | may change | effect | what it is |", "|---|---|---|---|---|---|---|"]
    for setting in _documented(BrokerConfig.settings):
        rows.append(_row(*_facts(setting), setting.update.value, _effect(setting), setting.doc))
    return BROKER_HEAD + "\n" + "\n".join(rows) + "\n"


PAGES = {"settings-topic.md": topic_page, "settings-broker.md": broker_page}


def _documented(settings: Mapping[str, Setting]) -> list[Setting]:
    return [setting for setting in settings.values() if not setting.internal]


def _facts(setting: Setting) -> tuple[str, str, str, str]:
    default = setting.text(setting.default)
    shown = "null" if default is None else f"`{default}`" if default else "empty"
    allowed = setting.check.allowed if setting.check is not None else ""
    return f"`{setting.name}`", setting.kind.name.lower(), shown, allowed


def _effect(setting: Setting) -> str:
    return f"none: {setting.no_effect}" if setting.no_effect else "yes"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m barnabas.config.docs FOLDER", file=sys.stderr)
        return 2
    for name, page in PAGES.items():
        (Path(arguments[0]) / name).write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
