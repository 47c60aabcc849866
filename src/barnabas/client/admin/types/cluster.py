"""What the admin client says of features, the metadata quorum, users and quotas."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from barnabas.client.admin.types.enums import KafkaEnum


class FeatureRange(NamedTuple):
    """The lowest and the highest level or version, both included."""

    min_version: int
    max_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureMetadata:
    """Levels in force across the cluster, and what the broker that responded supports.

    `api_versions`: the requests it takes by their numbers, with the oldest and the latest version.
    """

    finalized: Mapping[str, FeatureRange]
    finalized_epoch: int | None
    supported: Mapping[str, FeatureRange]
    api_versions: Mapping[int, FeatureRange] = field(default_factory=dict, repr=False)


class FeatureUpgradeType(IntEnum):
    """Which changes of a feature level are allowed: up only, or down, safe or unsafe."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    """A new level for a feature; 0 takes it out of force (a downgrade)."""

    max_version_level: int
    upgrade_type: FeatureUpgradeType = FeatureUpgradeType.UPGRADE


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    """Times are None where they are not known: of the leader, or from an old broker."""

    replica_id: int
    directory_id: str | None
    log_end_offset: int
    last_fetch_timestamp: int | None
    last_caught_up_timestamp: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumInfo:
    """The replicas of the metadata log. `nodes`: listeners of the controllers, id -> name -> host:port."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    nodes: Mapping[int, Mapping[str, str]]


class ScramMechanism(KafkaEnum):
    """The hash of a SCRAM credential."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """What a broker reports about a user's credential: never the password."""

    mechanism: ScramMechanism
    iterations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramUpsertion:
    """Sets the password of a user for one mechanism; the password never leaves this process, only its salted hash."""

    user: str
    password: str = field(repr=False)
    mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256
    iterations: int = 4096
    salt: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramDeletion:
    """Delete the credential of a user for one mechanism."""

    user: str
    mechanism: ScramMechanism


class QuotaEntity(NamedTuple):
    """Whom a quota is for. Each part is a name, "" for the default of its kind, or None if it plays no part."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
