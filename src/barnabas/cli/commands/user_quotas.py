"""`barnabas user quota`: shows quotas of users, clients and addresses, or changes them."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.cli.command import UsageError, key_values
from barnabas.cli.output import Output, rows_output

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import QuotaEntity

DEFAULT_TEXT = "(default)"


def quota_arguments(parser: argparse.ArgumentParser) -> None:
    whom = parser.add_argument_group("for whom (a user, a client id, both, or an address)")
    for kind, word, option in (("user", "NAME", "user"), ("client_id", "ID", "client"), ("ip", "ADDRESS", "ip")):
        either = whom.add_mutually_exclusive_group()
        either.add_argument(f"--{kind.replace('_', '-')}", metavar=word, help="when shown, * matches every name")
        either.add_argument(
            f"--{option}-defaults", dest=kind, action="store_const", const="", help="those without one of their own"
        )
    parser.add_argument(
        "--set",
        metavar="QUOTA=NUMBER",
        action="append",
        default=[],
        help="producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; of addresses "
        "connection_creation_rate; repeatable",
    )
    parser.add_argument("--unset", metavar="QUOTA", action="append", default=[], help="remove it; repeatable")
    parser.add_argument("--dry-run", action="store_true", help="have it checked, change nothing")


def quota(admin: "Admin", options: argparse.Namespace) -> Output:
    """Shows quotas, or changes those of one entity."""
    from barnabas.client.admin.types import QuotaEntity

    entity = QuotaEntity(user=options.user, client_id=options.client_id, ip=options.ip)
    changes = _quota_changes(options)
    if changes and entity == QuotaEntity():
        raise UsageError("say for whom: --user, --client-id, --ip or their defaults")
    if changes and "*" in entity:
        raise UsageError("a quota is for one name or the default; * matches names only where quotas are shown")
    if options.dry_run and not changes:
        raise UsageError("--dry-run is for --set and --unset")
    if not changes:
        return _quotas(options, admin.describe_client_quotas(entity))
    admin.alter_client_quotas({entity: changes}, validate_only=options.dry_run)
    line = "dry run, nothing changed" if options.dry_run else f"changed {', '.join(changes)}"
    return Output([{**entity._asdict(), "changed": changes, "dry_run": options.dry_run}], [line])


def _quota_changes(options: argparse.Namespace) -> dict[str, float | None]:
    changes: dict[str, float | None] = dict.fromkeys(options.unset)
    for name, text in key_values(options.set, "--set").items():
        if name in changes:
            raise UsageError(f"--set {name} and --unset {name} contradict each other")
        try:
            changes[name] = float(text)
        except ValueError:
            raise UsageError(f"--set {name}={text}: expected a number") from None
    return changes


def _quotas(options: argparse.Namespace, quotas: "Mapping[QuotaEntity, Mapping[str, float]]") -> Output:
    rows: list[tuple[object, ...]] = []
    for entity in sorted(quotas, key=lambda entity: [part or "" for part in entity]):
        parts = entity if options.json else [DEFAULT_TEXT if part == "" else part for part in entity]
        for name, value in sorted(quotas[entity].items()):
            rows.append((*parts, name, int(value) if value.is_integer() else value))
    return rows_output(("user", "client_id", "ip", "quota", "value"), rows)
