"""Values that may follow an option or a word while somebody types: codecs, settings, the choices of an option.

    barnabas completion values --line "barnabas produce orders -z "

Known without a broker. Whatever has no such values gives none, and the shell offers what it usually does.
"""

import argparse
from collections.abc import Iterable, Mapping

PAIR, NAME, CODEC = "KEY=VALUE", "KEY", "CODEC"
"""Metavars: a setting with its value, its name alone, a way to compress."""
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
CLIENT_OPTION = "-X"


def has_values(action: argparse.Action) -> bool:
    return bool(action.option_strings) and (action.metavar in (PAIR, NAME, CODEC) or bool(action.choices))


def values_for(words: list[str], parsers: Mapping[tuple[str, ...], argparse.ArgumentParser]) -> list[str]:
    """`words` are those typed so far without `barnabas`; the last one is the one being typed."""
    key = tuple(words[:2]) if tuple(words[:2]) in parsers else tuple(words[:1])
    if key not in parsers or len(words) < 2:
        return []
    before = words[-2]
    actions = [each for each in parsers[key]._actions if before in each.option_strings]
    if before == CLIENT_OPTION:
        return _pairs(_client_options(key[0]))
    if actions and actions[0].choices:
        return [str(each) for each in actions[0].choices]
    if actions and actions[0].metavar == CODEC:
        return CODECS
    if actions and actions[0].metavar in (PAIR, NAME):
        known = _settings(key[0])
        return _pairs(known) if actions[0].metavar == PAIR else sorted(known)
    if not actions and key[0] == "config":
        kind = next((word for word in words[2:-2] if word in ("topic", "broker", "group")), "")
        return _pairs(_settings(kind)) if key[1:] == ("set",) else sorted(_settings(kind))
    return []


def _pairs(names: Iterable[str]) -> list[str]:
    return sorted(f"{name}=" for name in names)


def _settings(noun: str) -> Iterable[str]:
    if noun == "topic":
        from barnabas.config.topic import TopicConfig

        return TopicConfig.settings
    if noun in ("server", "broker"):
        from barnabas.config.broker import BrokerConfig

        return BrokerConfig.settings
    if noun == "group":
        from barnabas.config.group import GroupConfig

        return GroupConfig.settings
    return ()


def _client_options(noun: str) -> Iterable[str]:
    from barnabas.client.options import AdminOptions, ConsumerOptions, ProducerOptions

    if noun == "produce":
        return ProducerOptions.settings
    return ConsumerOptions.settings if noun == "consume" else AdminOptions.settings
