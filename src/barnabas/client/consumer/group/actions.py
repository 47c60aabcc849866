"""What a membership machine requests from its driver. The machine goes on when the driver reports back."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.consumer.group.events import RebalanceEvent
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicId


@dataclass(frozen=True, slots=True, eq=False)
class Send:
    """To the group's coordinator, once; then `on_response` or `on_failure` is called."""

    request: Any
    timeout_ms: int
    delay_ms: int = 0
    min_version: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Leave:
    """Report to the coordinator that the member is gone. Only `close` waits for the response."""

    request: Any


@dataclass(frozen=True, slots=True, eq=False)
class Forget:
    """The coordinator has moved: look it up before the next request."""


@dataclass(frozen=True, slots=True, eq=False)
class Refresh:
    """Bring metadata of these topics (None: all) up to date; then `on_refreshed` is called."""

    topics: frozenset[str] | None


@dataclass(frozen=True, slots=True, eq=False)
class Deliver:
    """Queue for the user's thread; then `on_done` is called."""

    event: RebalanceEvent


@dataclass(frozen=True, slots=True, eq=False)
class Withdraw:
    """Take it back if nobody has taken it yet: `on_withdrawn` is called at once, or `on_done` later."""

    event: RebalanceEvent


@dataclass(frozen=True, slots=True, eq=False)
class Fail:
    """A permanent error: poll raises it."""

    error: KafkaError


@dataclass(frozen=True, slots=True, eq=False)
class Say:
    level: int
    text: str


Action = Send | Leave | Forget | Refresh | Deliver | Withdraw | Fail | Say

INFO, WARNING, ERROR, DEBUG = logging.INFO, logging.WARNING, logging.ERROR, logging.DEBUG


@dataclass(frozen=True, slots=True)
class TopicView:
    """What metadata says about topics at one moment."""

    partition_counts: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[TopicId, str] = field(default_factory=dict)
    internal: frozenset[str] = frozenset()
    errors: Mapping[str, ErrorCode] = field(default_factory=dict)
    """Why a requested topic is not there."""
    racks: Mapping[str, Sequence[frozenset[str]]] = field(default_factory=dict)
    """Per partition where its replicas are; empty if the brokers have no racks."""
