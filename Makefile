# Two commands matter: `make demo` and `make test`. Each does all its own set-up in .venv.
SHELL := /bin/sh
.DELETE_ON_ERROR:

# A Python of 3.11 or newer; its real path, for a version manager's shim costs 0.1 s at every start.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; assert sys.version_info >= (3, 11); print(sys.executable)' 2>/dev/null && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test soak lint lock clean

demo: $(READY)
	$(BIN)/tiltyard demo

test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

# 20,000 cells one after the other, a thousand kills at random moments: an hour or so
soak: $(READY)
	TILTYARD_SOAK_CELLS=20000 TILTYARD_SOAK_KILLS=1000 $(BIN)/python -m pytest tests/cells/test_soak.py $(ARGS)

lint: $(READY)
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy
	$(BIN)/lint-imports

$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "tiltyard needs Python 3.11 or newer; found none. Install one, or say: make PYTHON=/path/to/python3" >&2; exit 1; }
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@# an editable install is not compiled, and every fork server would compile what runs inside cells again
	$(BIN)/python -m compileall -q src/tiltyard -x builtin
	@touch $@

# The lock holds names, versions and hashes, and no address.
lock:
	$(BIN)/python -m pip install --quiet 'uv>=0.7,<1'
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--no-annotate --no-emit-find-links --all-extras --group dev pyproject.toml build.in --output-file requirements.lock

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
