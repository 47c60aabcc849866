"""The requests of the classic group protocol, filled in. Versions are chosen by the driver."""

from collections.abc import Collection, Iterable, Mapping

from barnabas.client.consumer.group.assignors import Assignor
from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.consumer.group.protocol import PROTOCOL_TYPE, MemberSubscription, encode_subscription
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.types import GroupId, TopicPartition

MAX_REASON_LENGTH = 255


class ClassicRequests:
    def __init__(self, options: GroupOptions) -> None:
        self._options = options

    def join(
        self,
        member_id: str,
        assignors: Iterable[Assignor],
        subscription: Subscription,
        owned: Collection[TopicPartition],
        owned_generation: int,
        reason: str | None,
    ) -> JoinGroupRequest:
        """One protocol for each assignor, the preferred one first: that order is how members vote."""
        options = self._options
        topics = tuple(sorted(subscription.topics))
        protocols = []
        for assignor in assignors:
            member = MemberSubscription(
                topics,
                assignor.subscription_user_data(subscription.topics),
                tuple(sorted(owned)),
                owned_generation,
                options.client_rack or None,
            )
            protocols.append(JoinGroupRequestProtocol(name=assignor.name, metadata=encode_subscription(member)))
        return JoinGroupRequest(
            group_id=options.group_id,
            session_timeout_ms=options.session_timeout_ms,
            rebalance_timeout_ms=options.max_poll_interval_ms,
            member_id=member_id,
            group_instance_id=options.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=None if reason is None else reason[:MAX_REASON_LENGTH],
        )

    def sync(self, identity: GroupMetadata, protocol: str | None, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=GroupId(identity.group_id),
            generation_id=identity.generation_id,
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )

    def heartbeat(self, identity: GroupMetadata) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=GroupId(identity.group_id),
            generation_id=identity.generation_id,
            member_id=identity.member_id,
            group_instance_id=identity.group_instance_id,
        )

    def leave(self, member_id: str, reason: str) -> LeaveGroupRequest:
        member = MemberIdentity(member_id=member_id, reason=reason[:MAX_REASON_LENGTH])
        return LeaveGroupRequest(group_id=self._options.group_id, members=[member])
