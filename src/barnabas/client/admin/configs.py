"""Settings of topics, brokers and groups: read them, change single ones.

Settings of one broker are requested from that broker, all others from any (DescribeConfigs, IncrementalAlterConfigs).
A change names what it touches and leaves the rest: no call replaces all settings.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.attempts import Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.types import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
)
from barnabas.client.admin.types.configs import config_text
from barnabas.errors import KafkaError
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest

SET, DELETE, APPEND, SUBTRACT = range(4)
OF_ONE_BROKER = (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER)


@dataclass(frozen=True, slots=True)
class ConfigAdmin:
    """Settings of topics, brokers and groups."""

    requests: AdminRequests

    async def describe_config(
        self,
        resource: ConfigResource,
        *,
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> dict[str, ConfigEntry]:
        """The settings of a topic, broker or group by name; `names` limits them."""
        outcome = await self._describe_configs([resource], names, include_synonyms, include_documentation, timeout)
        return outcome.only(resource)

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        names: Collection[str] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout: float | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """The same of several resources."""
        outcome = await self._describe_configs(resources, names, include_synonyms, include_documentation, timeout)
        return outcome.all()

    async def _describe_configs(
        self,
        resources: Iterable[ConfigResource],
        names: Collection[str] | None,
        synonyms: bool,
        documentation: bool,
        timeout: float | None,
    ) -> Outcome[ConfigResource, dict[str, ConfigEntry]]:
        deadline = self.requests.deadline(timeout)

        async def send_to(
            node_id: int, requested: list[ConfigResource]
        ) -> Mapping[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
            keys = None if names is None else list(names)
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(resource_type=each.type, resource_name=each.name, configuration_keys=keys)
                    for each in requested
                ],
                include_synonyms=synonyms,
                include_documentation=documentation,
            )
            response = await self.requests.send(node_id, request, deadline, min_version=3 if documentation else 0)
            results: dict[ConfigResource, dict[str, ConfigEntry] | KafkaError] = {}
            for result in response.results:
                resource = ConfigResource(ConfigResourceType(result.resource_type), result.resource_name)
                if result.error_code:
                    results[resource] = _config_error(resource, result.error_code, result.error_message)
                else:
                    results[resource] = {each.name: _entry(each) for each in result.configs}
            return results

        return await self.requests.call_each(resources, self._locate, send_to, deadline)

    async def alter_config(
        self,
        resource: ConfigResource,
        set: Mapping[str, object] | None = None,
        *,
        delete: Collection[str] = (),
        append: Mapping[str, object] | None = None,
        subtract: Mapping[str, object] | None = None,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change settings of one resource: set values, delete (back to the default), add to or take from lists."""
        change = ConfigChange(set=set or {}, delete=delete, append=append or {}, subtract=subtract or {})
        (await self._alter_configs({resource: change}, validate_only, timeout)).only(resource)

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, ConfigChange],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change settings of several resources; each is changed as a whole or not at all."""
        (await self._alter_configs(changes, validate_only, timeout)).all()

    async def _alter_configs(
        self, changes: Mapping[ConfigResource, ConfigChange], validate_only: bool, timeout: float | None
    ) -> Outcome[ConfigResource, bool]:
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[ConfigResource]) -> Mapping[ConfigResource, bool | KafkaError]:
            request = IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=each.type, resource_name=each.name, configs=_operations(changes[each])
                    )
                    for each in requested
                ],
                validate_only=validate_only,
            )
            response = await self.requests.send(node_id, request, deadline)
            results: dict[ConfigResource, bool | KafkaError] = {}
            for result in response.responses:
                resource = ConfigResource(ConfigResourceType(result.resource_type), result.resource_name)
                refused = result.error_code and _config_error(resource, result.error_code, result.error_message)
                results[resource] = refused or True
            return results

        return await self.requests.call_each(
            changes, self._locate, send_to, deadline, on_retry=self.requests.forget_controller
        )

    async def list_config_resources(
        self, types: Iterable[ConfigResourceType] = (), *, timeout: float | None = None
    ) -> list[ConfigResource]:
        """Resources that have settings of their own; without types, of all types that the broker knows."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int) -> list[ConfigResource]:
            request = ListConfigResourcesRequest(resource_types=[int(each) for each in types])
            only_metrics = list(types) == [ConfigResourceType.CLIENT_METRICS]
            response = await self.requests.send(node_id, request, deadline, min_version=0 if only_metrics else 1)
            check(response.error_code)
            return [
                ConfigResource(ConfigResourceType(each.resource_type), each.resource_name)
                for each in response.config_resources
            ]

        return await self.requests.call(self.requests.any_node, send_to, deadline)

    async def _locate(self, keys: list[ConfigResource]) -> Mapping[ConfigResource, int | KafkaError]:
        brokers = {key: int(key.name) for key in keys if key.type in OF_ONE_BROKER and key.name.isdecimal()}
        places = await self.requests.on_brokers(list(brokers.values())) if brokers else {}
        others = await self.requests.any_node() if len(brokers) < len(keys) else -1
        return {key: places[brokers[key]] if key in brokers else others for key in keys}


def _operations(change: ConfigChange) -> list[AlterableConfig]:
    """A value of null cannot be set: deleting says the same."""
    given = [(SET, change.set), (APPEND, change.append), (SUBTRACT, change.subtract)]
    operations = [
        AlterableConfig(name=name, config_operation=operation, value=config_text(value))
        for operation, values in given
        for name, value in values.items()
    ]
    return operations + [AlterableConfig(name=name, config_operation=DELETE, value=None) for name in change.delete]


def _config_error(resource: ConfigResource, code: int, message: str | None) -> KafkaError:
    if resource.type is ConfigResourceType.TOPIC:
        return admin_error(code, message, topic=resource.name)
    if resource.type is ConfigResourceType.GROUP:
        return admin_error(code, message, group=resource.name)
    return admin_error(code, message)


def _entry(config: DescribeConfigsResourceResult) -> ConfigEntry:
    return ConfigEntry(
        name=config.name,
        value=config.value,
        source=ConfigSource(config.config_source),
        is_read_only=config.read_only,
        is_sensitive=config.is_sensitive,
        synonyms=tuple(
            ConfigSynonym(name=each.name, value=each.value, source=ConfigSource(each.source))
            for each in config.synonyms
        ),
        type=ConfigType(config.config_type),
        documentation=config.documentation,
    )
