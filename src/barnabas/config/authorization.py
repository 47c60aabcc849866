"""Settings of the authorizer, and which classes of Kafka stand for it.

Kafka's authorizer reads them itself, so DescribeConfigs does not list them. `BrokerConfig.parse` reads them from the
same file.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.config.checks import Check
from barnabas.config.faults import Fault, read_values
from barnabas.config.setting import HIGH, boolean, string
from barnabas.config.table import SettingsTable, settings_table

AUTHORIZERS: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)


def split_principals(text: str) -> tuple[str, ...]:
    return tuple(part for part in (item.strip() for item in text.split(";")) if part)


_PRINCIPALS: Final = Check(
    "principals such as User:admin, separated by semicolons",
    lambda value: all(":" in each for each in split_principals(value)),
)


@settings_table
class AuthorizationConfig(SettingsTable):
    allow_everyone_if_no_acl_found: bool = boolean(
        False, "With an authorizer: whether a resource that no access rule names is open to everybody.", importance=HIGH
    )
    super_users: str = string(
        "",
        "With an authorizer: who may do everything, as User:name;User:name. The brokers' own user belongs here.",
        _PRINCIPALS,
        importance=HIGH,
    )

    @property
    def super_user_names(self) -> tuple[str, ...]:
        return split_principals(self.super_users)


def read_authorization_config(given: Mapping[str, str]) -> tuple[AuthorizationConfig, list[str]]:
    """What is given of these settings, and their faults."""
    values, faults = read_values(AuthorizationConfig.settings, given)
    faults += _without_authorizer(given)
    return AuthorizationConfig(**values), faults


def _without_authorizer(given: Mapping[str, str]) -> Iterator[str]:
    """Somebody believes that others are kept out."""
    if not given.get("authorizer.class.name", "").strip() and given.get("super.users", "").strip():
        yield Fault("super.users", f"nothing is protected without authorizer.class.name, such as {AUTHORIZERS[0]}")
