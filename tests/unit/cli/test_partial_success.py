"""What a command with several names did is told, though one of them failed; with an admin that does half of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.cli.commands import acl, group, partition, user
from barnabas.client.admin import AdminError
from barnabas.client.admin.types import AclFilter
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition


class HalfAdmin:
    """Does the first of all that it is asked for and refuses the others."""

    def alter_partition_reassignments(self, plan: dict[Any, Any]) -> None:
        self._half(dict.fromkeys(plan, True))

    def elect_leaders(self, keys: list[Any], **_: Any) -> None:
        self._half(dict.fromkeys(keys, True))

    def create_acls(self, rules: list[Any]) -> None:
        self._half(dict.fromkeys(rules, True))

    def delete_acls(self, filters: list[AclFilter]) -> None:
        self._half({each: [] for each in filters})

    def list_group_offsets(self, group_id: str) -> dict[TopicPartition, int]:
        return {TopicPartition("t", 0): 5, TopicPartition("t", 1): 5}

    def delete_group_offsets(self, group_id: str, keys: list[Any]) -> None:
        self._half(dict.fromkeys(keys, True))

    def describe_user_scram_credentials(self, users: list[str]) -> dict[str, list[Any]]:
        return {name: [] for name in users}

    def alter_user_scram_credentials(self, changes: Any) -> None:
        self._half({(each.user, each.mechanism): True for each in changes})

    def _half(self, results: dict[Any, Any]) -> None:
        first, *others = results
        refused = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "not allowed")
        raise AdminError(dict.fromkeys(others, refused), {first: results[first]})


@pytest.fixture(autouse=True)
def half_done(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def client(options: Any) -> Iterator[HalfAdmin]:
        yield HalfAdmin()

    monkeypatch.setattr("barnabas.cli.connection.admin_client", client)


@pytest.mark.parametrize(
    ("noun", "words", "told"),
    [
        (partition, "reassign t:0=1 t:1=1", "began to move 1 partition;"),
        (partition, "cancel t:0 t:1", "cancelled the moves of 1 partition\n"),
        (partition, "elect t:0 t:1", "t              0  elected\n"),
        (acl, "create --allow-principal a --operation read --topic t --topic u", "created 1 rule\n"),
        (acl, "delete --topic t --topic u", "deleted 0 rules\n"),
        (group, "delete-offsets g --topic t", "deleted the offset of t-0\n"),
        (user, "delete alice bob --mechanism SCRAM-SHA-256", "deleted alice: SCRAM-SHA-256\n"),
    ],
)
def test_what_was_done_comes_before_the_failure(
    noun: Any, words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert noun.main(words.split()) == 1
    captured = capsys.readouterr()
    assert told in captured.out
    assert captured.err.endswith(": not allowed\n") and captured.err.count("\n") == 1
