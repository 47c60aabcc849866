"""Offsets of a source translated to those of its copy."""

import random

from barnabas.cli.mirror.translation import MAX_RUNS, Run, Translation


def test_every_offset_has_its_place() -> None:
    translation = Translation()
    for source, target in ((100, 0), (101, 1), (105, 3), (106, 4)):
        translation.add(Run(source, target))
    wanted = {99: None, 100: 0, 101: 1, 102: 3, 104: 3, 105: 3, 106: 4, 107: 5, 108: None}
    assert {each: translation.target_of(each) for each in wanted} == wanted


def test_records_read_again_change_nothing() -> None:
    translation = Translation()
    translation.add(Run(0, 0, 10))
    translation.add(Run(5, 50))
    assert translation.target_of(5) == 5


def test_nothing_copied() -> None:
    assert Translation().target_of(0) is None


def test_thinned_runs_translate_to_earlier_offsets_never_to_later_ones() -> None:
    translation = Translation()
    count = 2 * MAX_RUNS
    for number in range(count):
        translation.add(Run(3 * number, 2 * number))
    for number in range(count):
        target = translation.target_of(3 * number)
        assert target is not None and target <= 2 * number, number
        if number > count - MAX_RUNS // 2:
            assert target == 2 * number
    assert len(translation._runs) <= MAX_RUNS


def test_against_a_plain_list() -> None:
    for seed in range(30):
        chance = random.Random(seed)
        translation, copied = Translation(), []
        source = target = chance.randint(0, 50)
        for _ in range(chance.randint(1, 200)):
            source += 1 if chance.random() < 0.7 else chance.randint(2, 5)
            target += 1 if chance.random() < 0.8 else 2
            translation.add(Run(source, target))
            copied.append((source, target))
        for committed in range(copied[0][0], copied[-1][0] + 1):
            expected = next(there for here, there in copied if here >= committed)
            assert translation.target_of(committed) == expected, (seed, committed)
