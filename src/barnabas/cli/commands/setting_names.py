"""Which settings a topic, a broker or a group has: brokers take back, and partly keep, what does not exist.

Asking is a courtesy: who may change settings but not read them is not hindered. Imports the clients.
"""

from collections.abc import Collection, Iterable

from barnabas.cli.command import UsageError
from barnabas.cli.command_parser import hint
from barnabas.client.admin import Admin, AdminError
from barnabas.client.admin.types import ConfigResource, ConfigResourceType
from barnabas.errors import KafkaError

OF_A_LISTENER = "listener.name."
"""Settings of one listener begin with its name; nobody lists them all."""


def check_settings(admin: Admin, resources: Collection[ConfigResource], names: Iterable[str], said_of: str) -> None:
    """Raises UsageError with the nearest name if there is a setting that none of them has."""
    known = known_settings(admin, resources)
    unknown = unknown_settings(names, known)
    if unknown:
        raise UsageError(f"{said_of} no setting {in_words(unknown, known)}")


def known_settings(admin: Admin, resources: Collection[ConfigResource]) -> set[str]:
    """Names; none if they cannot be found out."""
    described = list(resources)
    try:
        # What all brokers share lists only what was set; a broker knows the rest.
        if ConfigResource.broker() in described:
            described.append(
                ConfigResource(ConfigResourceType.BROKER, str(admin.describe_cluster().brokers[0].node.id))
            )
        found = admin.describe_configs(described)
    except AdminError as error:
        found = error.results
    except KafkaError:
        return set()
    return {name for settings in found.values() for name in settings}


def unknown_settings(names: Iterable[str], known: Collection[str]) -> list[str]:
    return [name for name in names if known and name not in known and not name.startswith(OF_A_LISTENER)]


def in_words(unknown: Iterable[str], known: Collection[str]) -> str:
    return ", ".join(f"{name}{hint(name, known)}" for name in unknown)
