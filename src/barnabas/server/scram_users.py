"""The SCRAM users of the cluster, as the image has them."""

from barnabas.machines.sasl.scram_server import ScramCredential
from barnabas.metadata.image import ClusterImage, ConfigResource, ResourceType

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
"""By the numbers of the protocol."""
NUMBERS = {name: number for number, name in MECHANISMS.items()}


def credentials_of(image: ClusterImage, user: str) -> dict[str, ScramCredential]:
    """By the names of the mechanisms."""
    config = image.config(ConfigResource.user(user))
    return {name: ScramCredential.parse(text) for name, text in config.items() if name in NUMBERS}


def users_of(image: ClusterImage) -> list[str]:
    return sorted(
        resource.name
        for resource, config in image.configs.items()
        if resource.type is ResourceType.USER and config.keys() & NUMBERS.keys()
    )
