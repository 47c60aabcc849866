"""What `kafka-acls.sh` does with a cluster: lists, adds and removes the rules that its flags mean."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.cli.kafka.acl_rules import (
    Resource,
    acl_filter,
    binding,
    entry_of,
    entry_text,
    resource_filters,
    wanted_rules,
)
from barnabas.cli.kafka.flags import Options
from barnabas.client.admin import Admin
from barnabas.client.admin.types import AclBinding


def list_rules(admin: Admin, options: Options) -> None:
    found: dict[AclBinding, None] = {}
    filters = [acl_filter(resource, None) for resource in resource_filters(options)]
    for each in filters or [acl_filter(None, None)]:
        found |= dict.fromkeys(admin.describe_acls(each))
    principals = [each.strip() for each in options.values("principal")]
    if not principals:
        _print_rules(found)
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        _print_rules(rule for rule in found if rule.principal == principal)


def _print_rules(rules: Iterable[AclBinding]) -> None:
    by_resource: dict[Resource, list[str]] = {}
    for rule in rules:
        resource = Resource(rule.resource_type, rule.resource_name, rule.pattern_type)
        by_resource.setdefault(resource, []).append(f"\t{entry_text(entry_of(rule))}")
    for resource, entries in by_resource.items():
        print(f"Current ACLs for resource `{resource}`:")
        print("\n".join(sorted(entries)) + "\n")


def add(admin: Admin, options: Options) -> None:
    for resource, entries in wanted_rules(options).items():
        print(f"Adding ACLs for resource `{resource}`: ")
        print(" " + "\n".join(f"\t{entry_text(entry)}" for entry in entries) + "\n")
        admin.create_acls([binding(resource, entry) for entry in entries])


def remove(admin: Admin, options: Options) -> None:
    for resource, entries in wanted_rules(options).items():
        question = f"Are you sure you want to delete all ACLs for resource filter `{resource}`? (y/n)"
        filters = [acl_filter(resource, entry) for entry in entries] or [acl_filter(resource, None)]
        if entries:
            listed = "\n".join(f"\t{entry_text(entry)}" for entry in entries)
            question = f"Are you sure you want to remove ACLs: \n {listed} \n from resource filter `{resource}`? (y/n)"
        if options.has("force") or _agreed(question):
            admin.delete_acls(filters)


def _agreed(question: str) -> bool:
    print(question)
    try:
        return input().strip().lower() == "y"
    except EOFError:
        return False
