"""`kafka-features.sh`: feature levels of a cluster, and changing them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, no_arguments
from barnabas.cli.exit_status import FAILED
from barnabas.cli.kafka.releases import (
    METADATA,
    feature_levels,
    level_text,
    metadata_level,
    parsed_level,
    print_dependencies,
    print_mapping,
)
from barnabas.cli.kafka.subcommands import tool_main, with_admin

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.errors import KafkaError

WORDS = {"upgrade": "upgraded", "downgrade": "downgraded", "disable": "disabled"}


def change_arguments(parser: argparse.ArgumentParser, *, releases: bool = True, unsafe: bool = True) -> None:
    parser.add_argument("--feature", action="append", default=[], metavar="FEATURE=LEVEL", help="repeatable")
    parser.add_argument("--dry-run", action="store_true", help="only check whether it would work")
    if releases:
        parser.add_argument("--metadata", metavar="RELEASE", help="deprecated: metadata.version by its name")
        parser.add_argument("--release-version", metavar="RELEASE", help="all features as in this release")
    if unsafe:
        parser.add_argument("--unsafe", action="store_true", help="even if metadata is lost")


def mapping_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release-version", metavar="RELEASE")


def dependency_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--feature", action="append", required=True, metavar="FEATURE=LEVEL", help="repeatable")


def _describe(admin: Admin, options: argparse.Namespace) -> None:
    described = admin.describe_features()
    epoch = "-" if described.finalized_epoch is None else described.finalized_epoch
    for name in sorted(described.supported):
        lowest, highest = described.supported[name]
        level = described.finalized[name].max_version if name in described.finalized else 0
        cells = [
            f"Feature: {name}",
            f"SupportedMinVersion: {level_text(name, lowest)}",
            f"SupportedMaxVersion: {level_text(name, highest)}",
            f"FinalizedVersionLevel: {level_text(name, level)}",
            f"Epoch: {epoch}",
        ]
        print("\t".join(cells))


def _levels(options: argparse.Namespace) -> dict[str, int]:
    if options.command == "disable":
        pairs = [(name.strip(), 0) for name in options.feature]
    else:
        pairs = [parsed_level(text) for text in options.feature]
        if options.release_version and (pairs or options.metadata):
            raise Refused("Can not specify `release-version` with other feature flags.")
        if options.release_version:
            levels = feature_levels(options.release_version) | {METADATA: metadata_level(options.release_version)}
            pairs = [(name, level) for name, level in levels.items() if level or options.command == "downgrade"]
        if options.metadata:
            print(" `metadata` flag is deprecated and may be removed in a future release.")
            pairs.insert(0, (METADATA, metadata_level(options.metadata)))
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise Refused(f"Feature {name} was specified more than once.")
    if not pairs:
        raise Refused(f"You must specify at least one feature to {options.command}")
    return dict(sorted(pairs))


def _change(admin: Admin, options: argparse.Namespace) -> int | None:
    from barnabas.cli.kafka.connection import kafka_text

    levels = _levels(options)
    failed = _update(admin, levels, options)
    for name, level in levels.items():
        target = "" if options.command == "disable" else f" to {level}"
        if name in failed:
            could = "Can not" if options.dry_run else "Could not"
            print(f"{could} {options.command} {name}{target}. {kafka_text(failed[name])}")
        else:
            print(f"{name} {'can be' if options.dry_run else 'was'} {WORDS[options.command]}{target}.")
    if failed:
        print(f"{len(failed)} out of {len(levels)} operation(s) failed.", file=sys.stderr)
        return FAILED
    return None


def _update(admin: Admin, levels: Mapping[str, int], options: argparse.Namespace) -> dict[str, KafkaError]:
    """The features that could not be changed; a refusal without names concerns all of them."""
    from barnabas.client.admin import AdminError
    from barnabas.client.admin.types import FeatureUpdate, FeatureUpgradeType
    from barnabas.errors import ErrorCode, KafkaError

    kind = FeatureUpgradeType.UPGRADE
    if options.command != "upgrade":
        kind = FeatureUpgradeType.UNSAFE_DOWNGRADE if options.unsafe else FeatureUpgradeType.SAFE_DOWNGRADE
    updates = {name: FeatureUpdate(max_version_level=level, upgrade_type=kind) for name, level in levels.items()}
    try:
        admin.update_features(updates, validate_only=options.dry_run)
    except AdminError as error:
        return error.errors
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise
        return dict.fromkeys(levels, error)
    return {}


main = tool_main(
    "kafka-features.sh",
    "This tool manages feature flags in Kafka.",
    (
        Command("describe", "Describes the current active feature flags.", no_arguments, with_admin(_describe)),
        Command(
            "upgrade",
            "Upgrade one or more feature flags.",
            partial(change_arguments, unsafe=False),
            with_admin(_change),
        ),
        Command("downgrade", "Downgrade one or more feature flags.", change_arguments, with_admin(_change)),
        Command(
            "disable",
            "Disable one or more feature flags: the same as downgrading to zero.",
            partial(change_arguments, releases=False),
            with_admin(_change),
        ),
        Command(
            "version-mapping",
            "Features that go with a release.",
            mapping_arguments,
            lambda options: print_mapping(options.release_version),
        ),
        Command(
            "feature-dependencies",
            "What a feature level needs.",
            dependency_arguments,
            lambda options: print_dependencies(options.feature),
        ),
    ),
)
