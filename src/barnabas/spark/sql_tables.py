"""`CREATE TABLE ... USING barnabas OPTIONS (...)`: how the options of a table reach its readers.

When Spark creates a table it requests the columns, and passes the options as table properties named `option.NAME`,
among others. When the table is read it passes only the columns. So the options are stored in the metadata of the first
column. Secrets are not: the metadata of columns is copied to every Parquet file written from them.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql.types import StructField, StructType

from barnabas.client.errors import ConfigError

_METADATA: Final = "barnabas.options"
_OPTION: Final = "option."
_OF_EVERY_TABLE: Final = "provider"
_MANAGED: Final = "is_managed_location"
_SECRETS: Final = (
    "sasl.password",
    "sasl.jaas.config",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.password",
)


def options_of_new_table(given: Mapping[str, str]) -> dict[str, str] | None:
    """None: `given` are the options of a read, not the properties of a table. Raises ConfigError."""
    names = {name.lower(): name for name in given}
    if _OF_EVERY_TABLE not in names:
        return None
    options = {name[len(_OPTION) :]: given[spelled] for name, spelled in names.items() if name.startswith(_OPTION)}
    if "location" in names and _MANAGED not in names:
        options["path"] = given[names["location"]]  # rejected like that of a read
    faults = [
        f"{name}: a table does not keep secrets; use CREATE TEMPORARY VIEW ... USING barnabas OPTIONS (...)"
        for name in options
        if name.removeprefix("kafka.") in _SECRETS
    ]
    if faults:
        raise ConfigError(faults)
    return options


def with_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    first, *others = schema.fields
    metadata: dict[str, Any] = {_METADATA: json.dumps(dict(options), sort_keys=True)}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def options_of_table(schema: StructType) -> dict[str, str]:
    """Those that `with_options` put there; empty for other columns."""
    for field in schema.fields:
        if _METADATA in field.metadata:
            options: dict[str, str] = json.loads(field.metadata[_METADATA])
            return options
    return {}
