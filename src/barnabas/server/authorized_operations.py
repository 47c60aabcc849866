"""What a client may do with a resource, as the bit field of KIP-430: bit n is set for the ACL operation numbered n."""

from typing import Final

from barnabas.server.request import CLUSTER, Operation, RequestContext, Resource, SecuredType

NOT_ASKED: Final = -(1 << 31)

_SUPPORTED: Final = {
    SecuredType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    SecuredType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    SecuredType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}


def _bits(operations: tuple[Operation, ...]) -> int:
    return sum(1 << operation for operation in operations)


_ALL: Final = {kind: _bits(operations) for kind, operations in _SUPPORTED.items()}


def authorized_operations(context: RequestContext, resource: Resource) -> int:
    """Without an authorizer everything that the kind of resource knows. Nothing is written to the audit log."""
    authorizer = context.broker.authorizer
    if authorizer is None:
        return _ALL[resource.type]
    principal, host = str(context.principal), context.host
    return _bits(
        tuple(
            each
            for each in _SUPPORTED[resource.type]
            if authorizer.would_allow(principal, host, each, resource.type, resource.name)
        )
    )


def authorized_cluster_operations(context: RequestContext) -> int:
    """Nothing for somebody who may not describe the cluster, as in Kafka."""
    return authorized_operations(context, CLUSTER) if context.may(Operation.DESCRIBE, CLUSTER) else 0
