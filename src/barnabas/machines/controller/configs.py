"""Changes of settings: all of a resource's settings change, or none of them.

Functions over an image. `ConfigRules`, which is passed in, decides which settings are valid.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ConfigResult,
    ConfigRules,
    IncrementalAlterConfigs,
)
from barnabas.machines.controller.image import ClusterImage, ConfigResource, ResourceType
from barnabas.machines.controller.records import ConfigSet
from barnabas.protocol.primitives import MAX_STRING_BYTES

Changes = TypeVar("Changes")
Outcome = tuple[tuple[ConfigSet, ...], tuple[ConfigResult, ...]]


def decide_incremental_alter_configs(
    image: ClusterImage, command: IncrementalAlterConfigs, rules: ConfigRules
) -> Outcome:
    def altered(resource: ConfigResource, changes: tuple[ConfigChange, ...]) -> dict[str, str]:
        _check_names([change.name for change in changes])
        given = [change for change in changes if change.operation is not ConfigOperation.DELETE]
        _check_values([change.name for change in given if change.value is None])
        config = dict(image.config(resource))
        for change in changes:
            value = _new_value(resource, change, config.get(change.name), rules)
            _check_length(change.name, value)
            if value is None:
                config.pop(change.name, None)
            else:
                config[change.name] = value
        return config

    return _decide(image, command.resources, rules, command.validate_only, altered)


def decide_alter_configs(image: ClusterImage, command: AlterConfigs, rules: ConfigRules) -> Outcome:
    def replaced(_: ConfigResource, values: tuple[tuple[str, str | None], ...]) -> dict[str, str]:
        _check_names([name for name, _ in values])
        _check_values([name for name, value in values if value is None])
        return {name: value for name, value in values if value is not None}

    return _decide(image, command.resources, rules, command.validate_only, replaced)


def _decide(
    image: ClusterImage,
    resources: Iterable[tuple[ConfigResource, Changes]],
    rules: ConfigRules,
    validate_only: bool,
    change: Callable[[ConfigResource, Changes], Mapping[str, str]],
) -> Outcome:
    resources = tuple(resources)
    counts = Counter(resource for resource, _ in resources)
    records: list[ConfigSet] = []
    results: dict[ConfigResource, ConfigResult] = {}
    for resource, changes in resources:
        try:
            if counts[resource] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            check_exists(image, resource)
            config = change(resource, changes)
            rules.check(resource, config)
            if config != image.config(resource):
                records.append(ConfigSet(resource, config))
            results[resource] = ConfigResult(resource)
        except KafkaError as error:
            results[resource] = ConfigResult(resource, error.code, error.message)
    return (() if validate_only else tuple(records)), tuple(results.values())


def check_exists(image: ClusterImage, resource: ConfigResource) -> None:
    """Raises KafkaError unless the resource exists and can have settings."""
    match resource:
        case ConfigResource(ResourceType.TOPIC, name):
            if name not in image.topics:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        case ConfigResource(ResourceType.BROKER, ""):
            pass
        case ConfigResource(ResourceType.BROKER, name):
            if not name.isascii() or not name.isdigit():
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Unable to parse broker name as a base 10 number.")
            if int(name) not in image.brokers:
                raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No broker with id {name} found.")
        case ConfigResource(ResourceType.GROUP, ""):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        case ConfigResource(ResourceType.CLIENT_METRICS, ""):
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")
        case ConfigResource(ResourceType.GROUP | ResourceType.CLIENT_METRICS, name):
            # The name becomes part of a path in the store.
            if "/" in name or name == "<default>":
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{name}' cannot have settings.")
        case _:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource.type.name}.")


def _new_value(resource: ConfigResource, change: ConfigChange, current: str | None, rules: ConfigRules) -> str | None:
    if change.operation is ConfigOperation.SET:
        return change.value
    if change.operation is ConfigOperation.DELETE:
        return None
    if not rules.is_list(resource, change.name):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {change.operation.name} to key {change.name} because its type is not LIST.",
        )
    if current is None:
        current = rules.default(resource, change.name)
    parts = [part for part in (current or "").split(",") if part]
    for part in (change.value or "").split(","):
        if change.operation is ConfigOperation.APPEND and part not in parts:
            parts.append(part)
        elif change.operation is ConfigOperation.SUBTRACT and part in parts:
            parts.remove(part)
    return ",".join(parts)


def _check_names(names: list[str]) -> None:
    if len(set(names)) != len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _check_length(name: str, value: str | None) -> None:
    """A list that grew by APPEND may exceed the protocol's string limit, and could not be read back."""
    if value is not None and len(value.encode()) > MAX_STRING_BYTES:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"The value of {name} would be longer than {MAX_STRING_BYTES} bytes."
        )


def _check_values(missing: list[str]) -> None:
    if missing:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Null value not supported for : " + ", ".join(missing))
