"""The immutable view of the cluster, as the server and its handlers import it.

The values are defined beside the controller machine, which decides on them and may not import upwards; this module is
the address for everybody else.
"""

from barnabas.machines.controller.acls import AclEntry, ResourcePattern
from barnabas.machines.controller.delegation_tokens import DelegationToken
from barnabas.machines.controller.delta import Delta, ImageBuilder
from barnabas.machines.controller.image import (
    CLUSTER_DEFAULT,
    NO_CONFIG,
    NO_CONTROLLER,
    NO_PARTITION_EPOCH,
    BrokerEndpoint,
    BrokerImage,
    ClusterImage,
    ConfigResource,
    EntityPart,
    PartitionImage,
    QuotaEntity,
    ResourceType,
    TopicImage,
)

__all__ = [
    "CLUSTER_DEFAULT",
    "NO_CONFIG",
    "NO_CONTROLLER",
    "NO_PARTITION_EPOCH",
    "AclEntry",
    "BrokerEndpoint",
    "BrokerImage",
    "ClusterImage",
    "ConfigResource",
    "DelegationToken",
    "Delta",
    "EntityPart",
    "ImageBuilder",
    "PartitionImage",
    "QuotaEntity",
    "ResourcePattern",
    "ResourceType",
    "TopicImage",
]
