"""Access rules between the protocol's messages and the values of the metadata; used by the handlers of ACLs."""

from typing import Protocol

from barnabas.errors import ProtocolError
from barnabas.machines.controller.acls import (
    Acl,
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.protocol.messages.create_acls import AclCreation

NO_AUTHORIZER = "No Authorizer is configured."


class FilterMessage(Protocol):
    """DescribeAclsRequest, or a filter of a DeleteAclsRequest."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


def acl_of(creation: AclCreation) -> Acl:
    """Raises ProtocolError for a number that no version of the protocol knows, which closes the connection in Kafka."""
    try:
        return Acl(
            ResourcePattern(
                SecuredType(creation.resource_type),
                creation.resource_name,
                PatternType(creation.resource_pattern_type),
            ),
            AclEntry(
                creation.principal,
                creation.host,
                Operation(creation.operation),
                Permission(creation.permission_type),
            ),
        )
    except ValueError as error:
        raise ProtocolError(f"an acl has unknown elements: {error}") from None


def filter_of(message: FilterMessage) -> AclFilter:
    """Raises ProtocolError."""
    try:
        return AclFilter(
            SecuredType(message.resource_type_filter),
            message.resource_name_filter,
            PatternType(message.pattern_type_filter),
            message.principal_filter,
            message.host_filter,
            Operation(message.operation),
            Permission(message.permission_type),
        )
    except ValueError as error:
        raise ProtocolError(f"a filter of acls has unknown elements: {error}") from None
