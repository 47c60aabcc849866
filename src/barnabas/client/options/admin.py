"""Options of the admin client."""

from typing import Any

from barnabas.client.options.common import INT32_MAX, CommonOptions, address_faults, backoff_faults
from barnabas.client.options.option import LOW, int32, int64
from barnabas.client.options.refused import ADMIN_REFUSED
from barnabas.client.options.security import sasl_faults, tls_faults
from barnabas.config.checks import at_least, between
from barnabas.config.table import settings_table


def derive(values: dict[str, Any]) -> None:
    values.setdefault("client_id", "barnabas-admin")


@settings_table
class AdminOptions(CommonOptions):
    """Options of `Admin`."""

    rules = (address_faults, backoff_faults, sasl_faults, tls_faults)
    refused = ADMIN_REFUSED
    derived = staticmethod(derive)

    given: frozenset[str] = frozenset()

    connections_max_idle_ms: int = int64(300_000, "Idle time after which a connection is closed; negative is never.")
    default_api_timeout_ms: int = int32(60_000, "Time-out of calls that are given none.", at_least(0))
    retries: int = int32(
        INT32_MAX, "Retries at most, within the call's time-out.", between(0, INT32_MAX), importance=LOW
    )
