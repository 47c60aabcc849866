"""The life of a user's objects in a client: `configure` when it is made, `close` when it ends, where they have them.

Interceptors, partitioner and assignors have `configure(configs)`, serializers and deserializers
`configure(configs, is_key)`. `configs` has the options that were given, by Kafka's dotted names, and the client id.
As in Java, an object that cannot be configured is a fault of the options, and one that cannot be closed is logged.
"""

import logging
from collections.abc import Iterator
from typing import Any

from barnabas.client.errors import ConfigError
from barnabas.client.options.reading import OptionsTable

logger = logging.getLogger(__name__)
_LISTS = ("interceptor_classes", "partition_assignment_strategy")
_SINGLE = ("key_serializer", "value_serializer", "key_deserializer", "value_deserializer", "partitioner_class")


def configure_plugins(options: Any) -> None:
    """Raises ConfigError, with the faults of all."""
    configs = _configs(options)
    faults = []
    for field, plugin in _plugins(options):
        configure = getattr(plugin, "configure", None)
        if not callable(configure):
            continue
        is_key = (field.startswith("key_"),) if "serializer" in field else ()
        try:
            configure(dict(configs), *is_key)
        except Exception as error:
            faults.append(f"{field}: {type(plugin).__name__}.configure() failed: {type(error).__name__}: {error}")
    if faults:
        raise ConfigError(faults)


def close_plugins(options: Any) -> None:
    for _, plugin in _plugins(options):
        close = getattr(plugin, "close", None)
        if callable(close):
            try:
                close()
            except Exception:
                logger.exception("%s.close() failed", type(plugin).__name__)


def _plugins(options: Any) -> Iterator[tuple[str, Any]]:
    for field in _LISTS:
        for plugin in getattr(options, field, ()):
            if not isinstance(plugin, str):
                yield field, plugin
    for field in _SINGLE:
        plugin = getattr(options, field, None)
        if plugin is not None and not isinstance(plugin, str):
            yield field, plugin


def _configs(options: OptionsTable) -> dict[str, Any]:
    given: frozenset[str] = getattr(options, "given", frozenset())
    names = {setting.field: name for name, setting in options.settings.items()}
    return {names[field]: getattr(options, field) for field in (*given, "client_id")}
