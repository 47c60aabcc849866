"""SCRAM users: changes of their credentials, which are settings of the user as in Kafka's tree of ZooKeeper.

A function over an image. Changes of a request are independent: its handler has seen to it that none is of the same user
as another (KIP-554).
"""

from barnabas.errors import ErrorCode
from barnabas.machines.controller.commands import AlterScramCredentials, ScramResult
from barnabas.machines.controller.image import ClusterImage, ConfigResource
from barnabas.machines.controller.records import ConfigSet


def decide_alter_scram(
    image: ClusterImage, command: AlterScramCredentials
) -> tuple[tuple[ConfigSet, ...], tuple[ScramResult, ...]]:
    records: list[ConfigSet] = []
    results: dict[str, ScramResult] = {}
    for user, mechanism, credential in command.changes:
        resource = ConfigResource.user(user)
        config = dict(image.config(resource))
        error, message = ErrorCode.NONE, None
        if credential is not None:
            records.append(ConfigSet(resource, {**config, mechanism: credential}))
        elif mechanism not in config:
            error = ErrorCode.RESOURCE_NOT_FOUND
            message = "Attempt to delete a user credential that does not exist"
        else:
            del config[mechanism]
            records.append(ConfigSet(resource, config))
        results[user] = ScramResult(user, error, message)
    return tuple(records), tuple(results.values())
