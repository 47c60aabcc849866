"""What log directories tell a controller about how their broker stopped."""

import shutil
from pathlib import Path

import pytest
from faulty_files import FaultyFiles

from barnabas.errors import StorageError
from barnabas.storage.broker_epochs import BROKER_EPOCH_FILE
from barnabas.storage.log_directories import LogDirectories


def opened(files: FaultyFiles, *paths: Path) -> LogDirectories:
    directories = LogDirectories([str(path) for path in paths], files=files)
    directories.acquire()
    directories.identify(1, "c")
    directories.load(lambda _: pytest.fail("there are no logs"), 0)
    return directories


def lived_in(files: FaultyFiles, epoch: int, *paths: Path) -> LogDirectories:
    directories = opened(files, *paths)
    directories.epochs.registering()
    directories.epochs.registered(epoch)
    return directories


def test_a_new_directory_knows_nothing(tmp_path: Path) -> None:
    epochs = opened(FaultyFiles(), tmp_path).epochs
    assert (epochs.previous_epoch, epochs.unclean_stop) == (-1, False)
    assert len(epochs.ids) == 1


def test_the_id_of_a_directory_stays_until_it_is_wiped(tmp_path: Path) -> None:
    files, path = FaultyFiles(), tmp_path / "a"
    first = lived_in(files, 5, path)
    first.release()
    second = opened(files, path)
    assert second.epochs.ids == first.epochs.ids
    second.release()
    shutil.rmtree(path)
    assert opened(files, path).epochs.ids != first.epochs.ids


def test_a_directory_without_an_id_gets_one_for_good(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    first = opened(FaultyFiles(), tmp_path)
    first.release()
    assert first.epochs.ids != ("",)
    assert opened(FaultyFiles(), tmp_path).epochs.ids == first.epochs.ids


def test_a_killed_process_has_lost_nothing(tmp_path: Path) -> None:
    files = FaultyFiles()
    lived_in(files, 5, tmp_path).release()
    epochs = opened(files, tmp_path).epochs
    assert (epochs.previous_epoch, epochs.unclean_stop) == (5, False)


def test_a_power_loss_is_unclean(tmp_path: Path) -> None:
    files = FaultyFiles()
    lived_in(files, 5, tmp_path).release()
    files.boots += 1
    assert opened(files, tmp_path).epochs.unclean_stop


def test_a_clean_stop_outlives_the_machine(tmp_path: Path) -> None:
    files = FaultyFiles()
    lived_in(files, 5, tmp_path).shutdown(5)
    files.boots += 1
    epochs = opened(files, tmp_path).epochs
    assert (epochs.previous_epoch, epochs.unclean_stop) == (5, False)


def test_an_old_copy_of_one_directory_shows(tmp_path: Path) -> None:
    files, one, two = FaultyFiles(), tmp_path / "one", tmp_path / "two"
    lived_in(files, 5, one, two).shutdown(5)
    shutil.copytree(one, tmp_path / "copy")
    lived_in(files, 9, one, two).shutdown(9)
    shutil.rmtree(one)
    shutil.move(tmp_path / "copy", one)
    assert opened(files, one, two).epochs.previous_epoch == 5


def test_a_directory_that_is_added_changes_nothing(tmp_path: Path) -> None:
    files, one, two = FaultyFiles(), tmp_path / "one", tmp_path / "two"
    lived_in(files, 5, one).shutdown(5)
    assert opened(files, one, two).epochs.previous_epoch == 5


def test_while_it_registers_the_epoch_is_uncertain(tmp_path: Path) -> None:
    files = FaultyFiles()
    lived_in(files, 5, tmp_path).release()
    killed = opened(files, tmp_path)
    killed.epochs.registering()
    killed.release()
    assert opened(files, tmp_path).epochs.previous_epoch == -1


def test_a_session_lost_is_no_restart(tmp_path: Path) -> None:
    files = FaultyFiles()
    directories = lived_in(files, 5, tmp_path)
    files.boots += 1  # asked of the same process, this says nothing
    assert (directories.epochs.previous_epoch, directories.epochs.unclean_stop) == (5, False)


def test_a_torn_file_is_an_unknown_epoch(tmp_path: Path) -> None:
    files = FaultyFiles()
    lived_in(files, 5, tmp_path).release()
    (tmp_path / BROKER_EPOCH_FILE).write_bytes(b'{"epo')
    epochs = opened(files, tmp_path).epochs
    assert (epochs.previous_epoch, epochs.unclean_stop) == (-1, True)


def test_a_directory_that_is_away_for_a_while_keeps_its_id_and_its_epoch(tmp_path: Path) -> None:
    files, one, two = FaultyFiles(), tmp_path / "one", tmp_path / "two"
    first = lived_in(files, 5, one, two)
    first.shutdown(5)
    shutil.move(two, tmp_path / "away")
    for epoch in (9, 12):
        without = opened(files, one, two)
        assert set(without.epochs.ids) == set(first.epochs.ids)
        assert (without.epochs.previous_epoch, without.epochs.unclean_stop) == (5 if epoch == 9 else 9, False)
        without.epochs.registering()
        without.epochs.registered(epoch)
        without.shutdown(epoch)
    shutil.move(tmp_path / "away", two)
    back = opened(files, one, two)
    assert set(back.epochs.ids) == set(first.epochs.ids)
    assert (back.epochs.previous_epoch, back.epochs.unclean_stop) == (12, False)


def test_an_older_copy_of_a_directory_that_was_away_shows(tmp_path: Path) -> None:
    files, one, two = FaultyFiles(), tmp_path / "one", tmp_path / "two"
    lived_in(files, 3, one, two).shutdown(3)
    shutil.copytree(two, tmp_path / "copy")
    lived_in(files, 5, one, two).shutdown(5)
    shutil.rmtree(two)
    lived_in(files, 9, one, two).shutdown(9)
    shutil.move(tmp_path / "copy", two)
    assert opened(files, one, two).epochs.previous_epoch == 3


def test_a_directory_that_failed_may_have_lost_records_when_it_is_back(tmp_path: Path) -> None:
    files, one, two = FaultyFiles(), tmp_path / "one", tmp_path / "two"
    directories = lived_in(files, 5, one, two)
    directories.directories[1].fail(StorageError("its disk is broken"))
    assert len(directories.epochs.ids) == 2
    directories.epochs.registered(9)
    directories.shutdown(9)
    epochs = opened(files, one, two).epochs
    assert (epochs.previous_epoch, epochs.unclean_stop) == (9, True)


def test_a_wiped_directory_loses_its_id_beside_one_that_is_away(tmp_path: Path) -> None:
    files, one, two, three = FaultyFiles(), tmp_path / "one", tmp_path / "two", tmp_path / "three"
    first = lived_in(files, 5, one, two, three)
    first.shutdown(5)
    shutil.rmtree(two)
    two.mkdir()
    shutil.move(three, tmp_path / "away")
    assert len(set(opened(files, one, two, three).epochs.ids) & set(first.epochs.ids)) == 1
