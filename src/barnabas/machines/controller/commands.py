"""Commands of the controller and their replies. Handlers map the protocol's messages to these and back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.errors import ErrorCode
from barnabas.machines.controller.acls import Acl, AclFilter
from barnabas.machines.controller.delegation_tokens import (
    CreateToken,
    DelegationToken,
    ExpireToken,
    RemoveExpiredTokens,
    RenewToken,
)
from barnabas.machines.controller.image import BrokerImage, ConfigResource, PartitionImage, QuotaEntity, TopicImage
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition


class ConfigRules(Protocol):
    """What the controller needs to know about settings; passed in."""

    def check(self, resource: ConfigResource, config: Mapping[str, str]) -> None:
        """Raise KafkaError (INVALID_CONFIG, INVALID_REQUEST) if the resource may not have these settings."""
        ...

    def is_list(self, resource: ConfigResource, name: str) -> bool: ...

    def default(self, resource: ConfigResource, name: str) -> str | None: ...


ChargeMutations: TypeAlias = Callable[[int], None]
"""Counts new or deleted partitions against a client's quota; raises KafkaError if that is used up (KIP-599)."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Pairs of partition and replicas, as in the request (so that duplicates can be detected)."""
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class TopicResult:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: TopicId = NO_TOPIC_ID
    num_partitions: int = -1
    replication_factor: int = -1
    config: Mapping[str, str] = field(default_factory=dict)
    """The settings given for the topic; the handler adds the defaults."""


@dataclass(frozen=True, slots=True)
class CreateTopics:
    topics: tuple[NewTopic, ...]
    validate_only: bool = False
    charge: ChargeMutations | None = None


class TopicToDelete(NamedTuple):
    """By name or by id, not both."""

    name: str | None = None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class DeletedTopic:
    name: str | None
    topic_id: TopicId = NO_TOPIC_ID
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    topics: tuple[TopicToDelete, ...]
    charge: ChargeMutations | None = None


