"""What topics are as tables, by all the routings that ever held."""

from barnabas.pipeline.routing import parse_routing
from barnabas.pipeline.tables.query import table_specs
from barnabas.pipeline.tables.rows import TableSpec


def test_logs_are_always_there() -> None:
    assert table_specs([])["dwd_error_log"] == TableSpec("log")


def test_tables_of_an_old_routing_stay() -> None:
    old = parse_routing('[tables.a]\nkind = "fact"\n[tables.b]\nkind = "dimension"\n')
    new = parse_routing('[tables.b]\nkind = "dimension"\nkey = ["x", "y"]\n')
    specs = table_specs([old, new])
    assert specs["dwd_a"] == TableSpec("fact", ("id",))
    assert specs["dim_b"] == TableSpec("dimension", ("x", "y"))


def test_a_topic_of_several_tables_has_no_key_of_its_own() -> None:
    routing = parse_routing('[tables.a]\nkind = "fact"\ntopic = "t"\n[tables.b]\nkind = "fact"\ntopic = "t"\n')
    assert table_specs([routing])["t"] == TableSpec("fact", ())
