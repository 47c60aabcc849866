"""One member of a classic group: its identity, protocols and assignment, and the requests of it that are held."""

from barnabas.machines.coordinator import Token
from barnabas.machines.group.classic.protocols import Protocols
from barnabas.protocol.messages.describe_groups import DescribedGroupMember
from barnabas.protocol.messages.group_metadata_record import MemberMetadata


class ClassicMember:
    """Changed only by its group, which counts the protocols and the held requests of its members."""

    __slots__ = (
        "assignment",
        "awaiting_join",
        "awaiting_sync",
        "client_host",
        "client_id",
        "group_instance_id",
        "is_new",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_deadline_ms",
        "session_timeout_ms",
    )

    def __init__(
        self,
        *,
        member_id: str,
        group_instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.awaiting_join: Token | None = None
        self.awaiting_sync: Token | None = None
        self.is_new = False
        """In its first JoinGroup: the response will carry its id, so it cannot heartbeat yet."""
        self.session_deadline_ms = 0

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_excused_from_heartbeats(self) -> bool:
        """A held request shows that it is alive; but a new member would wait forever if its client was gone."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    def to_record(self, protocol: str | None) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata(protocol),
            assignment=self.assignment,
        )

    @classmethod
    def from_record(cls, record: MemberMetadata, protocol: str | None) -> "ClassicMember":
        timeout = record.session_timeout if record.rebalance_timeout == -1 else record.rebalance_timeout
        return cls(
            member_id=record.member_id,
            group_instance_id=record.group_instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=timeout,
            session_timeout_ms=record.session_timeout,
            protocols=((protocol or "", record.subscription),),
            assignment=record.assignment,
        )

    def describe(self, protocol: str | None) -> DescribedGroupMember:
        """Without its metadata if there is no protocol to select it by."""
        return DescribedGroupMember(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            member_metadata=b"" if protocol is None else self.metadata(protocol),
            member_assignment=self.assignment,
        )
