"""The four APIs about settings, over a cluster of one in memory: what Kafka answers, code by code."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from barnabas.clock import SystemClock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.image import BrokerEndpoint
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages import alter_configs as full
from barnabas.protocol.messages import describe_configs as describe
from barnabas.protocol.messages import incremental_alter_configs as incremental
from barnabas.protocol.messages.list_config_resources import ListConfigResourcesRequest
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient
from barnabas.server.dispatch import Dispatcher, Handler
from barnabas.server.handlers import (
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)
from barnabas.server.request import RequestContext
from barnabas.server.settings import Settings

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC_SOURCE, DYNAMIC_SOURCE, DEFAULT_SOURCE = 1, 2, 5


class Caller:
    """Calls handlers as the dispatcher does, with a broker that has settings and a cluster and nothing else."""

    def __init__(self, settings: Settings, cluster: ClusterMembership) -> None:
        self.settings = settings
        self.broker = cast(
            Any,
            SimpleNamespace(
                settings=settings,
                authorizer=None,
                config=settings.config,
                cluster=cluster,
                controller=ControllerClient(cluster),
                node_id=1,
                clock=SystemClock(),
            ),
        )
        self.broker.dispatcher = Dispatcher(self.broker, [])

    async def call(self, row: Handler[Any, Any], request: Any, version: int | None = None) -> Any:
        version = row.max_version if version is None else version
        context = RequestContext(self.broker, Mock(), RequestHeader(row.api_key, version, 0, None, 0))
        answer = row.handle(context, request)
        return await answer if isinstance(answer, Awaitable) else answer

    async def alter(self, kind: int, name: str, *changes: tuple[str, int, str | None]) -> tuple[ErrorCode, str | None]:
        configs = [
            incremental.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ]
        resource = incremental.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        (answer,) = (await self.call(incremental_alter_configs.HANDLER, request)).responses
        return ErrorCode(answer.error_code), answer.error_message

    async def replace(self, kind: int, name: str, **values: str) -> ErrorCode:
        configs = [full.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()]
        resource = full.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        request = full.AlterConfigsRequest(resources=[resource], validate_only=False)
        return ErrorCode((await self.call(alter_configs.HANDLER, request)).responses[0].error_code)

    async def describe(self, kind: int, name: str, *keys: str) -> Any:
        resource = describe.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
        )
        request = describe.DescribeConfigsRequest(
            resources=[resource], include_synonyms=True, include_documentation=True
        )
        return (await self.call(describe_configs.HANDLER, request)).results[0]

    async def value(self, kind: int, name: str, key: str) -> tuple[str | None, int]:
        (row,) = (await self.describe(kind, name, key)).configs
        return row.value, row.config_source


def with_cluster(scenario: Callable[[Caller], Awaitable[None]]) -> None:
    async def run() -> None:
        settings = Settings(BrokerConfig.parse({"node.id": "1"}))
        endpoints = [BrokerEndpoint("PLAINTEXT", "localhost", 9092)]
        cluster = ClusterMembership(MemoryStore(), broker_id=1, rules=settings.rules)
        cluster.listeners.append(lambda delta: cast(None, settings.on_image(delta.image)))
        await cluster.start(endpoints)
        try:
            await ControllerClient(cluster).create_topics([NewTopic("orders", 1, 1)])
            await scenario(Caller(settings, cluster))
        finally:
            await cluster.stop()

    asyncio.run(run())


def test_a_topic_setting_is_set_described_and_deleted() -> None:
    async def scenario(caller: Caller) -> None:
        assert await caller.value(TOPIC, "orders", "retention.ms") == ("604800000", DEFAULT_SOURCE)
        assert (await caller.alter(TOPIC, "orders", ("retention.ms", SET, "5")))[0] is ErrorCode.NONE
        assert await caller.value(TOPIC, "orders", "retention.ms") == ("5", TOPIC_SOURCE)
        assert (await caller.alter(TOPIC, "orders", ("retention.ms", DELETE, None)))[0] is ErrorCode.NONE
        assert await caller.value(TOPIC, "orders", "retention.ms") == ("604800000", DEFAULT_SOURCE)

    with_cluster(scenario)


def test_lists_are_appended_to_and_subtracted_from() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.alter(TOPIC, "orders", ("cleanup.policy", APPEND, "compact"))
        assert await caller.value(TOPIC, "orders", "cleanup.policy") == ("delete,compact", TOPIC_SOURCE)
        await caller.alter(TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete"))
        assert await caller.value(TOPIC, "orders", "cleanup.policy") == ("compact", TOPIC_SOURCE)

    with_cluster(scenario)


@pytest.mark.parametrize(
    ("kind", "name", "key", "operation", "value", "error"),
    [
        (TOPIC, "orders", "retention.ms", SET, "x", ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", "no.such", SET, "x", ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", "retention.ms", APPEND, "1", ErrorCode.INVALID_CONFIG),
        (TOPIC, "orders", "retention.ms", SET, None, ErrorCode.INVALID_REQUEST),
        (TOPIC, "orders", "retention.ms", 9, "1", ErrorCode.INVALID_REQUEST),
        (TOPIC, "nope", "retention.ms", SET, "1", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "1", "node.id", SET, "3", ErrorCode.INVALID_REQUEST),
        (BROKER, "1", "max.connections", SET, "x", ErrorCode.INVALID_REQUEST),
        (BROKER, "9", "max.connections", SET, "5", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", "max.connections", SET, "5", ErrorCode.INVALID_REQUEST),
        (BROKER, "", "sasl.jaas.config", SET, "5", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "1", "root", SET, "DEBUG", ErrorCode.INVALID_REQUEST),
        (CLIENT_METRICS, "m", "interval.ms", SET, "99", ErrorCode.INVALID_REQUEST),
        (GROUP, "g", "consumer.session.timeout.ms", SET, "1", ErrorCode.INVALID_CONFIG),
        (77, "x", "a", SET, "b", ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused_changes(kind: int, name: str, key: str, operation: int, value: str | None, error: ErrorCode) -> None:
    async def scenario(caller: Caller) -> None:
        code, message = await caller.alter(kind, name, (key, operation, value))
        assert (code, bool(message)) == (error, True)

    with_cluster(scenario)


def test_one_bad_change_leaves_the_resource_as_it_was() -> None:
    async def scenario(caller: Caller) -> None:
        error, _ = await caller.alter(TOPIC, "orders", ("retention.ms", SET, "5"), ("segment.bytes", SET, "1"))
        assert error is ErrorCode.INVALID_CONFIG
        assert await caller.value(TOPIC, "orders", "retention.ms") == ("604800000", DEFAULT_SOURCE)

    with_cluster(scenario)


def test_replacing_takes_away_what_is_left_out() -> None:
    async def scenario(caller: Caller) -> None:
        assert await caller.replace(TOPIC, "orders", retention_ms="5", segment_ms="6") is ErrorCode.NONE
        assert await caller.replace(TOPIC, "orders", retention_ms="7") is ErrorCode.NONE
        assert await caller.value(TOPIC, "orders", "retention.ms") == ("7", TOPIC_SOURCE)
        assert await caller.value(TOPIC, "orders", "segment.ms") == ("604800000", DEFAULT_SOURCE)
        assert await caller.replace(TOPIC, "orders", retention_ms="x") is ErrorCode.INVALID_CONFIG
        assert await caller.replace(BROKER, "2", max_connections="1") is ErrorCode.INVALID_REQUEST

    with_cluster(scenario)


def test_a_resource_named_twice_is_refused_twice() -> None:
    async def scenario(caller: Caller) -> None:
        def resource(operation: int) -> incremental.AlterConfigsResource:
            change = incremental.AlterableConfig(name="retention.ms", config_operation=operation, value="5")
            return incremental.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[change])

        for operations in ((SET, SET), (SET, 9), (9, SET)):
            request = incremental.IncrementalAlterConfigsRequest(
                resources=[resource(operation) for operation in operations], validate_only=False
            )
            answer = await caller.call(incremental_alter_configs.HANDLER, request)
            assert [each.error_code for each in answer.responses] == [ErrorCode.INVALID_REQUEST] * 2
        assert await caller.value(TOPIC, "orders", "retention.ms") == ("604800000", DEFAULT_SOURCE)

    with_cluster(scenario)


def test_validate_only_changes_nothing() -> None:
    async def scenario(caller: Caller) -> None:
        change = incremental.AlterableConfig(name="retention.ms", config_operation=SET, value="5")
        resource = incremental.AlterConfigsResource(resource_type=TOPIC, resource_name="orders", configs=[change])
        request = incremental.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
        answer = await caller.call(incremental_alter_configs.HANDLER, request)
        assert answer.responses[0].error_code == ErrorCode.NONE
        assert await caller.value(TOPIC, "orders", "retention.ms") == ("604800000", DEFAULT_SOURCE)

    with_cluster(scenario)


def test_a_brokers_dynamic_setting_reaches_its_topics() -> None:
    async def scenario(caller: Caller) -> None:
        assert (await caller.alter(BROKER, "", ("message.max.bytes", SET, "2000")))[0] is ErrorCode.NONE
        assert await caller.value(TOPIC, "orders", "max.message.bytes") == ("2000", 3)
        assert (await caller.alter(BROKER, "1", ("message.max.bytes", SET, "3000")))[0] is ErrorCode.NONE
        assert await caller.value(BROKER, "1", "message.max.bytes") == ("3000", DYNAMIC_SOURCE)
        assert caller.settings.config.message_max_bytes == 3000
        assert [row.name for row in (await caller.describe(BROKER, "")).configs] == ["message.max.bytes"]

    with_cluster(scenario)


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (BROKER_LOGGER, "1", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_described(kind: int, name: str, error: ErrorCode) -> None:
    async def scenario(caller: Caller) -> None:
        result = await caller.describe(kind, name)
        assert (result.error_code, result.configs) == (error, [])
        assert (result.resource_type, result.resource_name) == (kind, name)

    with_cluster(scenario)


def test_synonyms_and_documentation_come_only_when_asked_for() -> None:
    async def scenario(caller: Caller) -> None:
        resource = describe.DescribeConfigsResource(resource_type=TOPIC, resource_name="orders", configuration_keys=[])
        request = describe.DescribeConfigsRequest(
            resources=[resource], include_synonyms=False, include_documentation=False
        )
        rows = (await caller.call(describe_configs.HANDLER, request)).results[0].configs
        assert len(rows) == 35
        assert all(row.synonyms == [] and row.documentation is None for row in rows)
        (row,) = (await caller.describe(TOPIC, "orders", "max.message.bytes")).configs
        assert [synonym.name for synonym in row.synonyms] == ["message.max.bytes"]
        assert row.documentation

    with_cluster(scenario)


def test_resources_are_listed_by_type() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.alter(GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))

        async def listed(version: int, *kinds: int) -> list[tuple[int, str]] | ErrorCode:
            request = ListConfigResourcesRequest(resource_types=list(kinds))
            answer = await caller.call(list_config_resources.HANDLER, request, version)
            if answer.error_code:
                return ErrorCode(answer.error_code)
            return [(each.resource_type, each.resource_name) for each in answer.config_resources]

        assert await listed(1) == [(GROUP, "g"), (BROKER, "1"), (TOPIC, "orders")]
        assert await listed(1, TOPIC) == [(TOPIC, "orders")]
        assert await listed(1, BROKER_LOGGER) == []
        assert await listed(0) == []
        assert await listed(1, 77) is ErrorCode.UNSUPPORTED_VERSION

    with_cluster(scenario)


@pytest.mark.parametrize("row", [describe_configs.HANDLER, alter_configs.HANDLER, incremental_alter_configs.HANDLER])
def test_a_fault_for_tests_reaches_every_resource(row: Handler[Any, Any]) -> None:
    resource = SimpleNamespace(resource_type=TOPIC, resource_name="orders", configs=[])
    assert row.fail is not None
    answer = row.fail(cast(Any, None), SimpleNamespace(resources=[resource, resource]), ErrorCode.REQUEST_TIMED_OUT)
    results = answer.results if row is describe_configs.HANDLER else answer.responses
    assert [each.error_code for each in results] == [ErrorCode.REQUEST_TIMED_OUT] * 2
