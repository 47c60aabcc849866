#!/usr/bin/env bash
# Brings in Spark's official Kafka connector with the PySpark that it was made for: .build/spark40 (a virtual
# environment of its own) and .build/spark-jars. Called by the tests and benchmarks that compare with it, so that an
# ordinary run does not pay for some 500 MB. Quick when all is there.
# Whatever cannot be had is named in one line and the exit status stays 0: what needs it skips and says why.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/.build
needed=$here/spark
python=${PYTHON:-python3}
mkdir -p "$build"

say() { echo "foreign: $*"; }
have() { command -v "$1" >/dev/null 2>&1; }

stamp() { cat "$needed/pom.xml" "$needed/requirements.txt" | cksum | tr -d ' \n'; }

[ "$(cat "$build/spark.stamp" 2>/dev/null)" = "$(stamp)" ] && exit 0
if ! have java || ! have mvn; then
  say "Java or Maven is missing; what compares with Spark's official connector will skip"
  exit 0
fi

# The jars of Hadoop, Scala and logging come with PySpark.
copy_jars() {
  mvn -q -B -f "$needed/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DexcludeGroupIds=org.apache.hadoop,org.scala-lang,org.slf4j -DoutputDirectory="$build/spark-jars"
}

make_environment() {
  "$python" -m venv "$build/spark40" &&
    "$build/spark40/bin/python" -m pip install --quiet --disable-pip-version-check -r "$needed/requirements.txt"
}

say "installing PySpark and Spark's official Kafka connector into .build (some minutes, once)"
rm -rf "$build/spark40" "$build/spark-jars" "$build/spark.stamp"
if { copy_jars && make_environment; } >"$build/spark.log" 2>&1; then
  stamp >"$build/spark.stamp"
else
  rm -rf "$build/spark40" "$build/spark-jars"
  say "Spark's official connector could not be had (see .build/spark.log); what compares with it will skip"
fi
exit 0
