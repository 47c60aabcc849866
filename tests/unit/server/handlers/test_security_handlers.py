"""What a broker without users, authorizer and share groups reports of them. Nothing is kept."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode
from barnabas.protocol.messages import alter_share_group_offsets as set_share_offsets
from barnabas.protocol.messages import alter_user_scram_credentials as set_scram
from barnabas.protocol.messages import create_acls as create
from barnabas.protocol.messages import delete_acls as delete
from barnabas.protocol.messages import describe_share_group_offsets as share_offsets
from barnabas.protocol.messages import describe_user_scram_credentials as scram
from barnabas.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from barnabas.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from barnabas.protocol.messages.share_fetch import ShareFetchRequest
from barnabas.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

ANY = 1


def answers(directory: Path, request: Any) -> list[Any]:
    """The answer in each version."""

    async def main() -> list[Any]:
        async with HandlerCalls(directory) as calls:
            return [await calls.call(request, version) for version in calls.versions(type(request))]

    return asyncio.run(main())


def test_without_an_authorizer_there_are_no_rules(tmp_path: Path) -> None:
    for answer in answers(tmp_path, DescribeAclsRequest(resource_type_filter=ANY, operation=ANY, permission_type=ANY)):
        assert (answer.error_code, answer.resources) == (ErrorCode.SECURITY_DISABLED, [])
        assert answer.error_message == "No Authorizer is configured on the broker"


def test_without_an_authorizer_no_rule_is_kept(tmp_path: Path) -> None:
    for answer in answers(tmp_path, create.CreateAclsRequest(creations=[create.AclCreation(), create.AclCreation()])):
        assert [each.error_code for each in answer.results] == [ErrorCode.SECURITY_DISABLED] * 2
    for answer in answers(tmp_path, delete.DeleteAclsRequest(filters=[delete.DeleteAclsFilter()])):
        assert [each.error_code for each in answer.filter_results] == [ErrorCode.SECURITY_DISABLED]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (SaslHandshakeRequest(mechanism="PLAIN"), ErrorCode.ILLEGAL_SASL_STATE),
        (SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), ErrorCode.ILLEGAL_SASL_STATE),
        (CreateDelegationTokenRequest(), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (RenewDelegationTokenRequest(hmac=b"x"), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (ExpireDelegationTokenRequest(hmac=b"x"), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (DescribeDelegationTokenRequest(owners=None), ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (ShareGroupHeartbeatRequest(group_id="g", member_id="m"), ErrorCode.UNSUPPORTED_VERSION),
        (ShareFetchRequest(group_id="g", member_id="m"), ErrorCode.UNSUPPORTED_VERSION),
        (ShareAcknowledgeRequest(group_id="g", member_id="m"), ErrorCode.UNSUPPORTED_VERSION),
        (set_share_offsets.AlterShareGroupOffsetsRequest(group_id="g"), ErrorCode.UNSUPPORTED_VERSION),
        (DeleteShareGroupOffsetsRequest(group_id="g"), ErrorCode.UNSUPPORTED_VERSION),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "__schema__") else "",
)
def test_what_is_not_there_is_refused_as_kafka_refuses_it(tmp_path: Path, request_: Any, error: ErrorCode) -> None:
    assert {answer.error_code for answer in answers(tmp_path, request_)} == {error}


def test_share_groups_cannot_be_described(tmp_path: Path) -> None:
    group = share_offsets.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    for request in (
        ShareGroupDescribeRequest(group_ids=["g"]),
        share_offsets.DescribeShareGroupOffsetsRequest(groups=[group]),
    ):
        for answer in answers(tmp_path, request):
            (described,) = answer.groups
            assert (described.group_id, described.error_code) == ("g", ErrorCode.UNSUPPORTED_VERSION)


def test_nobody_has_scram_credentials(tmp_path: Path) -> None:
    (everybody,) = answers(tmp_path, scram.DescribeUserScramCredentialsRequest(users=None))
    assert (everybody.error_code, everybody.results) == (ErrorCode.NONE, [])
    users = [scram.UserName(name=name) for name in ("a", "b", "b")]
    (named,) = answers(tmp_path, scram.DescribeUserScramCredentialsRequest(users=users))
    assert {each.user: each.error_code for each in named.results} == {
        "a": ErrorCode.RESOURCE_NOT_FOUND,
        "b": ErrorCode.DUPLICATE_RESOURCE,
    }


def test_changes_of_scram_credentials_that_are_refused(tmp_path: Path) -> None:
    (answer,) = answers(
        tmp_path,
        set_scram.AlterUserScramCredentialsRequest(
            deletions=[set_scram.ScramCredentialDeletion(name=name, mechanism=1) for name in ("a", "c")],
            upsertions=[
                set_scram.ScramCredentialUpsertion(name="b", mechanism=3, iterations=4096),
                set_scram.ScramCredentialUpsertion(name="c", mechanism=1, iterations=4096),
                set_scram.ScramCredentialUpsertion(name="d", mechanism=1, iterations=4095),
                set_scram.ScramCredentialUpsertion(name="e", mechanism=1, iterations=16_385),
                set_scram.ScramCredentialUpsertion(name="", mechanism=1, iterations=4096),
            ],
        ),
    )
    assert {each.user: each.error_code for each in answer.results} == {
        "a": ErrorCode.RESOURCE_NOT_FOUND,
        "b": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "c": ErrorCode.DUPLICATE_RESOURCE,
        "d": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "e": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
    }
