"""Spark that starts in half the time, for tests of what it does, not of how fast.

Two things take most of a start, and both are left out by what is in the environment (`quick_start`):
- Spark gives its Python processes PySpark as a zip of sources, which each of them compiles anew. In a SPARK_HOME
  without that zip they import the PySpark that is installed, which is compiled.
- Its JVM loads some ten thousand classes. An archive that an earlier session left has them ready (`archived_classes`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / ".build"
HOME = BUILD / "spark-home"
CLASS_ARCHIVES = BUILD / "class-archives"
# No session of a test lives long enough for the optimising compiler.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:cds=off -Xlog:cds+dynamic=off"


def quick_start() -> dict[str, str]:
    """The environment for a process with a Spark of its own."""
    archive = class_archive()
    options = f"{JVM} -XX:SharedArchiveFile={archive}" if archive.exists() else JVM
    return {"SPARK_HOME": str(home_without_zip()), "SPARK_SUBMIT_OPTS": options, "SPARK_LAUNCHER_OPTS": JVM}


def class_archive() -> Path:
    import pyspark

    return CLASS_ARCHIVES / f"spark-{pyspark.__version__}.jsa"


def home_without_zip() -> Path:
    """Always the same one: an archive holds for the jars of one path."""
    import pyspark

    HOME.mkdir(parents=True, exist_ok=True)
    for name in ("bin", "jars"):
        link, target = HOME / name, Path(pyspark.__file__).with_name(name)
        if not link.exists() or not link.samefile(target):
            fresh = link.with_name(f"{name}.{os.getpid()}")
            fresh.symlink_to(target)
            fresh.replace(link)
    return HOME


@contextlib.contextmanager
def archived_classes() -> Iterator[None]:
    """Around a session from its start to its end. If there is no archive, it leaves one: the first worker's, if several
    share the tests, because that takes half a minute.
    """
    archive = class_archive()
    if archive.exists() or os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        yield
        return
    from pyspark import SparkContext

    CLASS_ARCHIVES.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(f".{os.getpid()}")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{JVM} -XX:ArchiveClassesAtExit={fresh}"
    yield
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()  # which ends the JVM; it writes the archive then
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None
    if fresh.exists():
        fresh.replace(archive)
