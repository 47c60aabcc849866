"""One Spark for all tests here, and one broker; every test has topics of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent import make_topic
from confluent_kafka.admin import AdminClient
from spark_start import maybe_archive_classes, quick_start

from barnabas.testing import Broker

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.streaming.pollingDelay": "5ms",
    "spark.sql.session.timeZone": "UTC",
    "spark.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            # Plain functions in a query make PySpark import pandas, of which it knows no version as new as this one.
            item.add_marker(pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas"))


def why_no_spark() -> str | None:
    java = os.environ.get("JAVA_HOME")
    command = f"{java}/bin/java" if java else shutil.which("java")
    if command is None or not Path(command).exists():
        return "Spark needs Java 17 or later, and there is none"
    told = subprocess.run([command, "-version"], check=False, capture_output=True, text=True).stderr
    version = told.split('"')[1].split(".")[0].split("-")[0] if '"' in told else "0"
    return None if int(version) >= 17 else f"Spark needs Java 17 or later, this is {version}"


@pytest.fixture(scope="session", autouse=True)
def quick_spark() -> None:
    """For the session of these tests, and for the pipelines that some start."""
    os.environ.update(quick_start())
    if why_no_spark() is None:
        maybe_archive_classes()
        os.environ.update(quick_start())


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, quick_spark: None) -> Iterator[Any]:
    reason = why_no_spark()
    if reason is not None:
        pytest.skip(reason)
    from pyspark.sql import SparkSession

    from barnabas.spark import register

    os.environ["PYSPARK_PYTHON"] = sys.executable
    source = Path(__file__).parents[2] / "src"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(source), os.environ.get("PYTHONPATH")]))
    # Two cores, and two attempts for a task.
    builder = SparkSession.builder.master("local[2,2]").appName("barnabas tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    place = tmp_path_factory.mktemp("spark")
    builder = builder.config("spark.local.dir", str(place)).config("spark.sql.warehouse.dir", str(place))
    session = builder.getOrCreate()
    register(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


@pytest.fixture(scope="session")
def bootstrap(broker: Broker) -> str:
    return broker.bootstrap


@pytest.fixture(scope="session")
def judge(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{test[:60]}.{os.urandom(4).hex()}"


@pytest.fixture
def new_topic(judge: AdminClient, name: str) -> Callable[..., str]:
    made: list[str] = []

    def make(partitions: int = 1, **config: str) -> str:
        made.append(make_topic(judge, f"{name}.{len(made)}", partitions, config))
        return made[-1]

    return make
