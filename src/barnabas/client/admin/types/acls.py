"""Access rules, as Kafka numbers and names them."""

from dataclasses import dataclass

from barnabas.client.admin.types.enums import KafkaEnum


class ResourceType(KafkaEnum):
    """What an access rule is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(KafkaEnum):
    """MATCH and ANY are for filters: every rule that applies to a name, and every rule of that very name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(KafkaEnum):
    """What an access rule allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(KafkaEnum):
    """Whether an access rule allows or denies; ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


OPERATIONS_NOT_REPORTED = -(2**31)


def authorized_operations(bits: int) -> frozenset[AclOperation] | None:
    """The operations in a bit field of the protocol; None if not requested, or not reported by the broker."""
    if bits == OPERATIONS_NOT_REPORTED:
        return None
    named = {operation for operation in AclOperation if bits >> operation & 1}
    return frozenset(named - {AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL})


@dataclass(frozen=True, slots=True, kw_only=True)
class AclBinding:
    """One rule: may `principal` ("User:alice") from `host` do `operation` to the resource, or is it denied."""

    resource_type: ResourceType
    resource_name: str
    principal: str
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    pattern_type: PatternType = PatternType.LITERAL
    host: str = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Matches rules; what is left out matches everything."""

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY
