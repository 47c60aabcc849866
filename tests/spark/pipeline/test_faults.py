"""A routing file that changes under a running pipeline, and checkpoints that are not its own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from eventually import eventually
from warehouse_nasty import Nasty
from warehouse_ods import send_all
from warehouse_pipeline import PipelineProcess
from warehouse_topics import output_rows, topic_names

from barnabas import Admin

FACT = '[tables.{}]\nkind = "fact"\n'
DIMENSION = '[tables.{}]\nkind = "dimension"\n'
WITH_MISTAKES = '[tables.cart_info]\nkind = "fakt"\n[tables.order_info]\nkind = "fact"\nkeys = ["id"]\n'


class Sent:
    """Changes of three tables, numbered."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.count = 0

    def more(self, number: int = 50) -> None:
        send_all(
            self.bootstrap,
            [self._next(table) for _ in range(number) for table in ("order_info", "cart_info", "base_x")],
        )

    def _next(self, table: str) -> Nasty:
        self.count += table == "order_info"
        change = {"database": "gmall", "table": table, "type": "insert", "ts": 1, "data": {"id": max(self.count, 1)}}
        return Nasty("ods_base_db", b"one partition", json.dumps(change).encode())


def ids(bootstrap: str, topic: str) -> list[int]:
    """In the order of the ODS partition, since all have one source; sorted, because they go to several partitions."""
    if topic not in topic_names(bootstrap):
        return []
    return sorted(int(row.key or b"0") for row in output_rows(bootstrap, [topic]))


def test_a_routing_file_that_changes(broker: BarnabasProcess, tmp_path: Path) -> None:
    """With mistakes: all are listed and the old one stays. Without: it holds for the next record that comes."""
    routing = tmp_path / "routing.toml"
    routing.write_text(FACT.format("order_info"))
    sent = Sent(broker.bootstrap)
    with PipelineProcess(tmp_path, broker.bootstrap, "--routing", str(routing)) as pipeline:
        pipeline.start()
        pipeline.wait_for("runs on", 240)
        sent.more()
        pipeline.wait_for(r"batch \d+:", 240)  # an empty first batch is not printed
        replace(routing, WITH_MISTAKES)
        told = pipeline.wait_for(r"(?s)the routing file has errors.*is unchanged", 120)
        assert "fakt" in told or "kind must be" in told
        assert "there is no option 'keys', did you mean key?" in told
        sent.more()
        eventually(lambda: ids(broker.bootstrap, "dwd_order_info"), lambda found: len(found) == sent.count, timeout=120)
        before = sent.count
        replace(routing, FACT.format("order_info") + FACT.format("cart_info") + DIMENSION.format("base_x"))
        sent.more(5)
        pipeline.wait_for(r"new routing: .*routing.toml is used from batch \d+ on", 120)
        eventually(lambda: ids(broker.bootstrap, "dwd_order_info"), lambda found: len(found) == sent.count, timeout=120)
        assert pipeline.stop(120) == 0, pipeline.printed()[-2000:]
    assert ids(broker.bootstrap, "dwd_order_info") == list(range(1, sent.count + 1))
    carts = ids(broker.bootstrap, "dwd_cart_info")
    assert carts == list(range(before + 1, sent.count + 1)), "from the first record after the change on"
    assert ids(broker.bootstrap, "dim_base_x") == carts
    assert len(re.findall("no route for changes of gmall.cart_info: ", pipeline.printed())) == 1


def test_a_new_routing_whose_topics_cannot_be_created(broker: BarnabasProcess, tmp_path: Path) -> None:
    """The batch fails instead of dropping rows of the new table; started again, it writes them."""
    routing = tmp_path / "routing.toml"
    routing.write_text(FACT.format("order_info"))
    sent = Sent(broker.bootstrap)
    with PipelineProcess(tmp_path, broker.bootstrap, "--routing", str(routing)) as pipeline:
        pipeline.start()
        pipeline.wait_for("runs on", 240)
        sent.more(5)
        pipeline.wait_for(r"batch \d+:", 240)
        with Admin(broker.bootstrap) as admin:
            admin.create_topic("dwd.cart_info", 1)  # no topic dwd_cart_info beside it: their metrics would collide
            replace(routing, FACT.format("order_info") + FACT.format("cart_info"))
            sent.more(5)
            assert pipeline.wait(240) == 1
            assert "the topics of the new routing cannot be created" in pipeline.printed()
            admin.delete_topic("dwd.cart_info")
        pipeline.run_once()
    assert ids(broker.bootstrap, "dwd_order_info") == list(range(1, 11))
    assert ids(broker.bootstrap, "dwd_cart_info") == list(range(6, 11))


def test_a_checkpoint_of_another_query(broker: BarnabasProcess, tmp_path: Path) -> None:
    """Refused before Spark is started, with words that say what to do."""
    with PipelineProcess(tmp_path, broker.bootstrap, "--name", "first") as pipeline:
        pipeline.checkpoint.mkdir()
        (pipeline.checkpoint / "metadata").write_text('{"id":"0f0f"}')
        assert pipeline.start("--once").wait(60) == 2
        assert "is the checkpoint of a query that is not a pipeline" in pipeline.printed()
        (pipeline.checkpoint / "metadata").unlink()
        (pipeline.checkpoint / "owner.json").write_text('{"name": "second"}')
        assert pipeline.start("--once").wait(60) == 2
        assert "use --name second" in pipeline.printed()


@pytest.mark.soak
def test_a_checkpoint_of_another_cluster(tmp_path: Path) -> None:
    """Its offsets mean nothing here: the topics have the same names and are others."""
    with BarnabasProcess(tmp_path / "one") as one, PipelineProcess(tmp_path, one.bootstrap) as pipeline:
        pipeline.command_of("generate", "--count", "500")
        pipeline.run_once()
    with BarnabasProcess(tmp_path / "two") as two, PipelineProcess(tmp_path, two.bootstrap) as pipeline:
        pipeline.command_of("generate", "--count", "500")
        assert pipeline.start("--once").wait(240) == 1
        assert "was deleted and recreated since the last batch" in pipeline.printed()[-3000:]


def replace(path: Path, text: str) -> None:
    """As editors do; and with another time of change, however coarse the clock of the file system is."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)
