# One line per target. Every target installs what it needs, and no more.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
# Otherwise every test process would compile all test files again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run cluster demo test check soak sim bench docs format clean foreign vendor screenshots
.DEFAULT_GOAL := run

# --- set-up: three stamps, for the broker alone, with its console, and for everything else ---
BROKER := $(VENV)/.broker-installed
CONSOLE := $(VENV)/.console-installed
INSTALLED := $(VENV)/.installed
SOURCES := pyproject.toml setup.py $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.h')

$(BROKER): $(SOURCES)
	@./scripts/venv.sh $(VENV) $(PYTHON)
	@echo "Installing barnabas into $(VENV) (once)"
	@$(PIP) --editable .
	@$(PY) -c "from barnabas.records import codec; codec.NATIVE or print('No C compiler: the record codec is pure Python')"
	@touch $@

$(CONSOLE): $(BROKER)
	@echo "Installing what the web console needs (once)"
	@$(PIP) 'barnabas[console]'  # barnabas itself is there: only the packages that this names
	@touch $@

$(INSTALLED): $(SOURCES)
	@./scripts/venv.sh $(VENV) $(PYTHON)
	@echo "Installing barnabas, PySpark, foreign clients and the development tools into $(VENV), about 1.1 GB (a few minutes, once)"
	@$(PIP) --editable '.[dev]'
	@$(PY) -c "from barnabas.records import codec; codec.NATIVE or print('No C compiler: the record codec is pure Python')"
	@touch $(BROKER) $(CONSOLE) $@

# --- what people type ---
# PORT=9192 and DATA=/path choose another port and data directory.
run: $(BROKER)
	@echo "Starting one broker; Ctrl-C stops it"
	@$(PY) -m barnabas server $(if $(PORT),--listen 127.0.0.1:$(PORT)) $(if $(DATA),--data-dir $(DATA)) --set group.initial.rebalance.delay.ms=0

# Three brokers on this machine, replicated, and the console; BROKERS=2, PORT=9192 and DATA=/path choose others.
cluster: $(CONSOLE)
	@$(PY) -m barnabas up --brokers $(or $(BROKERS),3) --listen 127.0.0.1:$(or $(PORT),9092) --data-dir $(or $(DATA),./barnabas-data/cluster)

# DURATION=60 ends it by itself, with a check of everything that was written; RATE=2000 is more traffic.
demo: $(INSTALLED)
	@$(PY) -m barnabas.pipeline.demo $(if $(DURATION),--duration $(DURATION)) $(if $(RATE),--rate $(RATE))

# FOREIGN=0 does without the foreign tools: the tests that need one skip and give the reason.
test: $(INSTALLED) foreign check
	$(PY) -m pytest -m "not soak" --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 20

check: $(INSTALLED)
	$(VENV)/bin/ruff check src tests benchmarks
	$(VENV)/bin/ruff format --check src tests benchmarks
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

soak: $(INSTALLED) foreign
	$(PY) -m pytest -m soak

# SEED=7 repeats one seed exactly; FIRST=1000 SEEDS=500 PROCESSES=2 runs others; CLUSTER=1 is three brokers instead of one.
sim: $(INSTALLED)
	PYTHONHASHSEED=0 PYTHONPATH=src:tests/support $(PY) -m simulation $(if $(CLUSTER),--cluster) $(if $(SEED),--seed $(SEED)) $(if $(FIRST),--first $(FIRST)) $(if $(SEEDS),--count $(SEEDS)) $(if $(PROCESSES),--processes $(PROCESSES))

bench: $(INSTALLED) foreign
	$(PY) -m benchmarks

docs: $(INSTALLED)
	$(PY) -m barnabas.config.docs docs/
	$(PY) -m barnabas.client.options.docs docs/
	$(PY) -m barnabas.server.metrics.docs docs/
	$(PY) -m barnabas.client.metrics.docs docs/

format: $(INSTALLED)
	$(VENV)/bin/ruff format src tests benchmarks
	$(VENV)/bin/ruff check --fix src tests benchmarks

# The console's scripts of others, from npm; the result is committed, so only a new version needs this.
vendor:
	./scripts/vendor.sh

# Pictures of the console for docs/console.md; the result is committed.
screenshots: $(INSTALLED) foreign
	PYTHONPATH=src:tests/support $(PY) scripts/screenshots.py

foreign:
	@$(if $(filter 0,$(FOREIGN)),echo "foreign: left out (FOREIGN=0)",./tests/foreign/install.sh)

clean:
	rm -rf $(VENV) .build
