# make generate    install what is needed into .venv and generate everything
# make test        install what the tests need and run them all
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
BIN := $(VENV)/bin
TOOL := $(BIN)/ort-interop-gen
PYTEST := $(BIN)/python -m pytest

.PHONY: generate test test-long test-matrix check-headers bench bench-frames fuzz mutation soak clean help

generate: $(VENV)/.installed ## install the tool and render the spec into generated/
	$(TOOL) generate

test: $(VENV)/.installed-test ## run the tests; REQUIRE_ALL=1 makes a missing tool a failure
	$(PYTEST) -n $(JOBS) --dist loadfile -m "not long"

test-long: $(VENV)/.installed-test ## the tests that build for several compilers and for Wine; minutes
	$(PYTEST) -n $(JOBS) --dist loadfile -m long

test-matrix: $(VENV)/.installed-test ## the Python layer on every release of onnxruntime, into docs/matrix.md; minutes
	$(BIN)/python tests/matrix --jobs $(JOBS) --out docs/matrix.md

check-headers: $(VENV)/.installed-test ## HEADERS=dir: check against the ORT headers in dir/<release>/
	@test -n "$(HEADERS)" || { echo "usage: make check-headers HEADERS=dir"; exit 2; }
	@failed=0; for header in $(HEADERS)/*/onnxruntime_c_api.h; do \
	  $(TOOL) check --header $$header; code=$$?; \
	  case $$header in (*/1.2[0-3].*) wanted=2 ;; (*) wanted=0 ;; esac; \
	  [ $$code -eq $$wanted ] || { echo "$$header: exit code $$code, not $$wanted"; failed=1; }; \
	done; exit $$failed
	ORT_HEADERS_DIR=$(abspath $(HEADERS)) $(PYTEST) tests -n $(JOBS) --dist loadfile -k "(header or check or drift) and not mutation and not fuzz"

bench: $(VENV)/.installed-test ## measure speed; HEADERS=dir uses the ORT headers in it
	$(BIN)/python bench/bench.py $(if $(HEADERS),--headers $(HEADERS))

bench-frames: $(VENV)/.installed-test ## the frame loop: the Python layer, C, and onnxruntime's own bindings
	$(BIN)/python bench/frame_loop.py

fuzz: $(VENV)/.installed-test ## 10,000 mutated inputs a fuzz test; minutes
	HYPOTHESIS_PROFILE=fuzz $(PYTEST) -m fuzz -n $(JOBS)
	cd tests && $(abspath $(BIN))/python -m fuzz --edits 10000 --jobs $(JOBS)

mutation: $(VENV)/.installed-test ## the whole mutation test, kept in docs/mutation.md; HEADERS=dir adds ORT's headers
	cd tests && $(abspath $(BIN))/python -m mutation --jobs $(JOBS) --keep ../docs/mutation.md \
	  $(foreach header,$(wildcard $(addsuffix /1.2[4-9].*,$(abspath $(HEADERS))) $(addsuffix /1.[3-9]*,$(abspath $(HEADERS)))),--headers $(header))

soak: $(VENV)/.installed-test ## 100,000 imports and releases on each mock driver; minutes
	SOAK_CYCLES=100000 $(PYTEST) -s tests/test_cuda_hip_ep.py tests/test_vulkan_mock.py -k soak

clean: ## delete the virtual environment and caches; generated/ stays
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:[^#]*## /\t/'

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed
