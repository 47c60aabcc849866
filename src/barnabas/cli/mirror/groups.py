"""Committed offsets of the source's groups, translated and committed in the target, so that a group can move there.

A group that has members in the target is left alone, and no offset goes back: whoever reads there has the last word.
"""

import re
from collections.abc import Iterable, Mapping

from barnabas.cli.mirror.progress import PREFIX, Translations
from barnabas.client.admin import Admin
from barnabas.client.admin.types import GroupState
from barnabas.types import TopicPartition

IDLE = (GroupState.EMPTY, GroupState.DEAD)


def synchronize_groups(
    source: Admin, target: Admin, pattern: re.Pattern[str], topic_of: Mapping[str, str], translations: Translations
) -> dict[str, dict[TopicPartition, int]]:
    """What was committed in the target, by group."""
    names = [name for name in source.list_groups() if _takes(pattern, name)]
    if not names:
        return {}
    busy = {name for name, group in target.list_groups().items() if group.state not in IDLE}
    moved: dict[str, dict[TopicPartition, int]] = {}
    for group, offsets in source.list_groups_offsets(dict.fromkeys(names)).items():
        if group in busy:
            continue
        committed = {key: stored.offset for key, stored in offsets.items() if stored is not None}
        wanted = _translated(committed, topic_of, translations)
        ahead = _ahead(target, group, wanted)
        if ahead:
            target.alter_group_offsets(group, ahead)
            moved[group] = ahead
    return moved


def _takes(pattern: re.Pattern[str], group: str) -> bool:
    return pattern.fullmatch(group) is not None and not group.startswith(PREFIX)


def _translated(
    committed: Mapping[TopicPartition, int], topic_of: Mapping[str, str], translations: Translations
) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for key, offset in committed.items():
        if key.topic in topic_of and key in translations:
            target = translations[key].target_of(offset)
            if target is not None:
                found[TopicPartition(topic_of[key.topic], key.partition)] = target
    return found


def _ahead(target: Admin, group: str, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    if not wanted:
        return {}
    now = _stored(target, group, wanted)
    return {key: offset for key, offset in wanted.items() if offset > now.get(key, -1)}


def _stored(target: Admin, group: str, keys: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    offsets = target.list_group_offsets(group, keys)
    return {key: stored.offset for key, stored in offsets.items() if stored is not None}
