# The only command list. `make` alone prints it.
SHELL := /bin/bash
.DEFAULT_GOAL := help
UV_VERSION := 0.13.8
PYTHON ?= python3
BIN := .venv/bin
export UV_PYTHON_DOWNLOADS := never
DURATION ?= 120
SEED ?=
SEEDS ?=

help: ## print this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: .venv/.ready ## build the environment in .venv (about 20 s, once)
	@echo "ready: run 'source .venv/bin/activate', then 'forebay --help' or 'uv run forebay --help'"

.boot/bin/uv:
	@echo "installing uv $(UV_VERSION) into .boot (about 5 s)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Forebay needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11.")'
	@$(PYTHON) -m venv .boot || { echo "python3 cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }
	@.boot/bin/pip install -q --disable-pip-version-check "uv==$(UV_VERSION)"

.venv/.ready: .boot/bin/uv pyproject.toml uv.lock
	@echo "installing what uv.lock names into .venv (about 15 s)"
	@.boot/bin/uv sync --quiet --locked --all-extras --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	@touch $@

setup-tools: setup ## tools the tests need beyond Python: Azurite by npm into .cache, logrotate, jq and bc by apt (about 50 s, once)
	@$(BIN)/python tests/azurite/server.py
	@$(BIN)/python tests/apt_tools.py

setup-bench: setup ## tools the benchmarks need: nginx and aria2 by apt (about 10 s, once)
	@$(BIN)/python tests/apt_tools.py nginx aria2c

demo: .venv/.ready ## from nothing to the xact pipeline in a storm of 2,000 events, live on the screen, with an audit at its end (about 1 min)
	@echo "2,000 events through xact against a simulated world, then an audit (about 1 min; data in ./demo-data)"
	@$(BIN)/forebay demo

test: .venv/.ready ## everything, with a real Kafka where Java and Maven are, with Azurite where npm is (about 8 min)
	@$(BIN)/python tests/run.py

check: .venv/.ready ## format, lint, types, import contracts, sizes, docs that mirror code (about 20 s)
	@echo "checking format, lint, types, contracts, sizes and docs (about 20 s)"
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q -n 2 tests/architecture

docs: .venv/.ready ## write the pages of docs/reference that mirror the code (about 2 s)
	@echo "writing docs/reference from the code (about 2 s)"
	@$(BIN)/python docs/generate.py

kafka: .venv/.ready ## a real Apache Kafka on loopback until Ctrl-C (first start fetches jars with Maven, about 1 min)
	@$(BIN)/python -m forebay.broker.kafka.trial

bench-broker: .venv/.ready ## brokers against bare clients (about 6 min)
	@$(BIN)/python tests/benchmarks/broker.py

bench-engine: .venv/.ready ## the engine against a bare client on one real Kafka (about 7 min)
	@$(BIN)/python tests/benchmarks/engine.py

bench-mod: .venv/.ready ## the kafka_consumer mod against a bare client and kafka-python (about 4 min)
	@$(BIN)/python tests/benchmarks/mod.py

bench-peers: .venv/.ready ## other frameworks against ours, in an environment of their own in .cache/peers (about 3 min)
	@$(BIN)/python tests/benchmarks/peers.py

torture-broker: .venv/.ready ## kills, freezes, power cuts and full disks for DURATION seconds (default 120)
	@$(BIN)/python tests/torture/broker.py --duration $(DURATION) $(if $(SEED),--seed $(SEED))

bench-xact: .venv/.ready ## the whole xact pipeline beside nginx on the same cores; make setup-bench first (about 20 min)
	@$(BIN)/python tests/benchmarks/xact.py

torture-engine: .venv/.ready ## the engine: SEEDS=10000 simulated runs (about 25 s per 1,000), or processes on both brokers for DURATION seconds (default 120)
	@$(BIN)/python tests/torture/engine.py $(if $(SEEDS),--seeds $(SEEDS),--duration $(DURATION)) $(if $(SEED),--seed $(SEED))

torture-xact: .venv/.ready ## xact with everything failing, on one machine and on Kafka with Azurite, for DURATION seconds (default 120), then its audit
	@$(BIN)/python tests/torture/xact.py --duration $(DURATION) $(if $(SEED),--seed $(SEED))

mutants: .venv/.ready ## plants faults in the engine; each must be caught by name (about 5 s)
	@echo "planting faults in the engine, one after the other (about 5 s)"
	@$(BIN)/python tests/engine/mutants/run.py

.PHONY: help setup setup-tools setup-bench demo test check docs kafka bench-broker bench-engine bench-mod bench-peers torture-broker torture-engine torture-xact bench-xact mutants
