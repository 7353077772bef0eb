# Each target is one command and works alone. CI uses the same targets.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin

# DEVICE is cpu or cuda. It decides which PyTorch is in .venv, and on which device `make run` verifies. The value stays
# until a command line changes it. The environment variable DEVICE is ignored, because it may belong to another program.
ifneq ($(origin DEVICE),command line)
DEVICE := $(or $(patsubst .venv/.installed-%,%,$(wildcard .venv/.installed-*)),cpu)
endif
INSTALLED := .venv/.installed-$(DEVICE)

# These names are exact, so that no index can answer with the other build.
ifeq ($(DEVICE),cuda)
TORCH ?= torch===2.13.0
TORCH_INDEX ?= https://pypi.org/simple
else ifeq ($(shell uname -s),Darwin)
TORCH ?= torch==2.13.0
else
TORCH ?= torch==2.13.0+cpu
endif
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

ON_DEVICE := $(if $(filter cuda,$(DEVICE)),--device cuda --num-gpus 1)
ifeq ($(filter cpu cuda,$(DEVICE)),)
$(error DEVICE=$(DEVICE): it is cpu or cuda)
endif

.PHONY: help run test test-all test-oldest test-newest setup lint types bench corpus snapshots settings schemas gallery lock container clean

help:
	@echo "make run    take the samples apart on a local Ray, and show the results; with DEVICE=cuda on a GPU"
	@echo "make test   run the quick tests: six minutes on two cores"
	@echo "make test-all  run all tests, including those with clusters, kills and a browser, as CI does"
	@echo "make test-oldest  run the core's tests with the oldest versions in pyproject.toml; test-newest: with the newest"
	@echo "make setup  create .venv with all packages (run and test do this themselves)"
	@echo "make lint   check the code with ruff"
	@echo "make types  check the types with mypy --strict"
	@echo "make bench  measure the seconds of the engine and of the command line, and compare them with their goals"
	@echo "make corpus  take models of public packages apart, and count the passes; CORPUS=second: another set of models"
	@echo "make snapshots  rewrite the emitted text that the tests compare with; review the diff"
	@echo "make settings  rewrite docs/settings.md from the settings' descriptions"
	@echo "make schemas  rewrite docs/schemas from the models of tree, result and manifest"
	@echo "make gallery    take three samples apart, and rewrite the page and pictures of docs/gallery"
	@echo "make lock   rewrite configs/image.lock: the versions of the packages in the container image"
	@echo "make container  build the image with buildah, as root, and take two samples apart in it"
	@echo "make clean  remove environments and caches, but not output/"

run: $(INSTALLED)
	$(BIN)/kdrun submit --data data/samples $(ON_DEVICE)
	@echo "kdrun is in .venv: \`source .venv/bin/activate\`, then \`kdrun --help\`"

PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist worksteal --durations=10

test: $(INSTALLED)
	$(PYTEST) -m "not (cluster or kill or browser or long)"

test-all: $(INSTALLED)
	$(PYTEST)

lint: $(INSTALLED)
	$(BIN)/ruff check runner kdrun tests benchmarks docs

types: $(INSTALLED)
	$(BIN)/mypy

bench: $(INSTALLED)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/engine.py

# This environment has the packages of the corpus and those of .venv. Without --no-deps, pip would replace torch with another build.
CORPUS ?= first
CORPUS_ENV := .venv-corpus-$(CORPUS)
CORPUS_PACKAGES := $(wildcard tests/corpus/$(CORPUS)/requirements-*.txt)
corpus: $(CORPUS_ENV)/.installed
	$(CORPUS_ENV)/bin/python tests/corpus/run.py tests/corpus/$(CORPUS)

# The packages' own requirements name other builds of torch. So the lists contain all dependencies.
$(CORPUS_ENV)/.installed: $(INSTALLED) $(CORPUS_PACKAGES)
	$(BIN)/python -m venv --clear $(CORPUS_ENV)
	$(BIN)/python -c 'import site; print(f"import site; site.addsitedir({site.getsitepackages()[0]!r})")' \
	  > "$$($(CORPUS_ENV)/bin/python -c 'import site; print(site.getsitepackages()[0])')/setup.pth"
	$(CORPUS_ENV)/bin/python -m pip install -qq uv wheel setuptools
	$(CORPUS_ENV)/bin/uv pip install -q --python $(CORPUS_ENV)/bin/python --no-deps --no-build-isolation-package yolox \
	  $(CORPUS_PACKAGES:%=-r %)
	$(CORPUS_ENV)/bin/python tests/corpus/mend_builds.py
	@touch $@

snapshots: $(INSTALLED)
	$(BIN)/python tests/emit/snapshots.py

settings: $(INSTALLED)
	$(BIN)/python docs/make_settings.py

schemas: $(INSTALLED)
	$(BIN)/python docs/schemas/make.py

gallery: $(INSTALLED)
	$(BIN)/python docs/gallery/make.py

# The command names the CPU build of torch, so that the lock contains no CUDA packages. If the build is not in PyTorch's own index
# but in a folder: make lock UV_TORCH="--find-links DIR".
UV_TORCH ?= --torch-backend cpu
lock: $(INSTALLED)
	$(BIN)/python -m pip install -qq uv
	echo "torch==2.13.0+cpu" | $(BIN)/uv pip compile -q pyproject.toml - \
	  --extra kernelbench --extra cluster --upgrade --generate-hashes --no-emit-package torch \
	  --python-version 3.11 --python-platform x86_64-manylinux_2_28 $(UV_TORCH) \
	  --no-annotate --custom-compile-command "make lock" -o configs/image.lock

# Both ends of the ranges in pyproject.toml, each in its own environment. uv installs the versions of
# pyproject.toml, with PyTorch's CPU build from PyTorch's index. With UV_TORCH= it installs the build of PyPI.
RANGE_TESTS ?= tests/graph tests/tree tests/emit tests/verify tests/test_samples.py
NEWEST_PYTHON ?= $(shell command -v python3.13 || command -v python3)
test-oldest: .venv-oldest/.installed
test-newest: .venv-newest/.installed
test-oldest test-newest: test-%:
	.venv-$*/bin/python -m pytest $(RANGE_TESTS)

.venv-oldest/.installed: PYTHON_HERE = $(PYTHON)
.venv-oldest/.installed: RESOLUTION = lowest-direct
.venv-newest/.installed: PYTHON_HERE = $(NEWEST_PYTHON)
.venv-newest/.installed: RESOLUTION = highest
.venv-%/.installed: pyproject.toml
	$(PYTHON_HERE) -m venv --clear .venv-$*
	.venv-$*/bin/python -m pip install -qq uv
	.venv-$*/bin/uv pip install -q --python .venv-$*/bin/python --upgrade --resolution $(RESOLUTION) \
	  $(UV_TORCH) --editable ".[dev,kernelbench]"
	@touch $@

container:
	tests/container/build_and_run.sh

setup: $(INSTALLED)

# Install torch first and by itself. The indexes in pip's configuration may have the build (a mirror, a folder of
# wheels). If they do not, TORCH_INDEX does.
$(INSTALLED): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "kdrun needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@rm -f .venv/.installed*
	@echo "installing PyTorch, Ray and the packages of the tests into .venv; this takes some minutes"
	$(BIN)/python -m pip install -qq "$(TORCH)" 2>/dev/null \
	  || $(BIN)/python -m pip install -qq "$(TORCH)" --extra-index-url $(TORCH_INDEX)
	$(BIN)/python -m pip install -qq --editable ".[dev,kernelbench]"
	@touch $@

clean:
	rm -rf .venv .venv-oldest .venv-newest .venv-corpus-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
