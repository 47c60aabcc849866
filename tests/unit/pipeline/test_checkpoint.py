"""A checkpoint belongs to one pipeline."""

from pathlib import Path

import pytest

from barnabas.pipeline.checkpoint import CheckpointError, claim_checkpoint


def test_a_checkpoint_keeps_its_name(tmp_path: Path) -> None:
    checkpoint = str(tmp_path / "a new one")
    claim_checkpoint(checkpoint, "orders")
    claim_checkpoint(checkpoint, "orders")
    with pytest.raises(CheckpointError, match=r"checkpoint of pipeline orders, not of others.*--name orders"):
        claim_checkpoint(checkpoint, "others")
    claim_checkpoint(checkpoint, "orders")


def test_the_checkpoint_of_another_query_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"some query"}')
    with pytest.raises(CheckpointError, match="not a pipeline"):
        claim_checkpoint(str(tmp_path), "orders")
    assert [path.name for path in tmp_path.iterdir()] == ["metadata"]


def test_a_pipeline_of_before_there_were_owners_is_known_by_its_routing(tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text('{"id":"this query"}')
    (tmp_path / "routing").mkdir()
    claim_checkpoint(str(tmp_path), "orders")
    with pytest.raises(CheckpointError):
        claim_checkpoint(str(tmp_path), "others")
