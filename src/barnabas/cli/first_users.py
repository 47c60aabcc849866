"""Users of a cluster that does not run yet, for the commands that make them (`barnabas user`, `kafka-storage.sh`)."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.cli.command import Refused, UsageError

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.metadata.first_users import FirstUsers

RUNNING = (
    "brokers of this cluster run (or one was killed within the last seconds): have them change the user, with"
    " --bootstrap-server and without --data-dir, --config and --metadata"
)


@contextmanager
def open_users(config: "BrokerConfig", location: str | None = None) -> "Iterator[FirstUsers]":
    """Raises Refused, UsageError."""
    from barnabas.metadata import first_users
    from barnabas.metadata.registry import UnknownStoreError
    from barnabas.metadata.store import MetadataStoreError

    try:
        with first_users.open_users(config, location) as users:
            yield users
    except first_users.BrokersRunError:
        raise Refused(RUNNING) from None
    except UnknownStoreError as error:
        raise UsageError(str(error)) from None
    except (MetadataStoreError, OSError) as error:
        raise Refused(f"the metadata cannot be changed: {error}") from None


def credential_text(mechanism: str, password: str, iterations: int, salt: bytes | None = None) -> str:
    """What is kept of a password."""
    from barnabas.machines.sasl.scram import HASHES, SALT_BYTES

    salt = os.urandom(SALT_BYTES) if salt is None else salt
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
    return salted_credential_text(mechanism, salted, iterations, salt)


def salted_credential_text(mechanism: str, salted_password: bytes, iterations: int, salt: bytes) -> str:
    from barnabas.machines.sasl.scram_server import ScramCredential

    return ScramCredential.of(mechanism, salt, salted_password, iterations).text()
