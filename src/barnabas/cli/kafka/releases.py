"""Releases of Kafka: which level of each feature goes with which, and how levels of metadata.version are called.

For `kafka-features.sh` and `kafka-storage.sh`; facts of Kafka 4.1.
"""

from __future__ import annotations

from barnabas.cli.command import Refused

METADATA = "metadata.version"
FIRST_LEVEL = 7
# Release -> its internal versions: the levels of metadata.version count through them all.
_INTERNAL_VERSIONS = {
    "3.3": range(3, 4),
    "3.4": range(1),
    "3.5": range(3),
    "3.6": range(3),
    "3.7": range(5),
    "3.8": range(1),
    "3.9": range(1),
    "4.0": range(4),
    "4.1": range(2),
    "4.2": range(2),
}
_NAMES = [f"{release}-IV{each}" for release, versions in _INTERNAL_VERSIONS.items() for each in versions]
METADATA_LEVELS = {name: FIRST_LEVEL + index for index, name in enumerate(_NAMES)}
LATEST = "4.1-IV1"
# Feature -> the level of metadata.version from which on a level of it is the default.
_DEFAULTS = {
    "kraft.version": {21: 1},
    "transaction.version": {24: 2},
    "group.version": {22: 1},
    "eligible.leader.replicas.version": {26: 1},
    "share.version": {28: 1},
    "streams.version": {29: 1},
}
_LEVELS = {"transaction.version": 2}
_REQUIRES = {("eligible.leader.replicas.version", 1): {METADATA: 23}}


def metadata_level(release: str) -> int:
    """`4.1-IV1`, or `4.1`: the last of that release."""
    if release in METADATA_LEVELS:
        return METADATA_LEVELS[release]
    of_release = [level for name, level in METADATA_LEVELS.items() if name.partition("-")[0] == release]
    if not of_release:
        raise Refused(f"Unknown release version '{release}'. Supported versions are: {_NAMES[0]} to {LATEST}")
    return max(of_release)


def level_text(feature: str, level: int) -> str:
    """Levels of metadata.version have names."""
    if feature != METADATA:
        return str(level)
    return next((name for name, each in METADATA_LEVELS.items() if each == level), f"UNKNOWN [{level}]")


def feature_levels(release: str) -> dict[str, int]:
    """Of all features besides metadata.version, in Kafka's order."""
    metadata = metadata_level(release)
    return {
        feature: max([0, *(level for since, level in levels.items() if metadata >= since)])
        for feature, levels in _DEFAULTS.items()
    }


def print_mapping(release: str | None) -> None:
    chosen = release or LATEST
    levels = feature_levels(chosen)
    print(f"{METADATA}={metadata_level(chosen)} ({chosen})")
    for feature, level in levels.items():
        print(f"{feature}={level}")


def print_dependencies(features: list[str]) -> None:
    for text in features:
        feature, level = parsed_level(text)
        if feature == METADATA:
            if level not in METADATA_LEVELS.values():
                raise Refused(f"Unknown metadata.version {level}")
            print(f"{feature}={level} ({level_text(feature, level)}) has no dependencies.")
            continue
        if feature not in _DEFAULTS:
            raise Refused(f"Unknown feature: {feature}")
        if not 0 <= level <= _LEVELS.get(feature, 1):
            raise Refused(f"No feature:{feature} with feature level {level}")
        needed = _REQUIRES.get((feature, level))
        if needed is None:
            print(f"{feature}={level} has no dependencies.")
            continue
        print(f"{feature}={level} requires:")
        for other, least in needed.items():
            print(f"    {other}={least} ({level_text(other, least)})")


def parsed_level(text: str) -> tuple[str, int]:
    feature, equals, level = text.partition("=")
    if not equals:
        raise Refused(f"Can't parse feature=level string {text}: equals sign not found.")
    try:
        return feature.strip(), int(level)
    except ValueError:
        raise Refused(f"Can't parse feature=level string {text}: unable to parse {level} as a short.") from None
