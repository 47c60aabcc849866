"""Access rules (ACLs): which principal may, or may not, do what to which resources, and filters over them.

Values only, with the numbers of the protocol. The image holds them by resource pattern; the controller changes them
(`acl_changes.py`), `server/authorizer.py` decides by them.
"""

from enum import IntEnum
from typing import NamedTuple

WILDCARD = "*"
CLUSTER_NAME = "kafka-cluster"


class Operation(IntEnum):
    """What somebody wants to do to a resource, by the numbers of Kafka's AclOperation."""

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


class SecuredType(IntEnum):
    """Kinds of resources that access is granted to, by the numbers of Kafka's ResourceType."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of a resource is meant; ANY and MATCH are for filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Permission(IntEnum):
    ANY = 1
    DENY = 2
    ALLOW = 3


class ResourcePattern(NamedTuple):
    type: SecuredType
    name: str
    """`*` stands for every name, if the pattern is literal."""
    pattern_type: PatternType


class AclEntry(NamedTuple):
    principal: str
    """`User:name`; `User:*` is everybody."""
    host: str
    """An address, a network such as 10.0.0.0/8, or `*`."""
    operation: Operation
    permission: Permission


class Acl(NamedTuple):
    pattern: ResourcePattern
    entry: AclEntry


class AclFilter(NamedTuple):
    """None and ANY match everything."""

    type: SecuredType = SecuredType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    @property
    def names_one_pattern(self) -> bool:
        is_exact = self.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        return is_exact and self.type is not SecuredType.ANY and self.name is not None

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        if self.type not in (SecuredType.ANY, pattern.type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.LITERAL:
            return pattern.name in (self.name, WILDCARD)
        return self.name.startswith(pattern.name)

    def matches_entry(self, entry: AclEntry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )
