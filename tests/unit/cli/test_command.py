"""How declared commands are called, rendered and fail; with an admin that does half of what is requested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.cli.command import Command, Refused, UsageError, error_text, no_arguments, noun_main
from barnabas.cli.commands import acl, group, partition, user
from barnabas.cli.output import Output, Table
from barnabas.client.admin import AdminError
from barnabas.client.admin.errors import admin_error
from barnabas.client.admin.types import AclFilter
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition


class HalfAdmin:
    """Does the first of the things requested and refuses the others."""

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
    ("noun", "words", "printed"),
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
    noun: Any, words: str, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert noun.main(words.split()) == 1
    captured = capsys.readouterr()
    assert printed in captured.out
    assert captured.err.endswith(": not allowed\n") and captured.err.count("\n") == 1


def run(*words: str, call: Any, render: Any = None) -> int:
    return noun_main("noun", "", [Command("verb", "do it", no_arguments, call, render)])(["verb", *words])


def test_an_output_is_text_or_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    def render(options: Any, result: int) -> Output:
        return Output({"n": result}, ["line", Table(["N"], [[result]]), {"n": result}], 1, "not well")

    assert run(call=lambda _: 7, render=render) == 1
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("line\nN\n7\nn  7\n", "barnabas noun verb: not well\n")
    assert run("--json", call=lambda _: 7, render=render) == 1
    assert capsys.readouterr().out == '{\n  "n": 7\n}\n'


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (UsageError("wrong"), 2, "wrong"),
        (Refused("not now"), 1, "not now"),
        (KafkaError(ErrorCode.NOT_CONTROLLER, "moved"), 1, "moved"),
        (KeyboardInterrupt(), 130, None),
    ],
)
def test_the_exit_status(
    error: BaseException, status: int, text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    def call(options: Any) -> None:
        raise error

    assert run(call=call) == status
    assert capsys.readouterr().err == ("" if text is None else f"barnabas noun verb: {text}\n")


def test_an_unexpected_exception_is_a_bug() -> None:
    def call(options: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(call=call)


def test_hints_name_commands_instead_of_methods() -> None:
    error = admin_error(ErrorCode.GROUP_ID_NOT_FOUND, "gone", group="g")
    assert error.message == f"{error.reason} ({error.hint})" and error.hint == "list_groups shows those there are"
    assert error_text(error) == "group g: gone (`barnabas group list` shows those there are)"
    other = admin_error(ErrorCode.NON_EMPTY_GROUP, group="h")
    assert error_text(AdminError({"g": error, "h": other}, {})) == f"{error_text(error)}; {other.message}"
    # The code alone is no reason to promise a list: whoever raised it gave no hint.
    assert error_text(KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, "gone")) == "gone"
