"""`kafka-configs.sh` for users, clients and hosts: quotas, and SCRAM credentials of users."""

from __future__ import annotations

import re

from barnabas.cli.kafka.configs import CLIENTS, IPS, USERS, Change, Entity
from barnabas.cli.kafka.connection import exception_name, kafka_text
from barnabas.cli.kafka.flags import WrongUse
from barnabas.client.admin import Admin, AdminError
from barnabas.client.admin.types import QuotaEntity, ScramDeletion, ScramMechanism, ScramUpsertion
from barnabas.errors import ErrorCode, KafkaError

MECHANISMS = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
MECHANISM_NAMES = {mechanism: name for name, mechanism in MECHANISMS.items()}
MIN_ITERATIONS, DEFAULT_ITERATIONS = 4096, 4096
QUOTAS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
IP_QUOTAS = ("connection_creation_rate",)
FIELDS = {USERS: "user", CLIENTS: "client_id", IPS: "ip"}
WORDS = {"user": "user-principal", "client_id": "client-id", "ip": "ip"}
ANY, CREDENTIAL = "*", re.compile(r"(?:iterations=(-?[0-9]*),)?password=(.*)")


def describe(admin: Admin, whose: list[Entity]) -> None:
    for entity, quotas in _quotas(admin, whose).items():
        values = ", ".join(f"{name}={java_double(value)}" for name, value in quotas.items())
        print(f"Quota configs for {_in_words(entity)} are {values}")
    names = [entity.name for entity in whose if entity.name is not None]
    if whose[0].type == USERS and len(whose) == 1 and "" not in names:
        _describe_credentials(admin, names)


def _describe_credentials(admin: Admin, users: list[str]) -> None:
    failed: dict[str, KafkaError] = {}
    try:
        credentials = admin.describe_user_scram_credentials(users or None)
    except AdminError as error:
        credentials, failed = error.results, error.errors
    for user, found in credentials.items():
        listed = ", ".join(f"{MECHANISM_NAMES[each.mechanism]}=iterations={each.iterations}" for each in found)
        print(f"SCRAM credential configs for user-principal '{user}' are {listed}")
    for user, failure in failed.items():
        if failure.code is ErrorCode.RESOURCE_NOT_FOUND:  # a user without a credential
            continue
        reason = f"{exception_name(failure).rpartition('.')[2]}: {kafka_text(failure)}"
        print(f"Error retrieving SCRAM credential configs for user-principal '{user}': {reason}")


def alter(admin: Admin, whose: list[Entity], change: Change) -> None:
    names = [*change.add, *change.delete]
    kind = whose[0].type
    known = IP_QUOTAS if kind == IPS else QUOTAS
    scram = [name for name in names if name in MECHANISMS and kind == USERS and len(whose) == 1]
    unknown = [name for name in names if name not in known and name not in scram]
    if unknown:
        allowed = {IPS: "connection quota", CLIENTS: "quota"}.get(
            kind, "quota" if len(whose) == 2 else "quota and SCRAM credential"
        )
        raise WrongUse(
            f"Only {allowed} configs can be added for '{CLIENTS if len(whose) == 2 else kind}' using"
            f" --bootstrap-server. Unexpected config names: {','.join(unknown)}"
        )
    if scram and len(scram) < len(names):
        raise WrongUse(
            "Cannot alter both quota and SCRAM credential configs simultaneously for 'users' using --bootstrap-server."
        )
    if scram:
        _alter_credentials(admin, whose[0].name, change)
    else:
        _alter_quotas(admin, whose, change)


def _alter_credentials(admin: Admin, user: str | None, change: Change) -> None:
    if not user:
        raise WrongUse(
            "The use of --entity-default or --user-defaults is not allowed with User SCRAM Credentials using"
            " --bootstrap-server."
        )
    deletions = [ScramDeletion(user=user, mechanism=MECHANISMS[name]) for name in change.delete]
    admin.alter_user_scram_credentials(
        [*deletions, *(_upsertion(user, name, text) for name, text in change.add.items())]
    )


def _upsertion(user: str, name: str, text: str) -> ScramUpsertion:
    given = CREDENTIAL.fullmatch(text)
    if given is None:
        # What was given may hold the password: it is not repeated here.
        raise WrongUse(f"Invalid credential property {name}: expected [iterations=N,]password=SECRET")
    iterations = DEFAULT_ITERATIONS if given[1] in (None, "-1") else int(given[1] or 0)
    if iterations < MIN_ITERATIONS:
        raise WrongUse(f"Iterations {iterations} is less than the minimum {MIN_ITERATIONS} required for {name}")
    return ScramUpsertion(user=user, password=given[2], mechanism=MECHANISMS[name], iterations=iterations)


def _alter_quotas(admin: Admin, whose: list[Entity], change: Change) -> None:
    entity = QuotaEntity(**{FIELDS[kind]: name for kind, name in whose})
    there = next(iter(_quotas(admin, whose).values()), {}) if change.delete else {}
    missing = [name for name in change.delete if name not in there]
    if missing:
        raise WrongUse(f"Invalid config(s): {','.join(missing)}")
    values: dict[str, float | None] = dict.fromkeys(change.delete)
    for name, text in change.add.items():
        try:
            values[name] = float(text)
        except ValueError:
            raise WrongUse(f"Cannot parse quota configuration value for {name}: {text}") from None
    admin.alter_client_quotas({entity: values})


def _quotas(admin: Admin, whose: list[Entity]) -> dict[QuotaEntity, dict[str, float]]:
    wanted = QuotaEntity(**{FIELDS[kind]: ANY if name is None else name for kind, name in whose})
    return admin.describe_client_quotas(wanted, strict=True)


def _in_words(entity: QuotaEntity) -> str:
    named = [(WORDS[field], name) for field, name in entity._asdict().items() if name is not None]
    return ", ".join(f"{word} '{name}'" if name else f"the default {word}" for word, name in named)


def java_double(value: float) -> str:
    """As Java prints it: 10.0, 1.048576E7."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(float(value))
    digits, _, exponent = f"{value:.17e}".partition("e")
    for precision in range(17):
        digits, _, exponent = f"{value:.{precision}e}".partition("e")
        if float(f"{digits}e{exponent}") == value:
            break
    return f"{digits if '.' in digits else digits + '.0'}E{int(exponent)}"
