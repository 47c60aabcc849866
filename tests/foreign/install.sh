#!/usr/bin/env bash
# Installs the foreign programs that the tests run: kcat, PostgreSQL, etcd, ZooKeeper, Apache Kafka with Kafka Streams,
# franz-go, kafkajs, mosquitto, mqtt.js, and for the console Chromium and axe-core. Quick when everything is there.
# What cannot be installed is reported in one line and the exit status stays 0: the tests that need it skip with a reason.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/.build
mkdir -p "$build"

say() {
  if [ -z "${announced:-}" ]; then
    announced=1
    echo "foreign: the tests run other programs: kcat, PostgreSQL, etcd, mosquitto and Chromium (apt-get), the jars of Apache Kafka"
    echo "foreign: and ZooKeeper (Maven), franz-go (Go), kafkajs, mqtt.js and axe-core (npm). About 700 MB, once, in the system and in .build."
    echo "foreign: 'make test FOREIGN=0' does without them."
  fi
  echo "foreign: $*"
}
have() { command -v "$1" >/dev/null 2>&1; }

# done_for NAME FILE...: true when NAME was installed from just these files before.
stamp() { cat "${@:2}" | cksum | tr -d ' \n'; }
done_for() { [ "$(cat "$build/$1.stamp" 2>/dev/null)" = "$(stamp "$@")" ]; }
mark_done() { stamp "$@" >"$build/$1.stamp"; }

install_kcat() {
  have kcat && return
  if ! have apt-get || [ "$(id -u)" != 0 ]; then
    say "kcat is missing and cannot be installed here (needs apt-get as root); its tests will skip"
    return
  fi
  say "installing kcat with apt-get"
  if ! { apt-get update -qq && apt-get install -y -qq kcat; } >"$build/kcat.log" 2>&1; then
    say "apt-get could not install kcat (see .build/kcat.log); its tests will skip"
  fi
}

install_postgresql() {
  { have postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; } && return
  if ! have apt-get || [ "$(id -u)" != 0 ]; then
    say "PostgreSQL is missing and cannot be installed here (needs apt-get as root); its tests will skip"
    return
  fi
  say "installing PostgreSQL with apt-get"
  # Only its programs: the tests start a server of their own.
  local settings=/etc/postgresql-common/createcluster.conf made=
  if [ ! -e "$settings" ]; then
    mkdir -p "${settings%/*}" && echo "create_main_cluster = false" >"$settings" && made=1
  fi
  if ! { apt-get update -qq && apt-get install -y -qq postgresql; } >"$build/postgresql.log" 2>&1; then
    say "apt-get could not install PostgreSQL (see .build/postgresql.log); its tests will skip"
  fi
  [ -z "$made" ] || rm -f "$settings"
}

install_etcd() {
  have etcd && return
  if ! have apt-get || [ "$(id -u)" != 0 ]; then
    say "etcd is missing and cannot be installed here (needs apt-get as root); its tests will skip"
    return
  fi
  say "installing etcd with apt-get"
  # Only its program: policy-rc.d keeps Debian from starting the service, since the tests start their own.
  local policy=/usr/sbin/policy-rc.d made=
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made=1
  fi
  if ! { apt-get update -qq && apt-get install -y -qq etcd-server; } >"$build/etcd.log" 2>&1; then
    say "apt-get could not install etcd-server (see .build/etcd.log); its tests will skip"
  fi
  [ -z "$made" ] || rm -f "$policy"
}

install_chromium() {
  have chromium-headless-shell && return
  if ! have apt-get || [ "$(id -u)" != 0 ]; then
    say "chromium-headless-shell is missing and cannot be installed here (needs apt-get as root); the console's browser tests will skip"
    return
  fi
  say "installing headless Chromium with apt-get"
  if ! { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-dejavu-core; } \
      >"$build/chromium.log" 2>&1; then
    say "apt-get could not install chromium-headless-shell (see .build/chromium.log); the console's browser tests will skip"
  fi
}

install_mosquitto() {
  { { have mosquitto || [ -x /usr/sbin/mosquitto ]; } && have mosquitto_pub; } && return
  if ! have apt-get || [ "$(id -u)" != 0 ]; then
    say "mosquitto is missing and cannot be installed here (needs apt-get as root); its tests will skip"
    return
  fi
  say "installing mosquitto with apt-get"
  # Only its programs, as with etcd.
  local policy=/usr/sbin/policy-rc.d made=
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made=1
  fi
  if ! { apt-get update -qq && apt-get install -y -qq mosquitto mosquitto-clients; } >"$build/mosquitto.log" 2>&1; then
    say "apt-get could not install mosquitto (see .build/mosquitto.log); its tests will skip"
  fi
  [ -z "$made" ] || rm -f "$policy"
}

# copy_jars SCOPE FOLDER
copy_jars() {
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope="$1" -DoutputDirectory="$build/$2"
}

install_kafka() {
  if ! have java || ! have mvn; then
    say "Java or Maven is missing; tests and benchmarks with Apache Kafka will skip"
    return
  fi
  done_for kafka "$here/pom.xml" && return
  say "copying Apache Kafka's jars into .build/kafka with Maven"
  rm -rf "$build/kafka" "$build/streams" "$build/class-archives"
  if { copy_jars runtime kafka && copy_jars provided streams; } >"$build/kafka.log" 2>&1; then
    mark_done kafka "$here/pom.xml"
  else
    rm -rf "$build/kafka" "$build/streams"
    say "Maven could not get Apache Kafka's jars (see .build/kafka.log); tests with them will skip"
  fi
}

install_zookeeper() {
  if ! have java || ! have mvn; then
    say "Java or Maven is missing; tests with ZooKeeper will skip"
    return
  fi
  done_for zookeeper "$here/zookeeper/pom.xml" && return
  say "copying ZooKeeper's jars into .build/zookeeper with Maven"
  rm -rf "$build/zookeeper"
  if mvn -q -B -f "$here/zookeeper/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
      -DoutputDirectory="$build/zookeeper" >"$build/zookeeper.log" 2>&1; then
    mark_done zookeeper "$here/zookeeper/pom.xml"
  else
    rm -rf "$build/zookeeper"
    say "Maven could not get ZooKeeper's jars (see .build/zookeeper.log); tests with them will skip"
  fi
}

install_go() {
  have go || { say "Go is missing; the franz-go test will skip"; return; }
  done_for go "$here/go/main.go" "$here/go/go.mod" && return
  say "building the franz-go round trip"
  if (cd "$here/go" && go build -o "$build/go-roundtrip" .) >"$build/go.log" 2>&1; then
    mark_done go "$here/go/main.go" "$here/go/go.mod"
  else
    say "Go could not build the franz-go round trip (see .build/go.log); its test will skip"
  fi
}

install_node() {
  if ! have node || ! have npm; then
    say "Node or npm is missing; the tests with kafkajs and mqtt.js and the accessibility rules of the console's tests will skip"
    return
  fi
  done_for node "$here/node/package.json" && return
  say "installing kafkajs, mqtt.js and axe-core into .build/node"
  mkdir -p "$build/node" && cp "$here/node/package.json" "$build/node/"
  if npm install --prefix "$build/node" --no-package-lock --no-audit --no-fund --silent >"$build/node.log" 2>&1; then
    mark_done node "$here/node/package.json"
  else
    say "npm could not install kafkajs, mqtt.js and axe-core (see .build/node.log); their tests will skip"
  fi
}

install_kcat
install_postgresql
install_etcd
install_chromium
install_mosquitto
install_kafka
install_zookeeper
install_go
install_node
exit 0
