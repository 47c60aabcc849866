#!/usr/bin/env bash
# Makes a usable virtual environment: scripts/venv.sh DIRECTORY [PYTHON]
# Refuses a Python that is too old before anything is written, and replaces an environment that no longer runs.
set -eu
venv=$1
python=${2:-python3}
oldest="3.11"

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < tuple(map(int, sys.argv[1].split("."))))' "$oldest" 2>/dev/null; }

if [ -e "$venv" ] && ! is_recent "$venv/bin/python"; then
  echo "Replacing $venv: its Python does not run, or is older than $oldest"
  rm -rf "$venv"
fi
[ ! -e "$venv" ] || exit 0
if ! command -v "$python" >/dev/null 2>&1; then
  echo "Barnabas needs Python $oldest or later, and there is no '$python' here. Choose one: make PYTHON=python3.12" >&2
  exit 1
fi
if ! is_recent "$python"; then
  echo "Barnabas needs Python $oldest or later; '$python' is $("$python" --version 2>&1). Choose one: make PYTHON=python3.12" >&2
  exit 1
fi
"$python" -m venv "$venv"
