"""`barnabas config`: settings of topics, brokers, groups: get, set, unset."""

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import Command, UsageError, key_values, noun_main, with_admin
from barnabas.cli.exit_status import complain
from barnabas.cli.numbers import NumberError, int32
from barnabas.cli.output import Output, Table

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import ConfigEntry, ConfigResource

KINDS = ("topic", "broker", "group", "client-metrics", "broker-logger")
ALL_BROKERS = "all"


def _add_resource(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, help="what the settings belong to")
    parser.add_argument("name", metavar="NAME", help=f"its name or broker id; `{ALL_BROKERS}` is all brokers")


def get_arguments(parser: argparse.ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("keys", metavar="KEY", nargs="*", help="only these settings")
    parser.add_argument("--all", action="store_true", help="settings that are at their default too")
    parser.add_argument("--docs", action="store_true", help="with what each setting means")


def get(admin: "Admin", options: argparse.Namespace) -> "list[ConfigEntry]":
    from barnabas.cli.commands.setting_names import in_words, known_settings

    resource = _resource(options)
    config = admin.describe_config(resource, names=options.keys or None, include_documentation=options.docs)
    unknown = [key for key in options.keys if key not in config]
    if unknown:
        names = in_words(unknown, known_settings(admin, [resource]))
        raise UsageError(f"{options.kind} {options.name} has no setting {names}")
    everything = options.all or options.keys
    return [config[name] for name in sorted(config) if everything or not config[name].is_default]


def render_settings(options: argparse.Namespace, entries: "list[ConfigEntry]") -> Output:
    headers = ["SETTING", "VALUE", "SOURCE"] + (["MEANING"] if options.docs else [])
    rows = []
    for entry in entries:
        value = "(hidden)" if entry.is_sensitive else entry.value
        row = [entry.name, "(empty)" if value == "" else value, entry.source.name.lower().replace("_", " ")]
        rows.append(row + ([" ".join((entry.documentation or "").split())] if options.docs else []))
    return Output(entries, [Table(headers, rows)])


def set_arguments(parser: argparse.ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("pairs", metavar="KEY=VALUE", nargs="+")
    parser.add_argument("--append", action="store_true", help="add the values to lists instead")
    parser.add_argument("--subtract", action="store_true", help="take the values from lists instead")
    parser.add_argument("--dry-run", action="store_true", help="have it checked, change nothing")


def set_values(admin: "Admin", options: argparse.Namespace) -> list[str]:
    if options.append and options.subtract:
        raise UsageError("--append and --subtract contradict each other")
    values = key_values(options.pairs, "set")
    resource = _resource(options)
    if options.kind == "broker":
        _warn_of_typos(options, admin, resource, values)
    admin.alter_config(
        resource,
        None if options.append or options.subtract else values,
        append=values if options.append else None,
        subtract=values if options.subtract else None,
        validate_only=options.dry_run,
    )
    return list(values)


def _warn_of_typos(
    options: argparse.Namespace, admin: "Admin", resource: "ConfigResource", names: Iterable[str]
) -> None:
    """A broker keeps what it does not know, for plug-ins; a topic refuses it."""
    from barnabas.cli.commands.setting_names import in_words, known_settings, unknown_settings

    known = known_settings(admin, [resource])
    unknown = unknown_settings(names, known)
    if unknown:
        complain(f"barnabas config {options.command.name}: warning: brokers know no setting {in_words(unknown, known)}")


def unset_arguments(parser: argparse.ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("keys", metavar="KEY", nargs="+")
    parser.add_argument("--dry-run", action="store_true", help="have it checked, change nothing")


def unset(admin: "Admin", options: argparse.Namespace) -> list[str]:
    from barnabas.cli.commands.setting_names import check_settings

    resource = _resource(options)
    check_settings(admin, [resource], options.keys, f"{options.kind} {options.name} has")
    admin.alter_config(resource, delete=options.keys, validate_only=options.dry_run)
    return list(options.keys)


def render_changed(options: argparse.Namespace, names: list[str]) -> Output:
    verb = options.command.name
    line = f"{options.kind} {options.name}: {verb} {', '.join(names)}"
    done: dict[str, Any] = {"kind": options.kind, "name": options.name, verb: names, "dry_run": options.dry_run}
    return Output([done], ["dry run, nothing changed" if options.dry_run else line])


def _resource(options: argparse.Namespace) -> "ConfigResource":
    from barnabas.client.admin.types import ConfigResource, ConfigResourceType

    kind = ConfigResourceType[options.kind.replace("-", "_").upper()]
    if kind is ConfigResourceType.BROKER and options.name == ALL_BROKERS:
        return ConfigResource.broker()
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER) and not _is_broker_id(options.name):
        raise UsageError(f"{options.name}: expected a broker id (or `{ALL_BROKERS}`)")
    return ConfigResource(kind, options.name)


def _is_broker_id(text: str) -> bool:
    try:
        return int32(text) >= 0
    except NumberError:
        return False


VERBS = (
    Command(
        "get",
        "show settings; those that differ from the default, unless asked for more",
        get_arguments,
        with_admin(get),
        render_settings,
    ),
    Command("set", "give settings a value", set_arguments, with_admin(set_values), render_changed),
    Command("unset", "put settings back to their default", unset_arguments, with_admin(unset), render_changed),
)

main = noun_main("config", "Settings of topics, brokers and groups.", VERBS)