@dataclass(frozen=True, slots=True)
class NewPartitions:
    name: str
    count: int
    """The new total number of partitions."""
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class NewPartitionsResult:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    topics: tuple[NewPartitions, ...]
    validate_only: bool = False
    charge: ChargeMutations | None = None


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    name: str
    operation: ConfigOperation
    value: str | None = None

    def __repr__(self) -> str:
        return f"ConfigChange({self.name}, {self.operation.name})"  # the value may be a password


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigs:
    resources: tuple[tuple[ConfigResource, tuple[ConfigChange, ...]], ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterConfigs:
    """Replaces all settings of each resource."""

    resources: tuple[tuple[ConfigResource, tuple[tuple[str, str | None], ...]], ...] = field(repr=False)
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ConfigResult:
    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


class QuotaChange(NamedTuple):
    key: str
    value: float | None
    """None removes it."""


@dataclass(frozen=True, slots=True)
class AlterQuotas:
    """Reply: a result for each entity. An entity's parts are as they came, so that duplicates can be detected."""

    entities: tuple[tuple[QuotaEntity, tuple[QuotaChange, ...]], ...]
    validate_only: bool = False


class QuotaResult(NamedTuple):
    entity: QuotaEntity
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class CreateAcls:
    """Reply: a result for each, in the same order."""

    acls: tuple[Acl, ...]


class AclResult(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteAcls:
    """Reply: what each filter deleted, in the same order."""

    filters: tuple[AclFilter, ...]


class DeletedAcls(NamedTuple):
    acls: tuple[Acl, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """The brokers that are registered now. Reply: None."""

    brokers: tuple[BrokerImage, ...]


@dataclass(frozen=True, slots=True)
class TakeOver:
    """This broker has become controller, and sees these brokers registered. Reply: None."""

    brokers: tuple[BrokerImage, ...] = ()


@dataclass(frozen=True, slots=True)
class UnregisterBroker:
    """Forget a broker that is away. Reply: None."""

    broker_id: int


@dataclass(frozen=True, slots=True)
class BalanceLeaders:
    """Move leadership to preferred replicas that are in sync. Reply: how many moved."""


@dataclass(frozen=True, slots=True)
class AddMissingReplicas:
    """Internal topics get the replicas that there were no brokers for when they were created. Reply: None."""


class Reassignment(NamedTuple):
    topic: str
    partition: int
    replicas: tuple[int, ...] | None
    """None cancels the reassignment in progress."""


class ReassignmentResult(NamedTuple):
    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class AlterReassignments:
    partitions: tuple[Reassignment, ...]
    allow_replication_factor_change: bool = True


@dataclass(frozen=True, slots=True)
class ControlledShutdown:
    """Reply: the partitions that the broker still leads, because no other replica is in sync."""

    broker_id: int
    broker_epoch: int


class IsrChange(NamedTuple):
    topic_id: TopicId
    partition: int
    leader_epoch: int
    partition_epoch: int
    in_sync_replicas: tuple[int, ...]
    broker_epochs: tuple[int, ...] = ()
    leader_recovering: bool = False


class IsrResult(NamedTuple):
    topic_id: TopicId
    partition: int
    error: ErrorCode
    image: PartitionImage | None = None
    partition_epoch: int = -1
    """After the change; the same as before if nothing had to be changed."""


@dataclass(frozen=True, slots=True)
class AlterPartition:
    broker_id: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class ElectionResult(NamedTuple):
    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    election: ElectionType
    partitions: tuple[TopicPartition, ...] | None = None
    """None: every partition that needs an election."""


@dataclass(frozen=True, slots=True)
class AllocateProducerIds:
    """Reply: a range of ids that is never given out again."""

    broker_id: int


class AdoptedTopic(NamedTuple):
    """A topic found in the log directories. `leader_epochs` has one per partition, above any it had before."""

    name: str
    leader_epochs: tuple[int, ...]
    topic_id: TopicId = NO_TOPIC_ID
    """NO_TOPIC_ID for a topic from before topic ids: it gets a new one."""
    config: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class AdoptTopics:
    """Topics that have folders but no metadata; done once per store. Reply: Adoption."""

    broker_id: int
    topics: tuple[AdoptedTopic, ...] = ()
    configs: tuple[tuple[ConfigResource, Mapping[str, str]], ...] = ()
    next_producer_id: int = 0
    acls: tuple[Acl, ...] = ()
    users: "tuple[ScramChange, ...]" = ()
    tokens: tuple[DelegationToken, ...] = ()


@dataclass(frozen=True, slots=True)
class Adoption:
    topics: tuple[TopicImage, ...] = ()
    faults: tuple[str, ...] = ()
    """What could not be adopted, and why."""


class ScramChange(NamedTuple):
    """A user's new credential for a SCRAM mechanism, in Kafka's form; None removes it."""

    user: str
    mechanism: str
    credential: str | None = None

    def __repr__(self) -> str:
        return f"ScramChange({self.user!r}, {self.mechanism})"


@dataclass(frozen=True, slots=True)
class AlterScramCredentials:
    """Reply: a tuple of ScramResult, one per user."""

    changes: tuple[ScramChange, ...]


class ScramResult(NamedTuple):
    user: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


Command: TypeAlias = (
    AdoptTopics
    | CreateTopics
    | DeleteTopics
    | CreatePartitions
    | IncrementalAlterConfigs
    | AlterConfigs
    | CreateAcls
    | DeleteAcls
    | AlterQuotas
    | BrokersChanged
    | TakeOver
    | UnregisterBroker
    | BalanceLeaders
    | AddMissingReplicas
    | AlterReassignments
    | ControlledShutdown
    | AlterPartition
    | ElectLeaders
    | AllocateProducerIds
    | AlterScramCredentials
    | CreateToken
    | RenewToken
    | ExpireToken
    | RemoveExpiredTokens
)
