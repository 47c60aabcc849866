"""The options of a consumer that its group membership uses, with Kafka's defaults; the consumer fills them in."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.types import GroupId

if TYPE_CHECKING:
    from barnabas.client.consumer.group.assignors import Assignor

CLASSIC = "classic"
CONSUMER = "consumer"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """The group options of one consumer."""

    group_id: GroupId
    group_protocol: str = CLASSIC
    group_instance_id: str | None = None
    group_remote_assignor: str | None = None
    client_rack: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    partition_assignment_strategy: "tuple[str | Assignor, ...]" = ("range", "cooperative-sticky")
    exclude_internal_topics: bool = True
    allow_auto_create_topics: bool = False
    isolation_level: str = "read_uncommitted"
    request_timeout_ms: int = 30_000
    default_api_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
