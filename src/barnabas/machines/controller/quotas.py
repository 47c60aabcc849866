"""Changes of client quotas: the checks, in Kafka's order and with Kafka's codes, and the records (KIP-546).

All changes of an entity are made, or none of them. A rate that is no number is refused here; Kafka stores it.
"""

import math
from collections import Counter
from ipaddress import ip_address
from typing import Final

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import AlterQuotas, QuotaChange, QuotaResult
from barnabas.machines.controller.image import ClusterImage, QuotaEntity
from barnabas.machines.controller.records import QuotasSet

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

_LONG, _DOUBLE, _INT = "a LONG", "a DOUBLE", "an INT"
_LARGEST = {_LONG: float(2**63 - 1), _INT: float(2**31 - 1), _DOUBLE: math.inf}
_CLIENT_KEYS = {
    PRODUCER_BYTE_RATE: _LONG,
    CONSUMER_BYTE_RATE: _LONG,
    REQUEST_PERCENTAGE: _DOUBLE,
    CONTROLLER_MUTATION_RATE: _DOUBLE,
}
_IP_KEYS = {CONNECTION_CREATION_RATE: _INT}


def decide_alter_quotas(
    image: ClusterImage, command: AlterQuotas
) -> tuple[tuple[QuotasSet, ...], tuple[QuotaResult, ...]]:
    counts = Counter(tuple(sorted(entity, key=str)) for entity, _ in command.entities)
    records: list[QuotasSet] = []
    results: list[QuotaResult] = []
    for given, changes in command.entities:
        try:
            if counts[tuple(sorted(given, key=str))] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Ignoring duplicate entity")
            entity = _checked_entity(given)
            values = _changed(image, entity, changes)
            if values != image.client_quotas.get(entity, {}):
                records.append(QuotasSet(entity, values))
            results.append(QuotaResult(given))
        except KafkaError as error:
            results.append(QuotaResult(given, error.code, error.message))
    return (() if command.validate_only else tuple(records)), tuple(results)


def _checked_entity(given: QuotaEntity) -> QuotaEntity:
    types = [part.type for part in given]
    for part in given:
        if part.type not in (USER, CLIENT_ID, IP):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unhandled client quota entity type: {part.type}")
        if types.count(part.type) > 1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Invalid client quota entity, duplicate entity entry {part.type}"
            )
        if part.name == "":
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Empty {part.type} not supported")
    if not given:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    if IP in types:
        if len(types) > 1:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Invalid quota entity combination, IP entity should not be combined with User or ClientId",
            )
        _check_address(given[0].name)
    return tuple(sorted(given, key=lambda part: part.type))


def _check_address(address: str | None) -> None:
    """Kafka takes host names too, and looks them up; here an address is written out."""
    try:
        if address is not None:
            ip_address(address)
    except ValueError:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{address} is not a valid IP address.") from None


def _changed(image: ClusterImage, entity: QuotaEntity, changes: tuple[QuotaChange, ...]) -> dict[str, float]:
    keys = _IP_KEYS if entity[0].type == IP else _CLIENT_KEYS
    values = dict(image.client_quotas.get(entity, {}))
    seen: set[str] = set()
    for key, value in changes:
        if key in seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Duplicate quota key {key}")
        seen.add(key)
        if value is None:
            values.pop(key, None)
        else:
            _check_value(keys, key, value)
            values[key] = value
    return values


def _check_value(keys: dict[str, str], key: str, value: float) -> None:
    kind = keys.get(key)
    if kind is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Invalid configuration key {key}")
    if not value > 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Quota {key} must be greater than 0")
    if value > _LARGEST[kind]:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Proposed value for {key} is too large for {kind}.")
    if kind != _DOUBLE and value % 1 > 1e-6:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} cannot be a fractional value.")
