"""Records of Kafka's metadata log about brokers, features and security, and the control records of its quorum.

A broker has no use for them; the dump tool shows them. The records that matter here are in `kraft_records.py`.
"""

from typing import Final

from barnabas.protocol.schema import (
    BOOL,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT16,
    UUID,
    array,
    field,
    message,
    struct,
)


@struct
class BrokerEndpoint:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)
    security_protocol: int = field(INT16)


@struct
class BrokerFeature:
    name: str = field(STRING)
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


@message(record_type=0, versions=(0, 3), flexible=0)
class RegisterBrokerRecord:
    broker_id: int = field(INT32)
    is_migrating_zk_broker: bool = field(BOOL, since=2, default=False)
    incarnation_id: bytes = field(UUID)
    broker_epoch: int = field(INT64)
    end_points: list[BrokerEndpoint] = field(array(BrokerEndpoint))
    features: list[BrokerFeature] = field(array(BrokerFeature))
    rack: str | None = field(STRING, nullable=0)
    fenced: bool = field(BOOL, default=True)
    in_controlled_shutdown: bool = field(BOOL, since=1, default=False)
    log_dirs: list[bytes] = field(array(UUID), since=3, tag=0)


@message(record_type=1, versions=(0, 0), flexible=0)
class UnregisterBrokerRecord:
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64)


@message(record_type=7, versions=(0, 0), flexible=0)
class FenceBrokerRecord:
    id: int = field(INT32)
    epoch: int = field(INT64)


@message(record_type=8, versions=(0, 0), flexible=0)
class UnfenceBrokerRecord:
    id: int = field(INT32)
    epoch: int = field(INT64)


@message(record_type=12, versions=(0, 0), flexible=0)
class FeatureLevelRecord:
    name: str = field(STRING)
    feature_level: int = field(INT16)


@struct
class EntityData:
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable=0)


@message(record_type=14, versions=(0, 0), flexible=0)
class ClientQuotaRecord:
    entity: list[EntityData] = field(array(EntityData))
    key: str = field(STRING)
    value: float = field(FLOAT64)
    remove: bool = field(BOOL)


@message(record_type=17, versions=(0, 2), flexible=0)
class BrokerRegistrationChangeRecord:
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64)
    fenced: int = field(INT8, tag=0)
    in_controlled_shutdown: int = field(INT8, since=1, tag=1)
    log_dirs: list[bytes] = field(array(UUID), since=2, tag=2)


@message(record_type=20, versions=(0, 0), flexible=0)
class NoOpRecord:
    pass


@message(record_type=21, versions=(0, 0), flexible=0)
class ZkMigrationStateRecord:
    zk_migration_state: int = field(INT8)


@struct
class ControllerEndpoint:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)
    security_protocol: int = field(INT16)


@struct
class ControllerFeature:
    name: str = field(STRING)
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


@message(record_type=27, versions=(0, 0), flexible=0)
class RegisterControllerRecord:
    controller_id: int = field(INT32)
    incarnation_id: bytes = field(UUID)
    zk_migration_ready: bool = field(BOOL)
    end_points: list[ControllerEndpoint] = field(array(ControllerEndpoint))
    features: list[ControllerFeature] = field(array(ControllerFeature))


@message(record_type=28, versions=(0, 0), flexible=0)
class ClearElrRecord:
    topic_name: str | None = field(STRING, nullable=0, default=None)


@struct
class Voter:
    voter_id: int = field(INT32)
    voter_directory_id: bytes = field(UUID, since=1)


@message(versions=(0, 1), flexible=0)
class LeaderChangeMessage:
    version: int = field(INT16)
    leader_id: int = field(INT32)
    voters: list[Voter] = field(array(Voter))
    granting_voters: list[Voter] = field(array(Voter))


@message(versions=(0, 0), flexible=0)
class SnapshotHeaderRecord:
    version: int = field(INT16)
    last_contained_log_timestamp: int = field(INT64)


@message(versions=(0, 0), flexible=0)
class SnapshotFooterRecord:
    version: int = field(INT16)


@message(versions=(0, 0), flexible=0)
class KRaftVersionRecord:
    version: int = field(INT16)
    k_raft_version: int = field(INT16)


@struct
class VoterEndpoint:
    name: str = field(STRING)
    host: str = field(STRING)
    port: int = field(UINT16)


@struct
class KRaftVersionFeature:
    min_supported_version: int = field(INT16)
    max_supported_version: int = field(INT16)


@struct
class RegisteredVoter:
    voter_id: int = field(INT32)
    voter_directory_id: bytes = field(UUID)
    endpoints: list[VoterEndpoint] = field(array(VoterEndpoint))
    k_raft_version_feature: KRaftVersionFeature = field(KRaftVersionFeature)


@message(versions=(0, 0), flexible=0)
class VotersRecord:
    version: int = field(INT16)
    voters: list[RegisteredVoter] = field(array(RegisteredVoter))


OTHER_RECORDS: Final = (
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
    FenceBrokerRecord,
    UnfenceBrokerRecord,
    FeatureLevelRecord,
    ClientQuotaRecord,
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    ZkMigrationStateRecord,
    RegisterControllerRecord,
    ClearElrRecord,
)
