"""What the admin client says of groups, their members and their offsets."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from barnabas.client.admin.types.acls import AclOperation
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.metadata import Node
from barnabas.types import TopicPartition


class GroupState(StrEnum):
    """The state of a group, of any protocol. Also made from its name in any spelling."""

    UNKNOWN = "Unknown"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    NOT_READY = "NotReady"

    @classmethod
    def _missing_(cls, value: object) -> "GroupState":
        wanted = str(value).replace("_", "").casefold()
        return next((state for state in cls if state.casefold() == wanted), cls.UNKNOWN)


class GroupType(StrEnum):
    """The protocol of a group."""

    UNKNOWN = "Unknown"
    CLASSIC = "Classic"
    CONSUMER = "Consumer"
    SHARE = "Share"
    STREAMS = "Streams"

    @classmethod
    def _missing_(cls, value: object) -> "GroupType":
        wanted = str(value).casefold()
        return next((kind for kind in cls if kind.casefold() == wanted), cls.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """State and type are None if an old broker does not report them. The protocol type of consumers is "consumer"."""

    group_id: str
    protocol_type: str
    state: GroupState | None
    type: GroupType | None

    @property
    def is_simple_consumer_group(self) -> bool:
        """Offsets that a consumer without subscription commits; there are no members."""
        return self.protocol_type == ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member; target and epoch only exist in groups of the consumer protocol (KIP-848).

    `metadata` and `assignment_bytes` are what the member of a classic group sent and got; of consumers they are
    decoded into `subscribed_topics` and `assignment`.
    """

    member_id: str
    client_id: str
    host: str
    assignment: frozenset[TopicPartition]
    group_instance_id: str | None = None
    rack_id: str | None = None
    subscribed_topics: frozenset[str] = frozenset()
    subscribed_pattern: str | None = None
    target_assignment: frozenset[TopicPartition] | None = None
    member_epoch: int | None = None
    upgraded: bool | None = None
    """Whether the member speaks the consumer protocol, or the classic one while its group is being moved."""
    metadata: bytes = b""
    assignment_bytes: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group. `assignor` is the strategy ("range"); epochs only exist in groups of the consumer protocol."""

    group_id: str
    type: GroupType
    protocol_type: str
    state: GroupState
    assignor: str
    coordinator: Node
    members: tuple[MemberDescription, ...]
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None
    authorized_operations: frozenset[AclOperation] | None = None

    @property
    def is_simple_consumer_group(self) -> bool:
        """Offsets that a consumer without subscription commits; there are no members."""
        return self.type is GroupType.CLASSIC and self.protocol_type == ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberToRemove:
    """A static member by its group.instance.id, or any member by its member id."""

    group_instance_id: str | None = None
    member_id: str = ""

    def __str__(self) -> str:
        return f"member {self.group_instance_id or self.member_id}"


GroupOffsets = Mapping[TopicPartition, OffsetAndMetadata | None]
"""None: nothing is committed for that partition (only for partitions that were requested by name)."""
