"""ApiVersions: every API that Apache Kafka 4.1 lists to clients, in its versions, and the features."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from handler_calls import HandlerCalls
from kafka_api_list import KAFKA_4_1, listed

from barnabas.protocol.api import ApiKey
from barnabas.protocol.message_types import request_type
from barnabas.protocol.messages.api_versions import ApiVersionsRequest

BETWEEN_BROKERS = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
}
"""No client sends these: brokers do, to the coordinator of share groups, which do not exist here."""


async def api_versions(directory: Path, version: int) -> Any:
    async with HandlerCalls(directory) as calls:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        return await calls.call(request, version)


def test_every_api_for_clients_is_listed(tmp_path: Path) -> None:
    ours = listed(asyncio.run(api_versions(tmp_path, 4)))
    wanted = {key: versions for key, versions in KAFKA_4_1.items() if key not in BETWEEN_BROKERS}
    assert ours == wanted


def test_each_api_that_is_listed_answers_in_each_version(tmp_path: Path) -> None:
    """An empty request of every kind: an answer or an error in it, never a closed connection."""

    async def main() -> None:
        async with HandlerCalls(tmp_path) as calls:
            for key, row in calls.broker.dispatcher.table.items():
                if key == ApiKey.PRODUCE:  # has a codec of its own, and tests of its own
                    continue
                for version in range(row.min_version, row.max_version + 1):
                    await calls.call(request_type(ApiKey(key))(), version)

    asyncio.run(main())


@pytest.mark.parametrize(("version", "supported"), [(3, ["metadata.version"]), (4, None)])
def test_features(tmp_path: Path, version: int, supported: list[str] | None) -> None:
    answer = asyncio.run(api_versions(tmp_path, version))
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert levels == {"group.version": 1, "transaction.version": 2, "metadata.version": 27}
    assert [each.name for each in answer.supported_features] == (list(levels) if supported is None else supported)
    assert all(each.max_version == levels[each.name] for each in answer.supported_features)
    assert (answer.error_code, answer.finalized_features_epoch) == (0, 0)
