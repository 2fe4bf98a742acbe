# Every target first sets up what it needs: Python 3.11+ and make are enough.
#
#   make test ARGS="-k fork"    pass options on
#   make test PYTHON=python3.12 choose the interpreter
#   FORKLAKE_VENV=/some/folder  keep the environment elsewhere

.DEFAULT_GOAL := help
# Spark starts many Pythons, and without compiled modules each takes seconds to begin.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help demo test test-all test-with test-spark soak lint format lock clean bench-commit bench-data bench-fork bench-index bench-maintenance bench-spark bench-spark-peers bench-sql bench-start

# $(call in_venv,profile) begins a recipe: afterwards $$venv is the environment's folder.
in_venv = @venv="$$(sh scripts/bootstrap.sh $(1))" && cache="$$venv/.forklake/cache" &&

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

demo: ## Run the demo
	$(call in_venv,demo) "$$venv/bin/forklake" demo $(ARGS)

pytest = export HYPOTHESIS_STORAGE_DIRECTORY="$$cache/hypothesis" && \
	  "$$venv/bin/python" -m pytest -n auto --maxprocesses 4 -o cache_dir="$$cache/pytest"

test: ## Run the tests, each on one of the databases; all that ARGS names, if given
	$(call in_venv,test) $(pytest) $(or $(ARGS),--one-database)

test-all: ## Run the tests, each on every database, a real PostgreSQL among them
	$(call in_venv,test) $(pytest) $(ARGS)

test-with: ## Run tests with other versions: PYTHON=python3.13 DUCKDB=2.0 POSTGRES=14 SPARK=4.1 LOWEST=yes, or some of these
	@PYTHON="$(PYTHON)" DUCKDB="$(DUCKDB)" POSTGRES="$(POSTGRES)" SPARK="$(SPARK)" LOWEST="$(LOWEST)" sh scripts/test-with.sh \
	  -n auto --maxprocesses 4 $(ARGS)

test-spark: ## Run the tests of Spark with one of its versions: VERSION=4.1
	@test -n "$(VERSION)" || { echo "which version of Spark? make test-spark VERSION=4.1" >&2; exit 2; }
	@PYTHON="$(PYTHON)" SPARK="$(VERSION)" sh scripts/test-with.sh $(or $(ARGS),tests/spark)

MINUTES ?= 10
soak: ## Run the property tests for much longer, and simulated lakes for MINUTES=10
	$(call in_venv,test) \
	  export HYPOTHESIS_STORAGE_DIRECTORY="$$cache/hypothesis" FORKLAKE_HYPOTHESIS=soak && \
	  "$$venv/bin/python" -m pytest -n auto --maxprocesses 4 -o cache_dir="$$cache/pytest" --timeout 7200 \
	    tests/property tests/unit tests/spark $(ARGS) && \
	  "$$venv/bin/python" -m tests.property.simulation --minutes $(MINUTES) --steps 100

lint: ## Check style, types and layers
	$(call in_venv,test) \
	  export RUFF_CACHE_DIR="$$cache/ruff" PYRIGHT_PYTHON_IGNORE_WARNINGS=1 && \
	  "$$venv/bin/python" -m ruff check . && \
	  "$$venv/bin/python" -m ruff format --check . && \
	  "$$venv/bin/python" -m pyright --pythonpath "$$venv/bin/python" && \
	  "$$venv/bin/lint-imports" --cache-dir "$$cache/import-linter"

format: ## Rewrite the code in the common style
	$(call in_venv,test) \
	  export RUFF_CACHE_DIR="$$cache/ruff" && \
	  "$$venv/bin/python" -m ruff check --fix-only . && \
	  "$$venv/bin/python" -m ruff format .

bench-commit: ## Measure commits against the stock DuckLake client
	$(call in_venv,test) "$$venv/bin/python" -m benchmarks.commit $(ARGS)

bench-data: ## Measure rows: append, read, plan, small inserts (ARGS=--quick for a short one)
	$(call in_venv,bench) "$$venv/bin/python" -m benchmarks.data $(ARGS)

bench-fork: ## Measure forks: one, a million, deep chains, agents (ARGS=--quick for a short one)
	$(call in_venv,test) "$$venv/bin/python" -m benchmarks.fork $(ARGS)

bench-index: ## Measure indexes: keys, places, words, vectors, tables (ARGS=--quick for a short one)
	$(call in_venv,bench) "$$venv/bin/python" -m benchmarks.index $(ARGS)

bench-maintenance: ## Measure cleaning: collection, dropped forks, busy days (ARGS=--quick for a short one)
	$(call in_venv,test) "$$venv/bin/python" -m benchmarks.maintenance $(ARGS)

bench-spark: ## Measure Spark: read, append, merge, large snapshots (ARGS=--quick for a short one)
	$(call in_venv,test) "$$venv/bin/python" -m benchmarks.spark $(ARGS)

bench-spark-peers: ## Measure Spark 4.1 beside Iceberg and Delta, whose jars Maven brings (ARGS=--quick for a short one)
	@PYTHON="$(PYTHON)" SPARK=4.1 MODULE=benchmarks.spark_peers sh scripts/test-with.sh $(ARGS)

bench-sql: ## Measure SQL: TPC-H, scans, small statements (ARGS=--quick for a short one)
	$(call in_venv,bench) "$$venv/bin/python" -m benchmarks.sql $(ARGS)

bench-start: ## Measure how long imports and short commands take (ARGS="--against SRC": another version too)
	$(call in_venv,bench) "$$venv/bin/python" -m benchmarks.start $(ARGS)

# Versions in the others follow test.txt, so that all fit into one environment.
lock: ## Resolve the dependencies again, into requirements/*.txt (ARGS=--upgrade for newer ones)
	$(call in_venv,lock) \
	  compile() { \
	    "$$venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	      --no-emit-index-url --custom-compile-command "make lock" $(ARGS) "$$@"; \
	  } && \
	  compile --group lock -o requirements/lock.txt && \
	  compile pyproject.toml --extra postgres-server --extra spark --group dev -o requirements/test.txt && \
	  compile pyproject.toml --extra postgres-server --extra spark --group build -c requirements/test.txt -o requirements/demo.txt && \
	  compile pyproject.toml --extra postgres-server --extra spark --group bench -c requirements/test.txt -o requirements/bench.txt

clean: ## Remove the environment and all caches
	@sh scripts/bootstrap.sh clean
	@rm -rf .pytest_cache .ruff_cache .hypothesis .import_linter_cache build dist
	@find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
