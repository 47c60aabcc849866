"""Spark that starts in half the time, for tests of what it does, not of how fast.

Two things take most of a start, and both are left out by what is in the environment (`quick_start`):
- Spark gives its Python processes PySpark as a zip of sources, which each of them compiles again. In a SPARK_HOME
  without that zip they import the PySpark that is installed, which is compiled.
- Its JVM loads some ten thousand classes. An archive has them ready (`maybe_archive_classes`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / ".build"
HOME = BUILD / "spark-home"
CLASS_ARCHIVES = BUILD / "class-archives"
# No session of a test lives long enough for the optimising compiler.
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:cds=off -Xlog:cds+dynamic=off"


SESSION = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.driver.extraJavaOptions", sys.argv[1]).getOrCreate()
spark.range(3).selectExpr("id + 1").collect()
gateway = spark.sparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()  # which ends the JVM, and then it writes the archive
gateway.proc.wait()
"""


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


def maybe_archive_classes() -> None:
    """Once, in half a minute; by the first worker, if several share the tests."""
    archive = class_archive()
    if archive.exists() or os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        return
    CLASS_ARCHIVES.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(f".{os.getpid()}")
    subprocess.run([sys.executable, "-c", SESSION, f"-XX:ArchiveClassesAtExit={fresh}"], env=os.environ, check=False)
    if fresh.exists():
        fresh.replace(archive)
