# One line a target. Everything a target needs, it installs itself.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
# Else every test process compiles all test files anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run demo test check soak bench docs format clean
.DEFAULT_GOAL := run

NATIVE_SOURCES := $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.h')

$(INSTALLED): pyproject.toml setup.py $(NATIVE_SOURCES)
	@echo "Setting up $(VENV): a virtual environment with barnabas and its tools (a few minutes, once)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade pip setuptools
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(PY) -c "from barnabas.records import codec; codec.NATIVE or print('No C compiler: the record codec is pure Python')"
	@touch $@

run: $(INSTALLED)
	@echo "Starting one broker; Ctrl-C stops it"
	@$(PY) -m barnabas server --set group.initial.rebalance.delay.ms=0

# DURATION=60 ends it by itself, with a check of all that was written; RATE=2000 is more traffic.
demo: $(INSTALLED)
	@$(PY) -m barnabas.pipeline.demo $(if $(DURATION),--duration $(DURATION)) $(if $(RATE),--rate $(RATE))

check: $(INSTALLED)
	$(VENV)/bin/ruff check src tests benchmarks
	$(VENV)/bin/ruff format --check src tests benchmarks
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

test: $(INSTALLED) foreign check
	$(PY) -m pytest -m "not soak" --numprocesses 2 --dist loadfile --durations 20 || $(MAKE) --no-print-directory retest

# Two processes share the machine above, and some tests live on time-outs: what failed must pass by itself.
.PHONY: retest
retest:
	@echo "Once more, one after the other: what failed while two processes shared the machine"
	$(PY) -m pytest -m "not soak" --last-failed --last-failed-no-failures none

soak: $(INSTALLED) foreign
	$(PY) -m pytest -m soak

bench: $(INSTALLED) foreign
	$(PY) -m benchmarks

docs: $(INSTALLED)
	$(PY) -m barnabas.config.docs docs/
	$(PY) -m barnabas.client.options.docs docs/

format: $(INSTALLED)
	$(VENV)/bin/ruff format src tests benchmarks
	$(VENV)/bin/ruff check --fix src tests benchmarks

# Judges from outside (kcat, Apache Kafka's jars). Tests that miss one skip and say why.
.PHONY: foreign
foreign:
	@./tests/foreign/install.sh

clean:
	rm -rf $(VENV) .build
